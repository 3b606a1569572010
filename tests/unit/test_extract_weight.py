from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.fold.extract import TermCounts, count_terms, extract_summary, weigh_kinds
from graph.fold.word_kind import is_rule

FILLER = "The trip so far sounds pleasant enough to go on with, and there is a lot to look at along the coast. "
KOREAN_FILLER = "여행 이야기는 언제 들어도 즐겁고 바닷가를 따라 걷는 길에는 볼거리가 많다고 합니다. "


def filled(text: str, filler: str, chars: int) -> list[AnyMessage]:
    """A block with that sentence amid others, each of them different."""
    numbered = [f"{filler.strip()[:-1]} {word}{end}" for word in WORDS for end in (".", " again.")]
    before, after = numbered[: len(numbered) // 2], numbered[len(numbered) // 2 :]
    half = chars // 2
    return [
        HumanMessage(" ".join(before)[:half] + "."),
        AIMessage("All right."),
        HumanMessage(text),
        AIMessage(" ".join(after)[:half] + "."),
    ]


WORDS = ["harbour", "lantern", "gravel", "meadow", "orchard", "pebble", "quarry", "ribbon", "saddle", "timber"]


def test_an_answered_question_is_dropped_before_its_answer() -> None:
    talk: list[AnyMessage] = [
        HumanMessage("Which harbour does the ferry to the islands leave from?"),
        AIMessage("The ferry to the islands leaves from the northern pier."),
    ]
    assert extract_summary(talk, 60) == "The ferry to the islands leaves from the northern pier."


def test_the_assistants_question_gives_way_to_the_users_answer() -> None:
    talk: list[AnyMessage] = [
        AIMessage("이번 출장에는 어느 호텔을 예약해 드릴까요?"),
        HumanMessage("시청 앞에 있는 호텔이요."),
    ]
    assert extract_summary(talk, 20) == "시청 앞에 있는 호텔이요."


@pytest.mark.parametrize(
    ("changed", "stale", "other"),
    [
        ("90일이 아니라 60일로 해 주세요.", "외부 강사 계정은 90일을 넘으면 안 됩니다.", "자료는 그대로 두겠습니다."),
        ("Use 60 days, not 90 days.", "Accounts of guests live for 90 days.", "The files stay where they are."),
    ],
)
def test_a_value_that_the_user_replaced_gives_way_to_the_one_in_its_place(changed: str, stale: str, other: str) -> None:
    for said in ([HumanMessage(changed), AIMessage(stale)], [HumanMessage(stale), HumanMessage(changed)]):
        picked = extract_summary([*said, AIMessage(other)], len(changed) + len(other) + 1)
        assert picked == f"{changed} {other}"


@pytest.mark.parametrize(
    ("sentence", "others"),
    [
        (
            "접수 번호는 {}입니다.",
            (
                "문제가 다시 생기면 로그를 모아 두었다가 원인을 하나씩 지워 나가면 됩니다.",
                "비슷한 일을 한 팀의 경험을 들어 보면 준비 기간이 결과를 좌우합니다.",
                "위험이 큰 작업은 새벽에 하고 되돌리는 절차를 미리 연습해 두는 것이 낫습니다.",
            ),
        ),
        (
            "The ticket number is {}.",
            (
                "If the problem comes back, collect the logs and rule out the causes one after the other.",
                "Teams that did something similar say that the preparation was nearly everything.",
                "Risky steps are best done at night, with the way back rehearsed beforehand.",
            ),
        ),
    ],
)
def test_another_identifier_in_the_same_words_weighs_as_much_as_the_first(
    sentence: str, others: tuple[str, ...]
) -> None:
    """Of three answers with a number each, two numbers gave way to sentences with new words and nothing to keep."""
    identifiers = ["KB-0018301", "WF-0015877", "MC-0012443"]
    talk = [AIMessage(f"{other} {sentence.format(each)}") for each, other in zip(identifiers, others, strict=True)]
    picked = extract_summary(talk, 3 * len(sentence.format(identifiers[0])) + len(others[-1]))
    assert [each for each in identifiers if each in picked] == identifiers


def test_a_question_that_nobody_answered_stays_before_small_statements() -> None:
    talk: list[AnyMessage] = [
        HumanMessage("The weather was pleasant."),
        AIMessage("Good to hear about it."),
        HumanMessage("Which harbour does the ferry to the islands leave from?"),
    ]
    assert "ferry" in extract_summary(talk, 60)


def test_asking_back_is_no_answer() -> None:
    asked = HumanMessage("Which harbour does the ferry to the islands leave from?")
    back, answer = AIMessage("Could you tell me the day?"), AIMessage("It leaves from the northern pier.")
    assert asked.text in extract_summary([asked, back], 60)
    assert asked.text not in extract_summary([asked, answer], 60)


@pytest.mark.parametrize(
    ("sentence", "filler"),
    [
        ("운영 서버에는 절대 배포하지 마세요.", KOREAN_FILLER),
        ("회의록에 사람 이름을 적으면 안 됩니다.", KOREAN_FILLER),
        ("저는 고기를 안 먹어요.", KOREAN_FILLER),
        ("고객에게는 메일을 보내지 말고 기다리자.", KOREAN_FILLER),
        ("Never deploy to the production server.", FILLER),
        ("You must not mention names in the minutes.", FILLER),
        ("Please don't send mail to the customer.", FILLER),
        ("I don't eat meat.", FILLER),
    ],
)
def test_a_prohibition_survives_at_rate_0_1(sentence: str, filler: str) -> None:
    talk = filled(sentence, filler, 1_600)
    chars = sum(len(str(message.content)) for message in talk)
    assert sentence in extract_summary(talk, int(chars * 0.1))


def test_a_prohibition_survives_amid_numbers_and_in_a_merge() -> None:
    summary = SystemMessage(
        "The budget is 4,200 euros and 35 people come. Never write the price in a mail. "
        "Room 12 has 40 seats, room 14 has 60 seats. The bus leaves at 7:45 on 2026-03-15 from gate 9."
    )
    assert "Never write the price in a mail." in extract_summary([summary], 60)


@pytest.mark.parametrize(
    "sentence",
    [
        "I don't know much about boats.",
        "I have never been there.",
        "Well, that must be nice.",
        "안녕하세요.",
        "안개가 꼈어요.",
    ],
)
def test_plain_words_are_no_rules(sentence: str) -> None:
    assert not is_rule(sentence)


@pytest.mark.parametrize(
    "sentence", ["항상 존댓말로 답해 주세요.", "From now on answer in one line.", "반드시 두 번 확인하세요."]
)
def test_demands_are_rules(sentence: str) -> None:
    assert is_rule(sentence)


def test_a_term_frequent_in_the_session_and_rare_in_the_block_weighs_less() -> None:
    often, once = "The lantern hangs beside the door.", "The anchor hangs beside the gate."
    block: list[AnyMessage] = [HumanMessage(often), HumanMessage(once)]
    session = count_terms([*(f"The lantern and its door, day {word}." for word in WORDS), often, once])
    assert extract_summary(block, 34, counts=session) == once
    other = count_terms([*(f"The anchor and its gate, day {word}." for word in WORDS), often, once])
    assert extract_summary(block, 34, counts=other) == often


def test_counts_add_up_message_by_message() -> None:
    texts = ["예산은 120만 원입니다.", "The budget is 120.", "", "The budget again."]
    counted = TermCounts(0, {})
    for text in texts:
        counted = count_terms([text], counted)
    assert counted == count_terms(texts)
    assert (counted.texts, counted.by_term["budget"]) == (4, 2)
    assert counted.rarity("unheard") > counted.rarity("120") > 0


def test_numbers_weigh_as_words_too() -> None:
    assert weigh_kinds("The team has seven members.") > weigh_kinds("The team has many members.")
    assert weigh_kinds("표를 세 장 샀어요.") > weigh_kinds("표를 조금 샀어요.")
    assert weigh_kinds("We decided on the blue one.") > weigh_kinds("We looked at the blue one.")


def test_of_a_json_result_the_rare_record_stays_and_keys_stand_once() -> None:
    result = (
        '{"flights": [{"number": "HB101", "to": "Oslo"}, {"number": "HB202", "to": "Bergen"}, '
        '{"number": "HB303", "to": "Tromso"}], "note": null}'
    )
    talk: list[AnyMessage] = [HumanMessage("Look it up."), ToolMessage(result, tool_call_id="c")]
    summary = extract_summary(talk, 100)
    assert summary.count("(number, to)") == 1
    assert "flights (number, to): HB101, Oslo." in summary
    assert "flights: HB303, Tromso" in summary


def test_emphasis_marks_take_no_room() -> None:
    assert extract_summary([AIMessage("**Gate:** 7 and 2**3 stay")], 100) == "Gate: 7 and 2**3 stay"


ROW = st.dictionaries(
    st.sampled_from(["id", "name", "seats"]), st.integers(0, 99) | st.text("ab 한", max_size=9), min_size=1
)
MESSAGE = st.one_of(
    st.sampled_from(
        ["예산은 {}만 원입니다.", "Never use port {}.", "When does bus {} leave?", "그건 왜 그런가요?"]
    ).flatmap(lambda text: st.integers(0, 99).map(lambda number: HumanMessage(text.format(number)))),
    st.text("ab 한글.?", max_size=60).map(AIMessage),
    st.lists(ROW, max_size=4).map(lambda rows: ToolMessage(str(rows).replace("'", '"'), tool_call_id="c")),
)


@given(st.lists(MESSAGE, max_size=12), st.integers(1, 400), st.lists(st.text("ab 한글", max_size=30), max_size=5))
def test_any_messages_with_any_counts_give_the_same_summary_within_the_bounds(
    talk: list[AnyMessage], target_chars: int, session: list[str]
) -> None:
    counts = count_terms(session)
    summary = extract_summary(talk, target_chars, counts=counts)
    assert len(summary) <= target_chars
    assert summary == extract_summary(list(talk), target_chars, counts=count_terms(session))
