from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.open_question import without_question
from graph.core.text import estimate_tokens
from graph.fold.fact_check import MOST_FACTS, check_facts, compare_facts
from graph.fold.review import Review
from graph.fold.spec import FoldSpec
from tests.fake.draft import spec_of

ASKED = "예약 번호는 K7QX2M이고 예산은 180만 원입니다. 절대 야간버스는 안 돼요. 출발은 1월 24일입니다. "
LONG = "그래서 어떤 길로 가는 것이 좋은지 차근차근 적어 봅니다. " * 20


def source_of(*messages: AnyMessage, target: int = 300, **changes: object) -> FoldSpec:
    return spec_of(messages, target, **changes)


def checked_text(text: str, spec: FoldSpec) -> Review:
    return check_facts(Review(text, "compressed"), spec)


def test_what_a_summary_lacks_stands_in_a_line_behind_it_with_its_clause() -> None:
    source = source_of(HumanMessage(ASKED), AIMessage(LONG))
    text = "(1턴) 야간버스는 절대 안 되고 1월 24일에 출발함."
    checked = checked_text(text, source)
    assert checked.text == f"{text}\n사실: 예약 번호는 K7QX2M, 예산은 180만 원"
    assert set(checked.missing) == {"K7QX2M", "180만 원"}
    assert set(checked.retained) == {"절대 야간버스는 안 돼요", "1월 24일"}
    assert compare_facts(checked.text, source) == (checked.retained, checked.missing)


@pytest.mark.parametrize("question", ["질문: 어디서 잘까요?", "질문: 어디서 잘까요?\n1) 역 앞\n2) 공항"])
def test_the_question_stays_the_last_line(question: str) -> None:
    source = source_of(HumanMessage(ASKED), AIMessage(f"{LONG}\n어디서 잘까요?"))
    text = "(1턴) 야간버스는 절대 안 되고 1월 24일에 출발함."
    checked = checked_text(f"{text}\n{question}", source)
    line = "사실: 예약 번호는 K7QX2M, 예산은 180만 원"
    assert checked.text == f"{text}\n{line}\n{question}"
    assert compare_facts(checked.text, source) == (checked.retained, checked.missing)
    assert without_question(checked.text) == f"{text}\n{line}"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["교육은 18시 40분부터예요. 두 분, 다섯 명, 5번, DB, 14,382명."], "교육은 18시 40분부터"),
        (["예산은 900만 원이에요.", "예산을 950만 원으로 바꿀게요."], "예산을 950만 원으로 바꿀게요"),
        (["리허설은 1월 10일이에요.", "1월 10일 말고 1월 3일 저녁이에요."], "1월 3일 저녁"),
        (["전화는 010-7734-2068이에요.", "정정: 전화는 010-7734-2069예요."], "전화는 010-7734-2069"),
        (["전화는 010-7734-2068이에요.", "전화가 010-7734-2069로 바뀌었어요."], "전화가 010-7734-2069로 바뀌었어요"),
        (["회의는 오전 9시예요.", "회의는 오전 9시가 아니라 오전 10시에 열어요."], "오전 10시에 열어요"),
        (["항공편 KE723은 1월 10일에 떠나요.", "1월 10일 말고 12일 아침에 가요."], "KE723, 12일 아침에 가요"),
        (["일정은 09:00 → 10:30 → 12:00 순서예요."], "일정은 09:00 → 10:30 → 12:00 순서"),
        (["교육은 18시예요.", "서버는 잘 돌아요.", "교육 시간을 19시로 옮겼어요."], "교육 시간을 19시로 옮겼어요"),
        (["| 서버 | K7QX2M |\n| --- | --- |\n| 비용 | 80,000원 |"], ""),
        (["| 서버 K7QX2M"], ""),
        (["SELECT a.id, AB-4821 FROM t ORDER BY NAME"], ""),
        (
            ["예약 번호는 K7QX2M이고 1월 10일에 가요.", "1월 10일 말고 12일에 가요."],
            "예약 번호는 K7QX2M, 12일에 가요",
        ),
    ],
)
def test_the_line_has_firm_facts_of_the_user_that_nothing_replaces(said: list[str], line: str) -> None:
    source = source_of(*(HumanMessage(text) for text in said), AIMessage(f"추정 비용은 80,000원, 코드 ZZ-9911. {LONG}"))
    assert checked_text("(1턴) 이야기함.", source).text.partition("\n")[2] == (f"사실: {line}" if line else "")


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (["The training starts at 6:40 PM, two of us, 14,382 people."], "The training starts at 6:40 PM"),
        (["The budget is $1,200.", "Correction: the budget is $1,500."], "the budget is $1,500"),
        (["We leave on May 14.", "Not on May 14 but a day later."], ""),
        (["NAME | READY | AGE\npay-7f9c | 1/1 | 31m"], ""),
        (
            ["The log is /var/log/label_svc now. Never restart label_svc."],
            "Never restart label_svc, The log is /var/log/label_svc now",
        ),
    ],
)
def test_the_line_in_english(said: list[str], line: str) -> None:
    answer = AIMessage("My guess is $80,000, code ZZ-9911. " + "We talk at length. " * 30)
    source = source_of(*(HumanMessage(text) for text in said), answer, language="en")
    found = checked_text("(turn 1) A talk.", source).text.partition("\n")[2]
    assert found == (f"Facts: {line}" if line else "")


