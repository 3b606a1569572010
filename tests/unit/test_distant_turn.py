from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call

from graph.recognise.client_turns import sent_ids
from graph.store.turn import TurnRow
from graph.value.event import ActionRequired, AnswerRestarted, Event, TokenDelta, TurnFailed
from graph.worker.turn_poller import DistantTurn
from tests.fake.chat import names, text_of

ROW = TurnRow(
    session_id="s1",
    number=1,
    attempt=1,
    status="running",
    user_message_id="q",
    model="m",
    is_casual=False,
    partial_text="",
    stop_requested=False,
    error_code="",
    error_detail="",
    started_at=datetime(2026, 11, 23, tzinfo=UTC),
    finished_at=None,
    history_tokens=0,
    client="",
    is_imported=False,
)
QUESTION = HumanMessage("언제 옮기나요?", id="q")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def calling(text: str, call_id: str = "c1") -> AIMessage:
    return AIMessage(text, id=f"a-{call_id}", tool_calls=[tool_call(name="look_up", args={"name": "서버"}, id=call_id)])


def found(call_id: str = "c1") -> ToolMessage:
    return ToolMessage("10월 3일", tool_call_id=call_id, id=f"r-{call_id}")


def writing(text: str) -> TurnRow:
    return replace(ROW, partial_text=text)


@dataclass
class Reader:
    """Reads a turn as it is written down, step by step."""

    messages: list[AnyMessage] = field(default_factory=lambda: [QUESTION])

    def __post_init__(self) -> None:
        self.turn = DistantTurn(ROW, self.messages)

    def read(self, partial_text: str, *archived: AnyMessage, thoughts: str = "") -> None:
        self.messages += archived
        self.turn.take(writing(partial_text), list(self.messages), thoughts)

    @property
    def events(self) -> list[Event]:
        return self.turn.log.events()


def test_thoughts_come_before_the_text_and_what_turns_out_to_be_one_is_told_anew() -> None:
    reader = Reader()
    reader.read("", thoughts="I look")
    reader.read("", thoughts="I look it up.")
    assert (reader.turn.log.view().phase, reader.turn.log.view().thoughts) == ("thinking", "I look it up.")
    reader.read("", calling(""), found(), thoughts="I look it up.")
    reader.read("So 3", thoughts="I look it up.")
    reader.read("On the 3rd.", thoughts="I look it up.\n\nSo 3")
    view = reader.turn.log.view()
    assert (view.text, view.thoughts) == ("On the 3rd.", "I look it up.\n\nSo 3")
    reader.read("On the 4th.", thoughts="I look it up.\n\nOr 4?")
    view = reader.turn.log.view()
    assert (view.text, view.thoughts) == ("On the 4th.", "I look it up.\n\nOr 4?")


def test_text_grows_and_is_told_once() -> None:
    reader = Reader()
    for text in ("10월", "10월 3일에", "10월 3일에", "10월 3일에 옮깁니다."):
        reader.read(text)
    reader.read("10월 3일에 옮깁니다.", AIMessage("10월 3일에 옮깁니다.", id="a"))
    reader.turn.take(replace(ROW, status="finished"), reader.messages)
    assert names(reader.events) == ["TurnStarted", "TokenDelta", "TurnFinished"]
    assert text_of(reader.events) == "10월 3일에 옮깁니다."


def test_a_space_that_ends_an_answer_is_told_however_late_it_comes() -> None:
    reader = Reader()
    reader.read("10월 3일에")
    reader.read("", AIMessage("10월 3일에 ", id="a"))
    assert text_of(reader.events) == "10월 3일에 "


def test_text_that_is_archived_since_it_was_written_down_is_not_told_twice() -> None:
    reader = Reader()
    reader.read("찾아보")
    reader.read("찾아보", calling("찾아보겠습니다."))
    reader.read("찾아보", found())
    reader.read("10월 3일")
    assert names(reader.events) == ["TurnStarted", "TokenDelta", "ToolStarted", "ToolFinished", "TokenDelta"]
    assert reader.turn.log.view().text == "찾아보겠습니다.\n\n10월 3일"
    assert [step.status for step in reader.turn.log.view().steps] == ["done"]


def test_an_answer_that_is_begun_anew_replaces_what_was_told() -> None:
    reader = Reader()
    reader.read("내일은")
    reader.read("")
    reader.read("모레는")
    assert reader.events[-2:] == [AnswerRestarted(), TokenDelta("모레는")]
    assert reader.turn.log.view().text == "모레는"


def test_a_call_that_waits_for_its_program_is_told_at_the_end_alone() -> None:
    reader = Reader()
    reader.messages.append(calling("보겠습니다."))
    reader.turn.take(replace(ROW, status="requires_action"), reader.messages)
    assert names(reader.events) == ["TurnStarted", "TokenDelta", "ActionRequired"]
    last = reader.events[-1]
    assert isinstance(last, ActionRequired)
    assert [call.id for call in last.calls] == [*sent_ids(reader.messages).values()]


def test_what_was_said_before_the_program_answered_is_shown_but_not_told() -> None:
    messages: list[AnyMessage] = [QUESTION, calling("보겠습니다."), found(), AIMessage("초록", id="a")]
    turn = DistantTurn(ROW, messages, begin=3)
    assert text_of(turn.log.events()) == "초록"
    assert turn.log.view().text == "보겠습니다.\n\n초록"
    assert [step.status for step in turn.log.view().steps] == ["done"]


def test_another_attempt_ends_the_log_of_this_one() -> None:
    reader = Reader()
    reader.turn.take(replace(ROW, attempt=2), [QUESTION])
    reader.turn.take(replace(ROW, attempt=2, partial_text="새 답"), [QUESTION])
    assert reader.events[1:] == [TurnFailed(1, "interrupted", "")]


def test_a_turn_whose_process_died_ends_as_it_is_shown() -> None:
    whole, half = Reader(), Reader()
    whole.read("", AIMessage("다 했습니다.", id="a"))
    whole.turn.abandon(ROW, whole.messages)
    half.read("하다가")
    half.turn.abandon(writing("하다가"), half.messages)
    assert names(whole.events)[-1] == "TurnFinished"
    assert half.events[-1] == TurnFailed(1, "interrupted", "")


@given(answers=st.lists(TEXT.filter(str.strip), min_size=1, max_size=4), cuts=st.lists(st.integers(0, 30), max_size=12))
def test_however_often_it_is_read_it_is_told_as_if_it_were_read_once(answers: list[str], cuts: list[int]) -> None:
    reader = Reader()
    for number, answer in enumerate(answers):
        for cut in sorted(cuts):
            reader.read(answer[:cut])
        reader.read(answer[:1], calling(answer, f"c{number}"), found(f"c{number}"))
    once = DistantTurn(ROW, reader.messages).log
    assert reader.turn.log.view() == once.view()
    assert names(reader.events) == names(once.events())
