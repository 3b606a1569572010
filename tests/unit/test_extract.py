from __future__ import annotations

import json
from threading import Event

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.fold.extract import cut_at_word, extract_summary
from graph.model.summariser import ExtractiveSummariser
from prompt.system.framing import note_cut

KOREAN_TALK: list[AnyMessage] = [
    HumanMessage(
        "안녕하세요! 저는 김하늘이고 제주도 여행을 준비하고 있어요. 예산은 120만 원이고 2026년 3월 15일에 출발해요."
    ),
    AIMessage(
        "반갑습니다. 제주도 여행은 봄이 좋습니다. 렌터카를 미리 예약하면 비용을 줄일 수 있습니다. "
        "숙소는 서귀포 쪽이 조용합니다. 더 궁금한 점이 있으면 말씀해 주세요."
    ),
    HumanMessage("숙소는 서귀포의 올레펜션으로 결정했어요. 예약번호는 JJ-20394예요."),
    AIMessage("기억해 두겠습니다: 숙소는 서귀포의 올레펜션으로 결정했어요. 예약번호는 JJ-20394예요."),
    HumanMessage("고마워요!"),
    AIMessage("천만에요. 이어서 말씀해 주세요.\n\n— 내장 오프라인 모델"),
]
ENGLISH_TALK: list[AnyMessage] = [
    HumanMessage("Hello! I'm Alex and I run the billing team. What do you think about our choices?"),
    AIMessage("That depends on many things. It is always good to think about choices. Tell me more."),
    HumanMessage("We decided to launch on 2026-05-04 with Postgres 16.2. The owner of ticket BILL-442 is Priya."),
    AIMessage("That sounds like a reasonable approach to take. Anything else to talk about?"),
]


def pick(talk: list[AnyMessage], target_chars: int) -> str:
    """What a fold gets without a model: the offline model's own words count as nothing said."""
    return ExtractiveSummariser().summarise(talk, target_chars, stop=Event(), deadline_seconds=1).text


def chars_of(messages: list[AnyMessage]) -> int:
    return sum(len(str(message.content)) for message in messages)


def test_korean_facts_go_first() -> None:
    summary = extract_summary(KOREAN_TALK, int(chars_of(KOREAN_TALK) * 0.3))
    assert "120만 원이고 2026년 3월 15일" in summary
    assert "올레펜션" in summary


def test_english_facts_go_first() -> None:
    summary = extract_summary(ENGLISH_TALK, int(chars_of(ENGLISH_TALK) * 0.3))
    assert "2026-05-04 with Postgres 16.2" in summary
    assert "BILL-442" in summary


@pytest.mark.parametrize("rate", [0.1, 0.2, 0.3, 0.5])
@pytest.mark.parametrize("talk", [KOREAN_TALK, ENGLISH_TALK], ids=["ko", "en"])
def test_length_follows_the_target(talk: list[AnyMessage], rate: float) -> None:
    target_chars = int(chars_of(talk) * rate)
    assert 0.5 * target_chars <= len(extract_summary(talk, target_chars)) <= 1.1 * target_chars


def test_sentences_keep_the_order_of_the_source() -> None:
    summary = extract_summary(KOREAN_TALK, 120)
    assert summary.index("120만") < summary.index("올레펜션") < summary.index("JJ-20394")


def test_repetitions_greetings_and_fixed_words_are_left_out_while_there_is_better() -> None:
    summary = pick(KOREAN_TALK, 200)
    assert summary.count("JJ-20394") == 1
    for dull in ("안녕하세요", "고마워요", "기억해 두겠습니다", "오프라인", "천만에요"):
        assert dull not in summary


def test_a_talk_of_greetings_alone_still_gives_something() -> None:
    assert extract_summary([HumanMessage("안녕하세요!"), AIMessage("반갑습니다.")], 5) != ""


def test_results_of_tools_count() -> None:
    messages: list[AnyMessage] = [
        HumanMessage("서버 상태를 알려줘"),
        ToolMessage("host=db-7 disk=91% uptime=33d", tool_call_id="c"),
        AIMessage("확인했습니다."),
    ]
    assert "db-7" in extract_summary(messages, 40)


def test_content_in_blocks_counts() -> None:
    message = HumanMessage([{"type": "text", "text": "예산은 90만 원이에요."}, {"type": "image_url", "image_url": "x"}])
    assert extract_summary([message], 100) == "예산은 90만 원이에요. [image]"


def test_nothing_gives_nothing() -> None:
    assert extract_summary([], 100) == ""
    assert extract_summary([HumanMessage(""), AIMessage(" \n ")], 100) == ""


def test_one_sentence_too_long_is_cut_between_words() -> None:
    sentence = "alpha " * 50
    summary = extract_summary([HumanMessage(sentence)], 40)
    assert summary.endswith("alpha…")
    assert 20 <= len(summary) <= 40


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [("one two", 7, "one two"), ("one two", 6, "one…"), ("onetwothree", 6, "onetw…"), ("one", 1, "o"), ("one", 0, "")],
)
def test_cut_at_word(text: str, limit: int, expected: str) -> None:
    assert cut_at_word(text, limit) == expected


