from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.model_input import Messages, assemble, system_part
from graph.core.open_question import without_answered, without_question
from graph.core.text import estimate_tokens
from graph.fold.request import LastInput
from graph.fold.shorten import shorten
from graph.fold.spec import fold_of, previous_summary
from graph.strategy.base import Limits
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.rolling import RollingStrategy
from graph.value.record import HistoryEntry, to_entry
from tests.fake.snapshot import record_of, snapshot_of

SYSTEM = system_part("ko", can_recall=True)
FIRST = "(1턴) 서버를 옮기기로 함.\n질문: 10월 14일 오전과 오후 가운데 언제로 할까요?"
SECOND = "(4턴) 14일 오전으로 정함.\n질문: 담당자는 누구인가요? 1) 김민수 2) 오세라"
THIRD = "(7턴) 김민수가 맡음.\n질문: 예산은 얼마로 할까요?"
QUESTION: list[AnyMessage] = [HumanMessage("320만 원이요", id="u10")]


def history_of(*summaries: str) -> list[HistoryEntry]:
    return [
        to_entry(record_of((first, first + 1, first + 2), summary))
        for first, summary in zip(range(1, 100, 3), summaries, strict=False)
    ]


@pytest.mark.parametrize(
    ("summary", "left"),
    [
        ("(1턴) 정함.\n질문: 언제 할까요?", "(1턴) 정함."),
        ("(turn 1) Settled.\nQuestion: when shall we move?", "(turn 1) Settled."),
        ("(1턴) 정함.\n**질문:** 언제?", "(1턴) 정함."),
        ("(1턴) 정함.\n- (3턴) 질문: 언제?", "(1턴) 정함."),
        ("(turn 1) Settled.\n(turn 3) question: which one?\n1) A\n2) B", "(turn 1) Settled."),
        ("(1턴) 정함.\n질문: 언제?\n사실: JT-4821", "(1턴) 정함.\n사실: JT-4821"),
        ("(turn 1) Settled.\nQuestion: when?\nFacts: JT-4821\n", "(turn 1) Settled.\nFacts: JT-4821"),
        ("(1턴) 정함.\n사실: JT-4821\n질문: 언제?\n1) 14일", "(1턴) 정함.\n사실: JT-4821"),
        ("(1턴) 정함.\n사실: JT-4821, 김민수, 14일\n질문: 김민수가 14일에?", "(1턴) 정함.\n사실: JT-4821"),
        ("(turn 1) Settled.\nFacts: a.InternalError\nQuestion: retry on a.InternalError?", "(turn 1) Settled."),
        (
            "(turn 1) Retry on InternalError.\nFacts: InternalError\nQuestion: is InternalError all?",
            "(turn 1) Retry on InternalError.\nFacts: InternalError",
        ),
        ("(1턴) 정함.\n질문: 언제?\n질문: 어디서?", "(1턴) 정함."),
        ("질문: 언제?", "질문: 언제?"),
        ("\n질문: 언제?", "\n질문: 언제?"),
        ("(1턴) 질문: 언제? 답: 14일.\n(2턴) 정함.", "(1턴) 질문: 언제? 답: 14일.\n(2턴) 정함."),
        ("(1턴) 질문지를 보냄.\n질문지: 12문항", "(1턴) 질문지를 보냄.\n질문지: 12문항"),
        (
            "1. **Task**\n- Questions: none",
            "1. **Task**\n- Questions: none",
        ),
        ("(원문)\n> 사용자: 질문: 언제?", "(원문)\n> 사용자: 질문: 언제?"),
        ("", ""),
    ],
)
def test_only_the_question_that_ends_a_summary_is_taken_off(summary: str, left: str) -> None:
    assert without_question(summary) == left
    assert without_question(left) == left


def test_the_newest_record_alone_is_sent_with_its_question() -> None:
    prompt = assemble(SYSTEM, history_of(FIRST, SECOND, THIRD), QUESTION).messages[0].text
    assert "오전과 오후" not in prompt
    assert "오세라" not in prompt
    assert "질문: 예산은 얼마로 할까요?" in prompt
    assert all(words in prompt for words in ("서버를 옮기기로 함.", "14일 오전으로 정함.", "김민수가 맡음."))


@pytest.mark.parametrize("strategy", [RollingStrategy(Limits()), CompactionStrategy(Limits())])
def test_each_strategy_that_sends_records_does_so(strategy: RollingStrategy | CompactionStrategy) -> None:
    built = strategy.assemble(SYSTEM, history_of(FIRST, SECOND), QUESTION)
    text = "\n".join(message.text for message in built.messages)
    assert "오전과 오후" not in text
    assert "오세라" in text


def test_what_is_counted_is_what_is_sent() -> None:
    history = history_of(FIRST, SECOND)
    sent = without_answered(history, "ko")
    assert sent[0]["summary_tokens"] == estimate_tokens("[1-3턴] (1턴) 서버를 옮기기로 함.")
    assert sent[1] == history[1]
    items = assemble(SYSTEM, history, QUESTION).items
    assert [item.tokens for item in items if item.kind == "record"] == [each["summary_tokens"] for each in sent]
    snapshot = snapshot_of([], [record_of((1, 2, 3), FIRST), record_of((4, 5, 6), SECOND)])
    assert snapshot.context_tokens == sum(each["summary_tokens"] for each in sent)


def test_the_prefix_changes_with_a_fold_only_and_only_behind_the_text_of_a_record() -> None:
    def prompt(history: list[HistoryEntry], messages: Messages) -> str:
        return assemble(SYSTEM, history, messages).messages[0].text

    raw = [*QUESTION, *QUESTION]
    before = prompt(history_of(FIRST, SECOND), QUESTION)
    assert prompt(history_of(FIRST, SECOND), raw) == before
    after = prompt(history_of(FIRST, SECOND, THIRD), QUESTION)
    assert before.partition("\n  질문:")[0] == after.partition("\n[7-9턴]")[0]


def test_an_input_holds_a_record_whose_question_it_lacks() -> None:
    first, second = record_of((1, 2, 3), FIRST), record_of((4, 5, 6), SECOND)
    built = assemble(SYSTEM, [to_entry(first), to_entry(second)], QUESTION)
    spec = fold_of((first, second), [], kind="rolling", rate=0.3, language="ko", style="rolling")
    last = LastInput("m", built, (), AIMessage("네", id="a10"))
    assert last.holds(spec)


def test_a_summariser_reads_the_newest_question_alone() -> None:
    first, second = record_of((1, 2, 3), FIRST), record_of((4, 5, 6), SECOND)
    (read,) = previous_summary([first, second], "ko")
    assert "오전과 오후" not in read.text
    assert "오세라" in read.text
    (alone,) = previous_summary([first], "ko")
    assert alone.text == FIRST


@pytest.mark.parametrize(
    "question", ["질문: 나머지 평면도의 축척", "Question: the scale of the remaining plans", "(3턴) 질문: 축척은요"]
)
def test_the_question_outlives_shortening(question: str) -> None:
    text = "\n".join(
        [*(f"({turn}턴) 도면 {turn * 37}장을 검토함. 왜 늦었나요? 늦은 까닭도 적음." for turn in (1, 2, 3)), question]
    )

    def fits(shorter: str) -> bool:
        return len(shorter) <= 90

    assert shorten(text, fits, max_chars=90, must_fit=fits).endswith(question.removeprefix("(3턴) "))
