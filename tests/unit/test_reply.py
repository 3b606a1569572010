from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.model_input import SystemPart, assemble, system_part
from graph.core.review import quote
from graph.offline.intent import Intent, find_intent
from graph.offline.passage import read_passages
from graph.offline.phrase import ENGLISH, KOREAN
from graph.offline.reply import CLOCK_TOOL, Reply, compose
from graph.record import HistoryEntry

TOOLS = (CLOCK_TOOL, "web_search")
SYSTEM = SystemPart("당신은 유용한 AI 어시스턴트입니다.", 1)
KOREAN_SUMMARIES = (
    "저는 김하늘이고 제주도 여행을 준비하고 있어요. 예산은 120만 원이고 2026년 3월 15일에 출발해요.",
    "숙소는 서귀포의 올레펜션으로 결정했어요. 예약번호는 JJ-20394예요.",
)
ENGLISH_SUMMARIES = ("I'm Alex. The launch date is 2026-05-04 and the budget is $12,000. We chose Postgres.",)


def entry(number: int, summary: str) -> HistoryEntry:
    turns = [number * 3 - 2, number * 3 - 1, number * 3]
    return HistoryEntry(
        thread_id="s", turns=turns, turn_length=3, original_chars=900, summary_chars=len(summary), compression_rate=0.3,
        summary=summary, id=f"r{number}", kind="interval", version=1, to_position=number * 6, summary_tokens=9,
    )  # fmt: skip


def sent(question: str, *, summaries: tuple[str, ...] = (), raw: tuple[AnyMessage, ...] = ()) -> list[AnyMessage]:
    history = [entry(number, summary) for number, summary in enumerate(summaries, start=1)]
    return list(assemble(SYSTEM, history, [*raw, HumanMessage(question)]).messages)


def answer(question: str, *, summaries: tuple[str, ...] = (), raw: tuple[AnyMessage, ...] = ()) -> str:
    return compose(sent(question, summaries=summaries, raw=raw), TOOLS).text


@pytest.mark.parametrize(
    ("question", "fact"),
    [
        ("예산이 얼마였지?", "120만 원"),
        ("언제 출발하지?", "3월 15일"),
        ("제 이름이 뭐였죠?", "김하늘"),
        ("숙소 알려줘", "올레펜션"),
    ],
)
def test_a_korean_question_is_answered_from_the_summaries(question: str, fact: str) -> None:
    text = answer(question, summaries=KOREAN_SUMMARIES)
    assert fact in text
    assert "턴 요약에서)" in text


def test_each_part_of_a_question_gets_its_answer_and_its_source() -> None:
    text = answer("예산이 얼마였지? 예약번호도 알려줘", summaries=KOREAN_SUMMARIES)
    assert "120만 원이고 2026년 3월 15일에 출발해요. (1-3턴 요약에서)" in text
    assert "JJ-20394예요. (4-6턴 요약에서)" in text


@pytest.mark.parametrize(
    ("question", "fact"),
    [("What was the budget?", "$12,000"), ("When do we launch?", "2026-05-04"), ("What is my name?", "Alex")],
)
def test_an_english_question_is_answered_in_english(question: str, fact: str) -> None:
    text = answer(question, summaries=ENGLISH_SUMMARIES)
    assert fact in text
    assert "(from the summary of turns 1-3)" in text


def test_what_was_said_in_a_raw_turn_is_found_too() -> None:
    raw = (HumanMessage("기억해 줘: 배포는 10월 14일, 담당은 민지야"), AIMessage("네."))
    assert "- 배포는 10월 14일, 담당은 민지야 (이전 대화에서)" in answer("담당이 누구야?", raw=raw)


def test_without_the_summary_the_fact_is_gone() -> None:
    assert "120만" not in answer("예산이 얼마였지?")
    assert KOREAN["not_found"] in answer("예산이 얼마였지?")


def test_the_newer_of_two_like_facts_goes_first() -> None:
    raw = (
        HumanMessage("예산은 120만 원이에요."),
        AIMessage("네."),
        HumanMessage("예산은 150만 원이에요."),
        AIMessage("네."),
    )
    text = answer("예산이 얼마야?", raw=raw)
    assert text.index("150만") < text.index("120만")


