from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.ledger import ledger_tokens, line_tokens, lines_of, standing, with_room
from graph.core.model_input import assemble, system_part
from graph.fold.ledger import ledger_of, told_in, without_room
from graph.fold.spec import FoldSpec, fold_of_messages
from graph.value.record import LedgerLine, Record, WordKind, to_entry
from prompt.system.framing import Language
from tests.fake.snapshot import record_of

RULE = LedgerLine(1, "negation", "계약서에는 절대 서명하지 마세요")
LIKES = LedgerLine(2, "preference", "저는 구글 문서보다 워드를 선호해요")


def fold_with(*said: str, ledger: tuple[LedgerLine, ...] = (), room: int = 600) -> FoldSpec:
    """A fold of turns with these messages of the user's, behind such a ledger."""
    talk = [message for each in said for message in (HumanMessage(each), AIMessage("네."))]
    language: Language = "en" if said[0].isascii() else "ko"
    return replace(fold_of_messages(talk, 200, language=language), ledger=ledger, ledger_tokens=room)


def kinds_of(spec: FoldSpec) -> list[tuple[int, str]]:
    return [(line.turn, line.kind) for line in ledger_of(spec)]


def recorded(record: Record, *lines: LedgerLine) -> Record:
    return replace(record, ledger=lines)


def test_each_word_of_the_user_is_a_line_with_its_turn_and_kind_and_said_again_none() -> None:
    spec = fold_with(f"{RULE.text}.", f"안녕하세요. {LIKES.text}.", f"견적은 2번으로 할게요. {RULE.text}.")
    assert kinds_of(spec) == [(1, "negation"), (2, "preference"), (3, "choice")]
    assert ledger_of(replace(spec, ledger=None)) == ()


def test_who_writes_korean_in_an_english_session_is_kept_in_korean() -> None:
    assert kinds_of(replace(fold_with(f"{RULE.text}.", LIKES.text), language="en")) == [
        (1, "negation"),
        (2, "preference"),
    ]


@pytest.mark.parametrize(
    ("said", "later", "is_lifted"),
    [
        (RULE.text, "이제 계약서에는 서명해도 괜찮아요.", True),
        (RULE.text, "계약서에 서명해도 괜찮을까요?", False),
        (RULE.text, "이제 창문은 열어도 괜찮아요.", False),
        (RULE.text, "계약서는 내일 도착해요.", False),
        ("Never call the insurer by phone", "You may call the insurer by phone now.", True),
        ("Never call the insurer by phone", "The insurer called by phone again.", False),
        (LIKES.text, "이제 워드 말고 구글 문서가 더 좋아요.", True),
        (LIKES.text, "워드 파일을 보냈어요.", False),
        (LIKES.text, "구글 문서와 워드를 나란히 열어요.", False),
        ("견적은 2번으로 할게요", "아니, 1번으로 바꿀게요.", True),
        ("도배는 한솔도배로 할게요", "한솔도배에서 연락이 왔는데 이제 담당은 엄태오 팀장이래요.", False),
        ("도배는 한솔도배로 할게요", "도배는 이제 우리벽지로 할게요.", True),
        ("도배는 한솔도배로 할게요", "도배는 12일에 하기로 이야기했어요.", False),
        (
            "커밋 메시지에는 반드시 이슈 번호를 넣어 주세요",
            "커밋 메시지에는 이슈 번호 말고 모듈 이름을 넣어 주세요.",
            True,
        ),
        ("전화는 반드시 평일에 해 주세요", "전화는 주말 말고 평일에 해 주세요.", False),
        ("전화는 주말 말고 항상 평일에 해 주세요", "전화는 주말 말고 평일에 해 주세요.", False),
        (
            "Always put the ticket number in the subject",
            "Put the module name in the subject instead of the ticket number.",
            True,
        ),
        ("Always put the ticket number in the subject", "The ticket number was not in the subject.", False),
        ("손해사정사는 김도현이에요", "김도현 팀장은 이제 조사관이에요.", True),
        ("손해사정사는 김도현이에요", "김도현 조사관이 왔어요.", True),
        ("손해사정사는 김도현이에요", "김도현 손해사정사가 왔어요.", False),
        ("The hall manager is Desmond Achterberg", "The hall manager is now Ilse Farnaby.", True),
        ("The hall manager is Desmond Achterberg", "The caretaker is Ilse Farnaby.", False),
    ],
)
def test_a_later_sentence_takes_a_line_back(said: str, later: str, *, is_lifted: bool) -> None:
    (line,) = ledger_of(fold_with(said))
    lifted = [each.text for each in ledger_of(fold_with(later, ledger=(line,))) if each.kind == "lifted"]
    assert lifted == ([line.id] if is_lifted else [])