SENTENCE = st.sampled_from(
    [
        "예산은 {}만 원입니다.",
        "회의는 {}시로 정했어요.",
        "We agreed on version {}.",
        "그건 왜 그런가요?",
        "안녕하세요!",
        "thanks",
        "The file is src/a{}.py.",
        "정말 좋네요.",
        "{}",
    ]
)
LONG_SENTENCE = 40
TALK = st.lists(st.tuples(SENTENCE, st.integers(0, 99)), min_size=1, max_size=40).map(
    lambda parts: [(HumanMessage if number % 2 else AIMessage)(sentence.format(number)) for sentence, number in parts]
)


@given(TALK, st.integers(1, 2_000))
def test_any_talk_gives_a_summary_within_the_bounds(talk: list[AnyMessage], target_chars: int) -> None:
    summary = extract_summary(talk, target_chars)
    assert summary
    assert len(summary) <= max(1, 1.1 * target_chars)
    distinct = {str(message.content) for message in talk}
    useful = sum(len(text) for text in distinct if text not in ("안녕하세요!", "thanks", "정말 좋네요."))
    # Sentences are picked whole,.
    if useful > target_chars >= LONG_SENTENCE:
        assert len(summary) >= 0.5 * target_chars
    assert summary == extract_summary(talk, target_chars)


@given(st.text(max_size=400), st.integers(0, 300))
def test_any_text_is_taken(text: str, target_chars: int) -> None:
    summary = extract_summary([HumanMessage(text)], target_chars)
    assert len(summary) <= max(1, target_chars)
    assert "\n" not in summary


def test_the_offline_models_own_table_adds_nothing() -> None:
    table = "| 내용 | 출처 |\n| --- | --- |\n| 예산은 320만 원입니다. | (1-3턴 요약에서) |"
    said: list[AnyMessage] = [HumanMessage("마감은 10월 14일로 정했습니다."), AIMessage(table)]
    assert pick(said, 40) == "마감은 10월 14일로 정했습니다."


def test_what_recall_found_is_not_picked_again() -> None:
    found = ToolMessage("<recalled> 예약 번호는 KX-7781이고 마감은 3월 2일입니다.", tool_call_id="c", name="recall")
    searched = ToolMessage("내일 부산은 비가 옵니다.", tool_call_id="d", name="web_search")
    said: list[AnyMessage] = [
        HumanMessage("번호를 찾아봅시다."),
        found,
        searched,
        AIMessage("서면의 숙소로 정했습니다."),
    ]
    assert extract_summary(said, 1_000) == extract_summary([said[0], *said[2:]], 1_000)
    assert "KX-7781" not in extract_summary(said, 1_000)


def test_what_was_only_said_in_a_call_is_kept_with_it() -> None:
    call = {
        "id": "1",
        "name": "notes__write",
        "args": {"path": "/srv/notes/오차.md", "text": "word " * 100, "mode": "w"},
    }
    looked = {"id": "2", "name": "recall", "args": {"query": "JJ-20394"}}
    talk: list[AnyMessage] = [
        HumanMessage("Write a note about it, please."),
        AIMessage("", tool_calls=[call, looked]),
        ToolMessage("Written.", tool_call_id="1", name="notes__write"),
        ToolMessage("Nothing was found.", tool_call_id="2", name="recall"),
        AIMessage("The note is there now. It says what you told me about the error of the measurement."),
    ]
    picked = extract_summary(talk, 80)
    assert "notes__write (path, mode): /srv/notes/오차.md, w" in picked
    assert "JJ-20394" not in picked
    said = [*talk[:3], AIMessage("It stands in /srv/notes/오차.md."), HumanMessage("w")]
    assert "notes__write (" not in extract_summary(said, 80)


def test_ids_and_paths_of_long_results_are_kept_letter_for_letter() -> None:
    rows = [{"id": f"ORD-{number}", "path": f"/srv/in/{number}.csv", "state": "paid"} for number in range(2_000, 2_040)]
    results = [note_cut(str(rows), 2_000, why="are shown", language="en"), json.dumps(rows[:20], indent=2)]
    results.append("\n".join(f"Commit: 4f{number}a\nFile: src/m{number}.py\n" for number in range(30, 50)))
    talk: list[AnyMessage] = [HumanMessage("What is there? Take the oldest one.")]
    for index, result in enumerate(results):
        talk.append(AIMessage("", tool_calls=[{"id": str(index), "name": "read", "args": {"query": "all of it"}}]))
        talk.append(ToolMessage(result, tool_call_id=str(index), name="read"))
    talk.append(AIMessage("I looked at all of them."))
    picked = extract_summary(talk, int(chars_of(talk) * 0.4))
    assert [number for number in range(2_000, 2_020) if f"ORD-{number}, /srv/in/{number}.csv" not in picked] == []
    assert "Commit, File: 4f30a, src/m30.py. 4f31a, src/m31.py." in picked