def test_a_verbatim_record_is_read_without_its_speakers() -> None:
    text = answer("배포가 언제야?", summaries=("(원문)\n> 사용자: 배포는 10월 14일이야\n> AI: 네, 알겠습니다.",))
    assert "- 배포는 10월 14일이야 (1-3턴 요약에서)" in text


@pytest.mark.parametrize(
    ("said", "noted"),
    [
        ("기억해 줘: 배포는 10월 14일, 담당은 민지야", "기억해 두겠습니다: 배포는 10월 14일, 담당은 민지야"),
        ("내 생일은 5월 3일이야. 기억해 줘.", "기억해 두겠습니다: 내 생일은 5월 3일이야."),
        ("Remember: we deploy on October 14", "Noted: we deploy on October 14"),
        ("My name is Alex.", "Noted: My name is Alex."),
    ],
)
def test_facts_are_acknowledged_in_the_language_of_the_user(said: str, noted: str) -> None:
    assert noted in answer(said)


def test_its_own_phrases_and_questions_are_never_quoted_back() -> None:
    raw: tuple[AnyMessage, ...] = ()
    for question in ("예산은 90만 원이에요.", "예산이 얼마야?", "예산 알려줘", "예산 다시 말해 줄래?"):
        raw = (*raw, HumanMessage(question), AIMessage(answer(question, raw=raw)))
    quoted = [line for line in answer("예산이 얼마였지?", raw=raw).splitlines() if line.startswith("- ")]
    assert quoted == ["- 예산은 90만 원이에요. (이전 대화에서)"]


def test_it_says_what_it_is_at_first_and_when_asked_and_not_under_every_answer() -> None:
    raw = (HumanMessage("예산은 90만 원이에요."), AIMessage("네."))
    assert answer("예산은 90만 원이에요.").endswith(KOREAN["introduction"])
    assert answer("The budget is 90.").endswith(ENGLISH["introduction"])
    assert answer("너는 어떤 모델이야?", raw=raw).endswith(KOREAN["introduction"])
    assert answer("고마워", raw=raw) == KOREAN["thanks"]
    assert answer("thanks", summaries=ENGLISH_SUMMARIES) == ENGLISH["thanks"]


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("지금 몇 시야?", {}),
        ("몇 시야", {}),
        ("오늘 며칠이야?", {}),
        ("오늘 무슨 요일이지?", {}),
        ("지금 서울은 몇 시야?", {"timezone": "Asia/Seoul"}),
        ("도쿄 시간 알려줘", {"timezone": "Asia/Tokyo"}),
        ("런던 현재 시각 좀 알려주세요", {"timezone": "Europe/London"}),
        ("뉴욕은 지금 몇 시인가요?", {"timezone": "America/New_York"}),
        ("UTC로 지금 시간", {"timezone": "UTC"}),
        ("What time is it?", {}),
        ("what's the time in Tokyo", {"timezone": "Asia/Tokyo"}),
        ("What time is it in Seoul?", {"timezone": "Asia/Seoul"}),
        ("current time in Europe/Madrid please", {"timezone": "Europe/Madrid"}),
        ("what is today's date?", {}),
    ],
)
def test_a_question_for_the_time_calls_the_clock(question: str, arguments: dict[str, str]) -> None:
    assert compose(sent(question), TOOLS) == Reply(tool=CLOCK_TOOL, arguments=arguments)


@pytest.mark.parametrize(
    "question",
    ["회의 몇 시야?", "몇 시간 걸려?", "몇 시에 출발하지?", "What time is the meeting?", "시간 관리 방법을 알려줘"],
)
def test_a_question_for_another_time_does_not(question: str) -> None:
    assert compose(sent(question), TOOLS).tool == ""


def test_without_the_tool_no_call_is_made() -> None:
    reply = compose(sent("지금 몇 시야?"), ())
    assert reply.tool == ""
    assert KOREAN["no_clock"] in reply.text