@pytest.mark.parametrize(
    ("said", "later", "standing_lines"),
    [
        (
            "The accompanist is Oonagh Pell, and Desmond Achterberg is the hall manager",
            "The hall manager is now Ilse Farnaby.",
            ["The accompanist is Oonagh Pell", "The hall manager is now Ilse Farnaby"],
        ),
        (
            "The shift lead is Bertrand Okonjo and the vendor's engineer is Lene Mikkelborg",
            "Lene Mikkelborg left, so the vendor's engineer is now Pavel Strnad.",
            ["The shift lead is Bertrand Okonjo", "Lene Mikkelborg left, so the vendor's engineer is now Pavel Strnad"],
        ),
        (
            "저희 팀장은 곽은비 님이고, 창구는 사서 민소라 님이에요",
            "이제 창구는 사서 하윤채 님이에요.",
            ["저희 팀장은 곽은비 님이고", "이제 창구는 사서 하윤채 님이에요"],
        ),
    ],
)
def test_whoever_is_replaced_takes_nobody_else_out(said: str, later: str, standing_lines: list[str]) -> None:
    assert [line.text for line in standing(ledger_of(fold_with(said, later)), {})] == standing_lines


def test_a_rule_that_was_taken_back_and_is_said_again_stands_again() -> None:
    lines = ledger_of(fold_with(f"{RULE.text}.", "이제 계약서에는 서명해도 괜찮아요.", f"{RULE.text}."))
    assert [(line.turn, line.text) for line in standing(lines, {})] == [(3, RULE.text)]


def test_what_was_taken_back_or_struck_out_does_not_stand_and_what_was_restored_does() -> None:
    lines = [RULE, LIKES, LedgerLine(4, "lifted", RULE.id), RULE]
    assert standing(lines, {}) == [LIKES]
    assert standing(lines, {RULE.id: False}) == [RULE, LIKES]
    assert standing(lines, {LIKES.id: True}) == []


@given(
    st.lists(st.sampled_from(["negation", "rule", "choice", "person", "preference"]), max_size=40), st.integers(0, 900)
)
def test_the_oldest_preferences_give_way_first_and_rules_last(kinds: list[WordKind], most_tokens: int) -> None:
    lines = [LedgerLine(turn, kind, f"{turn}번째로 한 말은 이것입니다") for turn, kind in enumerate(kinds, start=1)]
    sent = with_room(lines, most_tokens, "ko")
    assert sum(line_tokens(line, "ko") for line in sent) <= most_tokens
    assert sent == [line for line in lines if line in sent]
    left = [line for line in lines if line not in sent]
    for kind in ("preference", "negation"):
        turns = [line.turn for line in sent if line.kind == kind]
        assert not turns or all(line.turn < min(turns) for line in left if line.kind == kind)
    if any(line.kind == "negation" for line in left):
        assert not any(line.kind == "preference" for line in sent)


def test_of_many_lines_the_newest_rules_stay() -> None:
    kinds: list[WordKind] = ["preference", "negation", "choice"] * 8
    lines = [LedgerLine(turn, kind, f"{turn}번째로 한 말은 이것입니다") for turn, kind in enumerate(kinds, start=1)]
    sent = with_room(lines, sum(line_tokens(line, "ko") for line in lines) // 2, "ko")
    assert {line.kind for line in sent} == {"negation", "choice"}
    assert [line.turn for line in sent if line.kind == "negation"] == list(range(2, 25, 3))
    choices = [line.turn for line in sent if line.kind == "choice"]
    assert choices == list(range(3, 25, 3))[-len(choices) :]
    few = with_room(lines, line_tokens(lines[1], "ko") + 1, "ko")
    assert [line.turn for line in few] == [23]


def test_the_room_is_a_share_of_the_window_and_bounded() -> None:
    assert (ledger_tokens(4_000), ledger_tokens(100_000)) == (320, 600)


def test_lines_stand_behind_the_records_and_those_of_a_verbatim_one_in_it_alone() -> None:
    first, second = recorded(record_of((1, 2, 3), "하나."), RULE), recorded(record_of((4, 5, 6), "둘."), LIKES)
    history = [to_entry(first), to_entry(replace(second, kind="verbatim"))]
    assert lines_of(history) == [RULE]
    prompt = assemble(system_part("ko", can_recall=True), history, [HumanMessage("지금", id="now")]).messages[0].text
    assert prompt.endswith(f"- (1턴) {RULE.text}")
    assert prompt.index("둘.") < prompt.index(RULE.text)


def test_a_record_says_itself_what_has_no_room_any_more() -> None:
    spec = fold_with(
        *(f"앞으로 {place} 보고서는 반드시 사본을 남겨 주세요." for place in ["서울", "부산", "대구", "광주", "인천"]),
        room=80,
    )
    spec = replace(spec, ledger=(LIKES,))
    apart = without_room(spec, ledger_of(spec))
    assert LIKES in apart  # it had room before
    assert set(apart).isdisjoint(with_room([LIKES, *ledger_of(spec)], 80, "ko"))


@pytest.mark.parametrize(
    ("told", "is_kept"),
    [
        ("규칙: 보고서 글꼴은 나눔고딕", True),
        ("- **Rule**: 보고서 글꼴 나눔고딕", True),
        ("규칙: 표는 넣지 않음", False),
        ("규칙: 보고서 글꼴로 나눔고딕 금지", False),
    ],
)
def test_a_rule_that_a_draft_tells_is_kept_if_the_user_said_it(told: str, *, is_kept: bool) -> None:
    said = "보고서 글꼴은 나눔고딕이고 여백은 2cm예요"
    found = told_in(f"(1턴) 보고서 이야기.\n{told}", fold_with(f"안녕하세요. {said}."))
    assert [line.text for line in found.lines] == ([said] if is_kept else [])
    assert (told in found.text) is not is_kept
