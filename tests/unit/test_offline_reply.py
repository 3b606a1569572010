"""What the embedded model says: a case for each of its skills."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from graph.core.model_input import SystemPart, assemble
from graph.core.pin import ContextBlock
from graph.core.turn import EMBEDDED_MODEL, NOTE_TOOLS, undivided
from graph.offline.chat_model import CLOCK_TOOL, OfflineChat, Reply, compose
from graph.offline.phrase import ENGLISH, KOREAN
from graph.value.record import HistoryEntry
from prompt.system.framing import SPEAKER

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


def dialogue(*texts: str) -> tuple[AnyMessage, ...]:
    return tuple(message for text in texts for message in (HumanMessage(text), AIMessage("네.")))


@tool
def get_current_time(timezone: str = "") -> str:
    """Tells the time."""
    return f"2026-11-21 08:50:12 Saturday, {timezone} (UTC+09:00)"


def test_it_streams_word_by_word_and_asks_a_clock_that_it_was_given() -> None:
    model = OfflineChat(pause_seconds=0)
    streamed = [str(chunk.content) for chunk in model.stream([HumanMessage("안녕하세요")]) if chunk.content]
    greeting = f"{KOREAN['greeting']}\n\n{KOREAN['introduction']}"
    assert "".join(streamed) == model.invoke([HumanMessage("안녕하세요")]).content == greeting
    assert len(streamed) == len(greeting.split())
    offered = model.bind_tools([get_current_time])
    asked = [SystemMessage("규칙"), HumanMessage("지금 도쿄는 몇 시야?", id="h1")]
    call, other_turn = offered.invoke(asked), offered.invoke([HumanMessage("지금 도쿄는 몇 시야?", id="h2")])
    assert [(each["name"], each["args"]) for each in call.tool_calls] == [(CLOCK_TOOL, {"timezone": "Asia/Tokyo"})]
    assert call.response_metadata == {"model_name": EMBEDDED_MODEL, "finish_reason": "tool_calls"}
    assert call.usage_metadata is None
    assert other_turn.tool_calls[0]["id"] != call.tool_calls[0]["id"]
    assert model.bind_tools([get_current_time], tool_choice="none").invoke(asked).tool_calls == []
    told = offered.invoke([*asked, call, get_current_time.invoke(call.tool_calls[0])]).content
    assert "도쿄는 2026년 11월 21일 토요일 오전 8시 50분" in str(told)


def test_a_question_is_answered_from_the_summaries_in_its_language() -> None:
    for question, fact, source, summaries in (
        ("예산이 얼마였지? 예약번호도 알려줘", "120만 원", "(1-3턴 요약에서)", KOREAN_SUMMARIES),
        ("예산이 얼마였지? 예약번호도 알려줘", "JJ-20394예요.", "(4-6턴 요약에서)", KOREAN_SUMMARIES),
        ("When do we launch?", "2026-05-04", "(from the summary of turns 1-3)", ENGLISH_SUMMARIES),
    ):
        text = answer(question, summaries=summaries)
        assert fact in text
        assert source in text
        assert fact not in answer(question)


def test_what_was_said_in_raw_turns_is_found_too_the_newer_first_and_nothing_of_its_own() -> None:
    raw = dialogue("예산은 120만 원이에요.", "예산은 150만 원이에요.")
    text = answer("예산이 얼마야?", raw=raw)
    assert text.index("150만") < text.index("120만")
    raw = ()
    for question in ("예산은 90만 원이에요.", "예산이 얼마야?", "예산 알려줘"):
        raw = (*raw, HumanMessage(question), AIMessage(answer(question, raw=raw)))
    quoted = [line for line in answer("예산이 얼마였지?", raw=raw).splitlines() if line.startswith("- ")]
    assert quoted == ["- 예산은 90만 원이에요. (이전 대화에서)"]
    assert KOREAN["not_found"] in answer("예산이 얼마였지?")


def test_it_says_what_it_is_at_first_and_when_asked_and_not_under_every_answer() -> None:
    raw = dialogue("예산은 90만 원이에요.")
    assert answer("예산은 90만 원이에요.").endswith(KOREAN["introduction"])
    assert answer("The budget is 90.").endswith(ENGLISH["introduction"])
    assert answer("너는 어떤 모델이야?", raw=raw).endswith(KOREAN["introduction"])
    assert answer("고마워", raw=raw) == KOREAN["thanks"]
    assert "4턴, 7턴, 10턴" in answer("요약은 언제, 어떻게 만들어져?")
    assert "기억해 두겠습니다: 배포는 10월 14일" in answer("기억해 줘: 배포는 10월 14일")
    assert "Noted: My name is Alex." in answer("My name is Alex.")


def test_a_question_for_the_time_of_the_day_calls_the_clock_and_its_result_is_told() -> None:
    for question, zone in (("오늘 무슨 요일이지?", {}), ("what's the time in Tokyo", {"timezone": "Asia/Tokyo"})):
        assert compose(sent(question), TOOLS) == Reply(tool=CLOCK_TOOL, arguments=zone)
    for question in ("회의 몇 시야?", "몇 시간 걸려?", "What time is the meeting?"):
        assert compose(sent(question), TOOLS).tool == ""
    assert KOREAN["no_clock"] in compose(sent("지금 몇 시야?"), ()).text
    call = AIMessage("", tool_calls=[{"name": CLOCK_TOOL, "args": {}, "id": "c"}])
    for question, result, told in (
        ("In London?", "2026-11-20 23:05:12 Friday, Europe/London (UTC+00:00)", "London it is 23:05 on Friday, 2026-"),
        ("지금 화성은?", "There is no time zone 'Mars'.", "> There is no time zone 'Mars'."),
    ):
        assert told in compose([*sent(question), call, ToolMessage(result, tool_call_id="c")], TOOLS).text


def test_a_table_and_a_recap_hold_all_that_was_said_in_order() -> None:
    facts = [fact.removesuffix(".") for summary in KOREAN_SUMMARIES for fact in summary.split(". ")]
    rows = answer("계획을 표로 만들어 줘", summaries=KOREAN_SUMMARIES).splitlines()
    rows = [line for line in rows if line.startswith("| ")]
    assert len(rows) == len(facts) + 2
    for row, fact in zip(rows[2:], facts, strict=True):
        assert fact in row
    recap = answer("지금까지 이야기를 요약해줘", summaries=KOREAN_SUMMARIES)
    assert all(f"- {fact}. (" in recap for fact in facts)
    assert "|" not in answer("Plan my week of study in a table")


WRITING = (
    "파이썬으로 피보나치 함수를 짜 줘", "이메일 초안 작성해 줘", "이 문장을 고쳐 줘: 나는 학교를 갔다",
    "이 문장 좀 다듬어줘", "영어로 번역해줘: 안녕하세요", "양자역학을 쉽게 설명해 줘", "시 하나 써줘",
    "이 기사를 요약해 줘: 정부는 오늘 새 정책을 발표했다. 시행은 내년이다.", "버그 좀 잡아 줘", "SQL 쿼리 작성",
    "안녕? 회의록 양식 좀 짜줄 수 있어?", "회의 공지 메일 부탁해", "자기소개서 첨삭해 주세요",
    "엑셀 함수 설명해 주실 수 있나요", "다음 코드를 고쳐 줘.\nprint(1", "정렬 알고리즘 설명해봐",
    "Write a Fibonacci function", "Hi! Can you write me a cover letter?", "Hi, write a haiku.",
    "Explain quantum computing to a ten-year-old", "Draft an email to my landlord", "Tell me a joke",
    "Fix this sentence: He go to school.", "I need a regex for email addresses", "Help me plan a birthday party",
    "Summarize this article: The government announced a policy today. It starts next year.", "Debug this code: print(1",
    "Please proofread this paragraph.", "I want you to act as a travel guide", "Let's write a story together",
)  # fmt: skip
SAID = (
    "나는 서울에 살아", "오늘 회의는 3시예요", "내일 친구에게 선물을 줘야 해요", "저는 매일 데이터를 분석해요",
    "My name is Alex and I live in Oslo.", "We meet at 3 today.", "Code freeze is 10 May.", "I need a visa by May.",
)  # fmt: skip


@pytest.mark.parametrize("message", WRITING + SAID)
def test_a_first_message_that_takes_a_real_model_is_told_so_and_what_is_said_is_noted(message: str) -> None:
    say = KOREAN if any("가" <= char <= "힣" for char in message) else ENGLISH
    noted = say["noted"].partition("{")[0]
    for before in ((), dialogue("예산은 90만 원이에요.", "We chose Postgres.")):
        text = answer(message, raw=before)
        assert (say["cannot_write"] in text, noted in text) == ((message in WRITING), (message in SAID))
        # How a real model is set stands there, once.
        assert text.count("OPENAI_BASE_URL") == (message in WRITING or not before)


def test_a_plan_without_anything_said_takes_a_real_model_too() -> None:
    assert KOREAN["cannot_write"] in answer("도쿄 여행 일정 짜줘")
    assert ENGLISH["cannot_write"] in answer("Plan a trip to Tokyo")


def test_what_the_clock_told_is_nothing_that_was_said() -> None:
    told = "지금 서울은 2026년 11월 21일 토요일 오전 9시 3분입니다. (Asia/Seoul, UTC+09:00)"
    english = "In Seoul it is 09:03 on Saturday, 2026-11-21. (Asia/Seoul, UTC+09:00)"
    text = answer("서울은 요즘 토요일 오전에 붐벼요.", summaries=(f"{SPEAKER['ko']['ai']}: {told}", english))
    assert "9시 3분" not in text
    assert "09:03" not in answer("On Saturday we are in Seoul.", summaries=(english,))


def test_a_project_is_left_to_real_models() -> None:
    front = "## 영구 컨텍스트\nprojectMemory:\n    DECISIONS: 배포는 금요일 (2026-03-01)"
    system = replace(SYSTEM, front=ContextBlock("front", 1, undivided(front)))
    asked = HumanMessage("결정: 포트는 9090으로 하자. 배포는 언제로 결정했지?")
    reply = compose(assemble(system, [], [asked]).messages, NOTE_TOOLS)
    assert (reply.tool, "금요일" in reply.text) == ("", False)


@given(st.text(max_size=200), st.text(max_size=200))
def test_any_input_gets_the_same_answer_each_time_and_never_a_blank_one(summary: str, question: str) -> None:
    messages = [SystemMessage(f"[이전 대화 요약]\n[1-3턴] {summary}"), HumanMessage(question)]
    reply = compose(messages, ())
    assert reply.text.strip()
    assert reply == compose(messages, ())
