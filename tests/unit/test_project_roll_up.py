from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.core.text import estimate_tokens
from graph.project.context_file import Message, summary_limit_chars
from graph.project.roll_up import leaving_count, message_tokens, picked_summary, window_tokens, written_summary

ASKED = "사용자는 포트 {0}번을 물었고 배포 {0}호의 날짜가 언제인지 알고 싶어 했다. "
TOLD = "담당 서버 {0}번을 도쿄 리전으로 옮기기로 결정했고 예산은 {0}만 원이다. "


@dataclass
class Writer:
    """Writes a numbered summary of the length asked for, and keeps what it was given."""

    given: list[list[AnyMessage]] = field(default_factory=list)
    answer: str | None = None

    def __call__(self, messages: Sequence[AnyMessage], target_chars: int) -> str:
        self.given.append(list(messages))
        said = f"요약 {len(self.given)}: " + "배포를 준비한다. " * 100
        return said[:target_chars] if self.answer is None else self.answer


def dialog(turns: int, *, repeat: int = 1) -> list[Message]:
    said = [("user", ASKED), ("assistant", TOLD)]
    return [
        Message(id=f"msg_{turn}_{role}", role=role, content=text.format(turn) * repeat)
        for turn in range(turns)
        for role, text in said
    ]


@given(st.lists(st.text(max_size=900), max_size=20))
def test_what_stays_has_at_most_800_tokens_and_the_newest_always_stays(texts: list[str]) -> None:
    window = [Message(role="user", content=text) for text in texts]
    count = leaving_count(window)
    staying = window[count:]
    assert len(staying) >= min(1, len(window))
    assert sum(message_tokens(each) for each in staying) <= 800 or len(staying) == 1
    if count:
        assert sum(message_tokens(each) for each in window[count - 1 :]) > 800
    assert window_tokens(staying) <= sum(message_tokens(each) for each in staying) + len(staying)


@given(
    st.text(max_size=700),
    st.lists(st.tuples(st.sampled_from(["user", "assistant"]), st.text(max_size=500)), max_size=8),
)
def test_picked_sentences_fit_whatever_is_said(previous: str, said: list[tuple[str, str]]) -> None:
    leaving = [Message(role=role, content=content) for role, content in said]
    limit = summary_limit_chars("\n".join([previous, *(content for _, content in said)]))
    assert len(picked_summary(previous[:limit], leaving)) <= limit


def test_of_thousands_of_messages_the_newest_are_picked_from() -> None:
    old = [Message(role="user", content="계약을 해지하기로 결정했다. " * 1_000)]
    assert "계약" not in picked_summary("", [*old, *dialog(30, repeat=30)])
    assert "계약" in picked_summary("", old)


def test_picked_sentences_keep_part_of_the_summary_so_far() -> None:
    previous = " ".join(f"{number}번 고객의 계약을 갱신하기로 정했다." for number in range(20))[:400]
    summary = picked_summary(previous, dialog(30))
    assert "계약을 갱신" in summary
    assert "리전으로" in summary
    assert picked_summary("짧은 요약이다.", dialog(1)).startswith("짧은 요약이다. ")


def test_a_model_is_given_the_summary_so_far_and_answers_whole_and_long_questions_by_their_best_sentences() -> None:
    writer = Writer()
    question, answer = Message(role="user", content=ASKED * 40), Message(role="assistant", content=TOLD * 40)
    written_summary("앞의 요약", [question, answer], writer)
    (given,) = writer.given
    assert [type(message) for message in given] == [SystemMessage, HumanMessage, AIMessage]
    assert given[0].text == "앞의 요약"
    assert len(given[1].text) <= 600 < len(question.content)
    assert given[2].text == answer.content


def test_what_is_longer_than_one_call_takes_is_condensed_in_parts_and_these_together() -> None:
    writer = Writer()
    summary = written_summary("앞의 요약", dialog(12, repeat=20), writer)
    *parts, last = writer.given
    assert len(parts) > 1
    assert all(sum(estimate_tokens(message.text) for message in part) <= 4_096 for part in writer.given)
    assert [message.text[:4] for message in last] == [f"요약 {number}" for number in range(1, len(parts) + 1)]
    assert summary.startswith(f"요약 {len(writer.given)}")
    assert len(summary) <= 400
    writer = Writer()
    answer = Message(role="assistant", content="".join(f"{number}번째 문장이다. " for number in range(1_500)))
    written_summary("", [answer], writer)
    *parts, _ = writer.given
    assert "".join(message.text for part in parts for message in part) == answer.content


def test_what_only_repeats_is_in_no_summary() -> None:
    said = Message(role="user", content="포트는 8501로 결정했다.")
    repeated = Message(role="assistant", content="기억해 두겠습니다: 서버는 도쿄에 있다.", is_repetition=True)
    assert picked_summary("", [said, repeated]) == "포트는 8501로 결정했다."
    writer = Writer()
    written_summary("", [repeated, said], writer)
    assert writer.given == [[HumanMessage(said.content)]]
    assert written_summary("앞의 요약", [repeated], writer) == "앞의 요약"
    assert picked_summary("앞의 요약", [repeated]) == "앞의 요약"
    assert len(writer.given) == 1


def test_a_model_that_writes_nothing_is_replaced_and_one_that_writes_too_much_cut_to_its_best_sentences() -> None:
    leaving = dialog(3)
    for nothing in ("", " \n"):
        assert written_summary("", leaving, Writer(answer=nothing)) == picked_summary("", leaving)
    summary = written_summary("", leaving, Writer(answer="그렇다고 한다. " * 80 + "포트는 8501로 결정했다."))
    assert len(summary) <= 400
    assert "8501로 결정했다" in summary