def test_a_summary_with_all_facts_stays_as_it_is() -> None:
    text = "K7QX2M, 예산 180만 원, 1월 24일 출발, 야간버스는 절대 안 됨."
    assert checked_text(text, source_of(HumanMessage(ASKED), AIMessage(LONG))).text == text


def test_facts_without_room_are_listed_as_missing() -> None:
    text = "여행을 이야기함. " * 34
    checked = checked_text(text, source_of(HumanMessage(ASKED), AIMessage(LONG)))
    assert checked.text == text
    assert {"K7QX2M", "180만 원", "1월 24일"} <= set(checked.missing)


@pytest.mark.parametrize("changes", [{}, {"is_bound": True, "max_tokens": 120}])
@given(names=st.lists(st.from_regex(r"[A-Z]{2}[0-9]{4}", fullmatch=True), max_size=60), told=st.integers(0, 60))
def test_with_its_line_a_summary_stays_within_its_target_and_its_source(
    changes: dict[str, object], names: list[str], told: int
) -> None:
    source = source_of(HumanMessage(", ".join(names) + ". " + LONG), target=200, **changes)
    text = "(1턴) 번호를 말함. " + ", ".join(names[:told])
    checked = checked_text(text, source)
    assert checked.text == text or len(checked.text) <= source.target_chars
    assert checked.text == text or estimate_tokens(source.label + checked.text) <= (
        source.max_tokens or source.source_tokens
    )
    assert set(names[:told]) <= set(checked.retained)
    assert sorted({*checked.retained, *checked.missing} & set(names)) == sorted(set(names))


def test_english_sessions_have_an_english_line() -> None:
    words = "The booking is K7QX2M for $1,200. " + "We talk about the way there at length. " * 20
    checked = checked_text("(turn 1) A trip.", source_of(HumanMessage(words), language="en"))
    assert "\nFacts: " in checked.text


def test_the_marks_of_a_summary_are_no_facts() -> None:
    summaries: list[AnyMessage] = [
        HumanMessage("[1-3턴] (1턴) 예약 번호 K7QX2M. (2턴) 결정함."),
        SystemMessage("[4-6턴] (4턴) 출발."),
    ]
    checked = checked_text("K7QX2M을 예약함.", source_of(*summaries, style="merge"))
    assert (checked.retained, checked.missing) == (("K7QX2M",), ())


@pytest.mark.parametrize(
    ("messages", "counted"),
    [
        (
            [HumanMessage("예약은 K7QX2M, 예산은 180만 원."), AIMessage("그럼 M4RT9Z로 가면 20만 원이 남아요.")],
            {"K7QX2M", "180만 원"},
        ),
        ([HumanMessage("The ticket is K7QX2M."), AIMessage("Then order M4RT9Z on March 3 for $40.")], {"K7QX2M"}),
        ([HumanMessage("K7QX2M"), ToolMessage("M4RT9Z 12 kg, 2026-11-03", tool_call_id="c")], {"K7QX2M"}),
        ([HumanMessage("두 곳 중 세 가지만 볼게요. 예약은 K7QX2M, 자리는 7.")], {"K7QX2M"}),
    ],
)
def test_only_what_the_user_told_and_would_miss_is_counted(messages: list[AnyMessage], counted: set[str]) -> None:
    spec = source_of(*messages, AIMessage(LONG))
    kept, missing = compare_facts("글을 봄.", spec)
    assert (kept, set(missing)) == ((), counted)