@pytest.mark.parametrize(
    ("question", "result", "told"),
    [
        (
            "지금 서울은 몇 시야?",
            "2026-11-21 08:05:12 Saturday, Asia/Seoul (UTC+09:00)",
            "지금 서울은 2026년 11월 21일 토요일 오전 8시 5분입니다.",
        ),
        (
            "도쿄는?",
            "2026-11-21 00:30:00 Saturday, Asia/Tokyo (UTC+09:00)\n\n(note)",
            "지금 도쿄는 2026년 11월 21일 토요일 오전 12시 30분입니다.",
        ),
        (
            "What time is it in London?",
            "2026-11-20 23:05:12 Friday, Europe/London (UTC+00:00)",
            "In London it is 23:05 on Friday, 2026-11-20.",
        ),
        ("지금 화성은?", "There is no time zone 'Mars'.", "> There is no time zone 'Mars'."),
    ],
)
def test_the_result_of_the_clock_is_told_in_the_language_of_the_user(question: str, result: str, told: str) -> None:
    call = AIMessage("", tool_calls=[{"name": CLOCK_TOOL, "args": {}, "id": "c"}])
    reply = compose([*sent(question), call, ToolMessage(result, tool_call_id="c")], TOOLS)
    assert told in reply.text
    assert reply.tool == ""


def test_it_explains_how_folding_works() -> None:
    assert "4턴, 7턴, 10턴" in answer("요약은 언제, 어떻게 만들어져?")
    assert "turn 4, 7, 10" in answer("When and how are summaries made?")


def test_a_table_is_made_of_what_was_said() -> None:
    text = answer("지금까지 내용을 표로 정리해줘", summaries=KOREAN_SUMMARIES)
    assert "| 예약번호는 JJ-20394예요. | (4-6턴 요약에서) |" in text


@pytest.mark.parametrize("request_", ["계획을 표로 만들어 줘", "정리된 표가 필요해. 표로 줘"])
def test_a_table_of_little_in_common_holds_all_that_was_said_in_order(request_: str) -> None:
    rows = [line for line in answer(request_, summaries=KOREAN_SUMMARIES).splitlines() if line.startswith("| ")]
    facts = [fact.removesuffix(".") for summary in KOREAN_SUMMARIES for fact in summary.split(". ")]
    assert len(rows) == len(facts) + 2
    for row, fact in zip(rows[2:], facts, strict=True):
        assert fact in row


def test_a_table_of_nothing_says_so() -> None:
    assert "|" not in answer("Plan my week of study in a table")


def test_a_recap_lists_everything_with_its_source() -> None:
    text = answer("지금까지 이야기를 요약해줘", summaries=KOREAN_SUMMARIES)
    for summary, turns in zip(KOREAN_SUMMARIES, ("1-3", "4-6"), strict=True):
        for fact in summary.split(". "):
            assert f"- {fact.removesuffix('.')}. ({turns}턴 요약에서)" in text


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("안녕하세요!", "greeting"), ("hi", "greeting"), ("고마워요", "thanks"), ("bye", "farewell"),
        ("네", "acknowledged"),
        ("너는 누구야?", "identity"), ("Who are you?", "identity"), ("Which model are you?", "identity"),
        ("뭘 할 수 있어?", "ability"), ("What can you do?", "ability"), ("담당자가 누구야?", "question"),
        ("시를 한 편 써줘", "request"), ("Can you write a poem?", "request"), ("내일은 부산에 간다", "statement"),
        ("지금까지 무슨 얘기 했지?", "recap"), ("summarize this", "recap"), ("", "statement"),
    ],
)  # fmt: skip
def test_intents(text: str, intent: Intent) -> None:
    assert find_intent(text) == intent


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_input_gets_the_same_answer_each_time_and_never_a_blank_one(summary: str, question: str) -> None:
    messages = [SystemMessage(f"[이전 대화 요약]\n[1-3턴] {summary}"), HumanMessage(question)]
    reply = compose(messages, ())
    assert reply.text.strip()
    assert reply == compose(messages, ())


def test_english_summaries_are_read_with_their_turns_and_without_their_speakers() -> None:
    verbatim = quote([HumanMessage("The release is on October 14."), AIMessage("Fine.")], "en")
    history = [entry(1, verbatim), entry(2, "The budget is 900 dollars.")]
    system = system_part("en", can_recall=True)
    read = list(assemble(system, history, [HumanMessage("When is the release?")]).messages)
    assert [(passage.text, passage.turns) for passage in read_passages(read)] == [
        ("The release is on October 14.", "1-3"),
        ("Fine.", "1-3"),
        ("The budget is 900 dollars.", "4-6"),
    ]
    told = compose(read, TOOLS).text
    assert "October 14" in told
    assert ENGLISH["introduction"] not in told
