"""What the embedded model says: a case for each of its skills."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool

from graph.core.model_input import SystemPart, assemble, system_part
from graph.core.pin import ContextBlock
from graph.core.turn import EMBEDDED_MODEL, NOTE_TOOLS, undivided
from graph.offline.chat_model import CLOCK_TOOL, OfflineChat, Reply, compose
from graph.offline.phrase import ENGLISH, KOREAN
from graph.value.record import HistoryEntry
from prompt.system.framing import LEDGER_HEADING, SPEAKER

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


def test_what_is_kept_word_for_word_is_quoted_from_its_turn_and_nothing_of_what_frames_it() -> None:
    for system, kept, question, quoted in (
        (
            SYSTEM,
            "야간버스는 절대 타지 않아요",
            "지금까지 정한 것을 다시 알려 줘",
            "야간버스는 절대 타지 않아요 (1턴의 원문에서)",
        ),
        (
            system_part("en", can_recall=True),
            "We never take the night bus",
            "What have we settled so far?",
            "We never take the night bus (from turn 1)",
        ),
    ):
        record: HistoryEntry = {**entry(1, KOREAN_SUMMARIES[0]), "ledger": [[1, "negation", kept]]}
        text = compose(list(assemble(system, [record], [HumanMessage(question)]).messages), TOOLS).text
        assert f"- {quoted}" in text.splitlines()
        assert not any(words in text for heading in LEDGER_HEADING.values() for words in heading.splitlines())


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
    # How a text is to be, with a rule or another value, doesn't make it less of a request.
    "시를 써 주세요.", "마감은 12월 18일입니다. 안내 메일 초안을 써 주세요.", "12월 18일 회의 공지를 작성해 주세요.",
    "이 문장을 고쳐 주세요: 1월 10일 말고 1월 3일로 가요.", "절대 어렵지 않게 설명해 주세요.", "500자로 써 주세요.",
    "이 글을 3줄로 줄여 주세요.", "앞으로 할 일을 추천해 주세요.", "예산은 120만 원인데 여행지를 골라 주세요.",
    "파이썬 코드로 바꿔 주세요.", "이 코드를 Rust로 바꿔 줘", "항상 헷갈리는 함수를 설명해 주세요.",
    "영어로 번역 부탁드립니다: 마감은 12월 18일로 바꿨습니다.", "회의 공지 메일 부탁드립니다.",
    "노래 가사를 지어 주세요.", "4명 말고 5명 기준으로 계산해 주세요.", "축하 문구를 만들어 주시겠어요?",
    "버그 좀 잡아 주세요.", "Write me a poem", "Write a haiku, and never use the word sea.",
    "Rewrite this in 60 words instead of 90.", "Write 300 words, not 500.", "Give me 5 ideas instead of 3.",
    "Make me a list of 5 cities, not 3.", "Fix this sentence: we met on 3 May, not on 4 May.",
    "Can you write an email that says the deadline moved to 18 December?",
    "The deadline is 18 December. Please write a reminder.", "Could you please translate this into Korean?",
    "Explain what happens from 1914 to 1918.", "I'd like you to act as a travel guide.",
    "Make a haiku about the sea, don't rhyme.",
    "Help me plan a party for 12 people.", "Can you shorten it to 60 words?",
    "Fix the bug in this function, but don’t change its name.", "Suggest a name that is not taken.",
    "Would you describe the view from 22 Hill Road?", "Translate the dates from May 3 to May 5 into Korean.",
    "이 보고서 초안을 꼭 첨삭해 주세요.", "12월 18일로 바뀌었는지 확인해 주세요.",
)  # fmt: skip
SAID = (
    "나는 서울에 살아", "오늘 회의는 3시예요", "내일 친구에게 선물을 줘야 해요", "저는 매일 데이터를 분석해요",
    "My name is Alex and I live in Oslo.", "We meet at 3 today.", "Code freeze is 10 May.", "I need a visa by May.",
    # Asked politely is only that what was said is kept, followed or put in the place of what was said before.
    "담당은 박지훈 과장이고, 마감은 12월 18일입니다. 잊지 말아 주세요: 교육 자료는 A4 20쪽을 넘기면 안 됩니다.",
    "마감은 12월 18일입니다. 꼭 지켜 주세요.", "외부 강사 계정 기준을 바꿀게요. 90일이 아니라 60일로 해 주세요.",
    "저는 마케팅팀 김하늘입니다. 잘 부탁드립니다.", "예산은 120만 원을 넘기지 않게 해 주세요.",
    "업무 시간에는 서비스를 멈추지 말아 주세요.", "회의를 금요일 오후 3시로 옮겨 주세요.",
    "담당자를 박지훈 과장으로 바꿔 주세요.", "발표를 12월 3일로 미뤄 주세요.", "목표를 90점으로 잡아 주세요.",
    "계약서는 법무팀 승인 전까지 꼭 보관해 주세요.", "이 기준을 따라 주세요: 비밀번호는 12자리 이상입니다.",
    "견적 금액은 부가세 별도입니다. 참고 부탁드립니다.", "마감이 12월 18일이니 늦지 않게 준비해 주세요.",
    "앞으로는 금액을 원 단위로 써 주세요.", "사내 규정 4.2를 준수해 주시기 바랍니다. 위반하면 계정이 정지됩니다.",
    "납품일은 3월 2일로 확정됐습니다. 유의해 주세요.", "데이터베이스는 PostgreSQL 16으로 바꿔 주세요.",
    "제 생일은 5월 4일이라는 걸 기억해 주시겠어요?", "회의록에는 고객 이름을 빼 주세요.",
    "보관 기간은 60일로 해 주실 수 있나요?", "서버 이전은 10월 1일에 합니다. 명심해 주세요.",
    "The deadline is 18 December. Please remember it.", "Please remember: the deadline is 18 December.",
    "Please use 60 days instead of 90.", "Make it 60 days instead of 90.",
    "Please make sure the report stays under 20 pages.", "Could you keep in mind that the budget is $4,000?",
    "Correct the budget to $4,000.", "Please make a note: the launch is on 5 May.",
    "Write this down: the door code is 4821.", "I'd like you to remember that Ana is on leave until Monday.",
    "Let's make it 5 May, not 4 May.", "Write prices in euros from now on.",
    "Make sure nobody restarts the server during office hours.", "Can you make it 3pm instead of 2pm?",
    "My budget is $900. Please stick to it.", "Please never mention the price in a mail to customers.",
    "We moved the launch to 5 May. Please note that.", "The owner is Priya Nair. Please keep it that way.",
    "Could you please note that the invoice number is INV-2291?", "From now on, show amounts without cents.",
    "Please respect the quiet hours, 22:00 to 07:00.", "Would you make sure that the backup runs at 3 a.m.?",
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


def test_a_value_given_by_a_polite_request_is_found_again_and_the_wish_to_keep_it_is_nothing_that_was_said() -> None:
    for said, asked, found in (
        ("보관 기간은 90일이 아니라 60일로 해 주세요. 꼭 지켜 주세요.", "보관 기간이 얼마였죠?", "60일로 해 주세요."),
        ("Please use 60 days for the backups, not 90. Please stick to it.", "How long for the backups?", "use 60 days"),
    ):
        text = answer(asked, raw=dialogue(said))
        assert found in text
        assert "지켜" not in answer("지금까지 이야기를 정리해 주세요", raw=dialogue(said))
        assert "stick" not in answer("Recap so far", raw=dialogue(said))
    raw = dialogue("The database is PostgreSQL 15.", "Please sum up what we decided.")
    assert "sum up" not in answer("What is next?", raw=raw)
    assert "PostgreSQL 15" in answer("Please sum up what we decided.", raw=raw)
    assert answer("The costs sum up to $40.", raw=raw).startswith("Noted")
    text = answer("담당은 박지훈 과장입니다. 잊지 말아 주세요: 마감은 3일입니다. 꼭 지켜 주세요.", raw=dialogue("네"))
    assert text == KOREAN["noted"].format("담당은 박지훈 과장입니다. 마감은 3일입니다.")


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