@pytest.mark.parametrize(
    ("said", "replaced"),
    [
        ("기준을 바꿀게요. 90일이 아니라 60일로 해 주세요. 예약은 K7QX2M입니다.", "90일"),
        ("Correction: the budget is $1,500, not $1,200. The ticket is K7QX2M.", "$1,200"),
    ],
)
@pytest.mark.parametrize("text", ["K7QX2M; 90일을 넘으면 안 됩니다. The budget is $1,200.", "글을 봄."])
def test_a_value_that_the_user_replaced_is_neither_retained_nor_missing(said: str, replaced: str, text: str) -> None:
    checked = checked_text(text, source_of(HumanMessage(said), AIMessage(f"{replaced}: {LONG}")))
    found = (*checked.retained, *checked.missing)
    assert "K7QX2M" in found
    assert replaced not in found


def test_a_long_list_is_compared_by_its_weightiest_facts() -> None:
    listed = " ".join(f"{number} kg" for number in range(1, 500))
    checked = checked_text("목록을 봄.", source_of(HumanMessage(f"{listed} K7QX2M")))
    assert len(checked.retained) + len(checked.missing) == MOST_FACTS
    assert checked.missing[0] == "K7QX2M"


def test_a_prohibition_that_was_pasted_is_no_fact_of_the_users() -> None:
    pasted = (
        "Our reviewer wrote this:\n\n전체 지연은 6초를 넘으면 안 됩니다.\n\nNever restart pay-worker-3 by hand. Agreed?"
    )
    source = source_of(HumanMessage(pasted), AIMessage("I see. " * 60), language="en")
    checked = checked_text("(turn 1) The reviewer's note was discussed.", source)
    assert not [fact for fact in (*checked.retained, *checked.missing) if "안 됩니다" in fact]
    assert [fact for fact in checked.missing if fact.startswith("Never restart pay-worker-3")]


@pytest.mark.parametrize(
    "said",
    [
        "예산은 300만 원이에요. 그보다 더는 안 돼요.",
        "다과비 40만 원은 제 돈이에요. 예산에는 넣지 마세요.",
        "최은설, 최은서 씨가 와요. 이름이 비슷하니 헷갈리지 마세요.",
        "The price list is AB-1234. Don't send it to anyone.",
    ],
)
def test_a_rule_that_only_points_is_neither_counted_nor_in_the_line(said: str) -> None:
    checked = checked_text("(1턴) 이야기함.", source_of(HumanMessage(said), AIMessage(LONG)))
    assert not [
        fact for fact in (*checked.retained, *checked.missing) if "마세요" in fact or "안 돼" in fact or "send" in fact
    ]
    assert said.rpartition(". ")[2].rstrip(".") not in checked.text


def test_a_preference_and_a_choice_that_are_missing_are_noticed_and_a_replaced_choice_is_not() -> None:
    said = [
        "구글 문서보다 워드를 선호해요. 오픈은 2월 15일로 할게요.",
        "2월 15일 말고 2월 22일로 갈게요. 소송 기준으로요.",
    ]
    checked = checked_text("(1턴) 이야기함. " * 20, source_of(*map(HumanMessage, said), AIMessage(LONG)))
    assert {"구글 문서보다 워드를 선호해요", "2월 15일 말고 2월 22일로 갈게요", "소송 기준으로요"} <= set(
        checked.missing
    )
    assert "오픈은 2월 15일로 할게요" not in checked.missing


def test_figures_of_a_pasted_letter_are_not_the_users() -> None:
    letter = "보험사 메일이에요:\n---\n고객님, 20:80으로 3,000만 원을 제안합니다.\n---\n예산은 200만 원이에요."
    checked = checked_text("(1턴) 이야기함.", source_of(HumanMessage(letter), AIMessage(LONG)))
    assert (*checked.retained, *checked.missing) == ("200만 원",)
