from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.text import estimate_tokens
from graph.fold import review as adopt
from graph.fold.review import Flaw, flaw_of, is_within, quote, until_last_sentence, visible_chars
from graph.fold.spec import FoldSpec
from tests.fake.draft import VARIED, VARIED_ENGLISH, draft_of, flaw_in, korean, review_drafts, source_of, spec_of, told

LARGE = source_of(told(1000), 300)
SMALL = source_of("안녕하세요, 반갑습니다", 3)


def test_a_fitting_draft_is_adopted_as_it_is() -> None:
    draft = korean(299)
    assert flaw_in(draft, LARGE) is None
    review = review_drafts([draft], LARGE)
    assert (review.text, review.outcome, review.is_verbatim) == (draft.strip(), "compressed", False)


@pytest.mark.parametrize(("chars", "kind"), [(50, "short"), (482, "long"), (900, "long")])
def test_a_draft_far_from_the_target_is_to_be_mended(chars: int, kind: str) -> None:
    assert flaw_in(korean(chars), LARGE) == kind


@pytest.mark.parametrize("chars", [100, 182, 240, 300, 374, 395, 430, 480])
def test_an_honest_draft_is_taken_as_it_is(chars: int) -> None:
    assert flaw_in(korean(chars), LARGE) is None
    assert review_drafts([korean(chars)], LARGE).text == korean(chars).strip()


def test_a_draft_is_measured_by_the_target_where_less_is_asked_as_earlier_folds_took_too_much() -> None:
    source = source_of(told(1000), 300, less_chars=100)
    assert source.asked_chars == 200
    assert (flaw_in(korean(470), source), flaw_in(korean(500), source)) == (None, "long")


PHONES = "".join(
    f"{name} 씨의 전화는 010-1234-{number}입니다. "
    for name, number in zip("가나다라마바", range(1001, 1007), strict=True)
)


@pytest.mark.parametrize(
    ("chars", "named", "kind"),
    [(150, 6, None), (150, 5, "short"), (200, 5, None), (150, 2, "short"), (250, 3, "lacking")],
)
def test_a_draft_is_to_be_mended_for_few_missing_facts_only_where_it_has_room(
    chars: int, named: int, kind: str | None
) -> None:
    source = source_of(f"{PHONES}{told(1000)}", 300)
    draft = " ".join(f"010-1234-{number}" for number in range(1001, 1001 + named))
    assert flaw_in(f"{draft} {korean(chars - len(draft))}", source) == kind


def test_a_short_draft_is_mended_for_what_the_user_said_firmly_and_nothing_else() -> None:
    """46 names of pytest's output and of answers were missing; every fact of the user was there."""
    said: list[AnyMessage] = [
        HumanMessage(f"1월 24일에 떠나고 예약 번호는 K7QX2M, 예산은 180만 원, 메일은 a@b.kr이에요. {told(900)}"),
        AIMessage("호텔은 HT-4471, 전화는 02-555-7788입니다."),
        ToolMessage("pytest-8.3.3, pluggy-1.5.0, build 7f3a9c1", tool_call_id="c"),
    ]
    source = spec_of(said, 300)
    assert flaw_in(f"1월 24일, K7QX2M, a@b.kr. {korean(120)}", source) is None
    flaw = flaw_of(draft_of(f"1월 24일, 180만 원, a@b.kr. {korean(120)}"), source)
    assert flaw == Flaw("short", ("K7QX2M",))


def test_a_short_target_may_be_passed_by_150_characters() -> None:
    """A draft of 195 characters for 118 was written again for 2,211 tokens, and lost two values."""
    source = source_of(told(400), 118)
    assert (flaw_in(korean(195), source), flaw_in(korean(267), source)) == (None, None)
    assert review_drafts([korean(267)], source).text == korean(267).strip()
    assert flaw_in(korean(275), source) == "long"
    assert len(review_drafts([korean(390)], source).text) <= 268
    # What is no smaller than its source, or beyond a bound in tokens, has no such room.
    assert flaw_in(korean(195), source_of(told(190), 118)) == "long"


def test_a_draft_still_too_long_loses_sentences() -> None:
    review = review_drafts(["".join(VARIED[:30]), "".join(VARIED[:26])], LARGE)
    assert review.outcome == "shortened"
    assert review.text.endswith("요일입니다.")
    assert 450 <= len(review.text) <= 480


def test_rules_alone_take_twice_the_requested_length_at_most() -> None:
    rules = [f"{number}번 서버는 절대 끄지 않습니다. " for number in range(200)]
    review = review_drafts(["".join(rules[:27])], LARGE)
    assert (len("".join(rules[:27])) > 500, review.text) == (True, "".join(rules[:27]).strip())
    assert 300 < len(review_drafts(["".join(rules)], LARGE).text) <= 600


def test_of_two_drafts_the_one_nearer_to_the_target_is_taken() -> None:
    assert review_drafts([korean(120), korean(280)], LARGE).text == korean(280).strip()
    assert review_drafts([korean(280), korean(20)], LARGE).text == korean(280).strip()


def test_a_short_draft_is_taken_when_the_retry_was_no_better() -> None:
    assert review_drafts([korean(120), ""], LARGE).outcome == "compressed"


@pytest.mark.parametrize("drafts", [[""], ["  \n", ""]])
def test_nothing_is_adopted_of_empty_drafts(drafts: list[str]) -> None:
    review = review_drafts(drafts, LARGE)
    assert (review.text, review.outcome, review.error_code) == ("", "empty", "summary_empty")


def test_a_draft_in_another_language_is_retried_then_not_adopted() -> None:
    draft = "".join(VARIED_ENGLISH[:8])
    assert flaw_in(draft, LARGE) == "language"
    assert review_drafts([draft, draft], LARGE).error_code == "summary_language"


def test_small_blocks_are_never_retried_nor_cut() -> None:
    assert flaw_in("x" * 500, SMALL) is None
    assert flaw_in("", SMALL) is None
    assert flaw_in("", bound_source(60, 500)) == "empty"


def test_a_small_block_that_does_not_shrink_stands_word_for_word() -> None:
    review = review_drafts(["사용자가 인사하고 AI가 반갑다고 답함."], SMALL)
    assert (review.is_verbatim, review.outcome) == (True, "inflated")
    assert "> 사용자: 안녕하세요, 반갑습니다" in review.text


def test_a_small_block_that_shrinks_with_its_label_is_a_summary() -> None:
    source = source_of(told(200), 60)
    review = review_drafts(["이전일은 10월 14일."], source)
    assert (review.is_verbatim, review.outcome) == (False, "compressed")


def test_the_label_counts_as_part_of_the_summary() -> None:
    text = korean(90)
    source = spec_of([HumanMessage(text)], 30)
    assert review_drafts([text[:-3]], source).is_verbatim
    assert not review_drafts([text[:-40]], source).is_verbatim


def test_a_text_as_long_as_its_source_is_not_within_its_bounds() -> None:
    assert is_within(told(200), source_of(told(300), 100))
    assert not is_within(told(300), source_of(told(300), 100))


def test_quoting_keeps_every_word_and_marks_who_spoke() -> None:
    text = quote(
        [HumanMessage("한 줄\n두 줄"), AIMessage(""), ToolMessage("14:32", tool_call_id="c"), AIMessage("끝")], "ko"
    )
    assert text == "(원문)\n> 사용자: 한 줄\n> 두 줄\n> 도구: 14:32\n> AI: 끝"


@given(st.lists(st.text(alphabet="가나다. abc10", max_size=600), min_size=1, max_size=2), st.integers(1, 500))
def test_whatever_is_adopted_is_smaller_than_its_source_or_the_source_itself(drafts: list[str], target: int) -> None:
    source = source_of(told(max(20, target * 3)), target)
    review = review_drafts(drafts, source)
    if review.text and not review.is_verbatim:
        assert len(source.label + review.text) < source.source_chars
        assert estimate_tokens(source.label + review.text) < source.source_tokens
    elif not review.text:
        assert review.error_code


def bound_source(target: int, max_tokens: int) -> FoldSpec:
    return spec_of([HumanMessage(told(5000))], target, turns=(1, 24), is_bound=True, max_tokens=max_tokens)


def test_a_bound_is_content_with_less_and_cuts_what_is_over_it() -> None:
    source = bound_source(700, 500)
    assert flaw_in(korean(100), source) is None
    review = review_drafts([korean(860)], source)
    assert review.outcome == "shortened"
    assert estimate_tokens(source.label + review.text) <= 500


def test_a_bound_in_tokens_stays_a_bound() -> None:
    # 1,000 tokens are more than the target: what fits into them is taken.
    wide, narrow = bound_source(700, 1_000), bound_source(700, 500)
    assert flaw_in(korean(1_000), wide) is None
    assert review_drafts([korean(1_000)], wide).text == korean(1_000).strip()
    assert flaw_in(korean(1_130), wide) == "long"
    # Beyond its bound by little, a draft is cut by code; by more, it is to be mended.
    assert not is_within(korean(900), narrow)
    assert (flaw_in(korean(900), narrow), flaw_in(korean(920), narrow)) == (None, "long")


@pytest.mark.parametrize(
    ("text", "chars"),
    [
        ("", 0),
        ("\u200b\u200b\u200b", 0),
        ("\u2060\ufeff\u00ad\u202e\x00\x07", 0),
        ("\u3164\u115f\u2800\ufe0f\u034f", 0),
        (" \n\t ", 0),
        ("가\u200b나 \n\n  다", 4),
        ("नमस्ते", 6),
        ("한글 abc", 6),
    ],
)
def test_only_what_a_reader_sees_counts(text: str, chars: int) -> None:
    assert visible_chars(text) == chars


HOLLOW = [".", "요약", "죄송하지만 그 내용은 요약을 도와드릴 수 없습니다.", "\u200b\u200b\u200b", "가" + "\u200b" * 300]


@pytest.mark.parametrize("text", HOLLOW)
def test_what_holds_nothing_is_asked_for_again_and_never_adopted(text: str) -> None:
    assert flaw_in(text, LARGE) in {"empty", "short"}
    review = review_drafts([text, text], LARGE)
    assert review.text == ""
    assert review.error_code in {"summary_short", "summary_empty"}


@pytest.mark.parametrize("text", HOLLOW)
def test_what_holds_nothing_is_no_bounded_summary_either(text: str) -> None:
    source = bound_source(700, 500)
    assert flaw_in(text, source) in {"empty", "short"}
    assert review_drafts([text, text], source).text == ""
    assert review_drafts([text, korean(100)], source).text == korean(100).strip()


def test_a_fifth_of_what_was_asked_for_is_a_summary_when_the_retry_was_no_better() -> None:
    assert review_drafts([korean(62), "요약"], LARGE).text == korean(62).strip()
    assert review_drafts([korean(58), "요약"], LARGE).error_code == "summary_short"


def test_a_small_block_stands_word_for_word_rather_than_as_a_full_stop() -> None:
    source = source_of(told(200), 60)
    assert review_drafts(["."], source).is_verbatim
    assert review_drafts(["\u200b"], source).outcome == "empty"


def test_picked_sentences_may_be_as_few_as_the_source_has_different_ones() -> None:
    text = "같은 말입니다. " * 100
    source = spec_of([HumanMessage(text)], 270)
    draft = draft_of("같은 말입니다.", is_extracted=True)
    assert adopt.review_drafts([draft], source).text == "같은 말입니다."


def test_a_draft_is_compared_with_what_was_asked_for_when_that_is_less_than_the_target() -> None:
    source = source_of(told(33_000), 9_900)
    assert flaw_in(korean(5_900), source) is None
    assert review_drafts([korean(5_900)], source).outcome == "compressed"
    assert flaw_in(korean(9_900), source) == "long"
    assert len(review_drafts([korean(9_900)], source).text) <= 9_600


@pytest.mark.parametrize("source", [LARGE, bound_source(300, 500)])
def test_a_draft_that_broke_off_is_to_be_mended_and_else_loses_its_unfinished_sentence(source: FoldSpec) -> None:
    cut = draft_of(korean(282), is_cut=True)
    assert flaw_of(cut, source) == Flaw("cut")
    review = adopt.review_drafts([cut, cut], source)
    assert review.outcome == "shortened"
    assert review.text.endswith("요일입니다.")
    assert adopt.review_drafts([draft_of("".join(VARIED[:10]), is_cut=True)], source).outcome == "shortened"
    whole = draft_of(korean(200).strip())
    review = adopt.review_drafts([cut, whole], source)
    assert (review.text, review.outcome) == (whole.text, "compressed")


@pytest.mark.parametrize(
    ("text", "retained"),
    [
        ("하나입니다. 둘입니다. 셋이", "하나입니다. 둘입니다."),
        ("하나입니다. 둘입니다.", "하나입니다. 둘입니다."),
        ("- 파일: a.py\n- 파일: b", "- 파일: a.py"),
        ("끝이 없는 한 문장의 앞", "끝이 없는 한 문장의…"),
        ("한마디", "한마디…"),
    ],
)
def test_a_text_that_broke_off_ends_with_its_last_whole_sentence(text: str, retained: str) -> None:
    assert until_last_sentence(text) == retained


TURNS = (
    (
        "서버는 10월 14일 오전 9시에 옮기고 담당자는 김민수 대리, "
        "전화는 010-7734-2068이에요. 예산은 900만 원, 선금은 180만 원입니다."
    ),
    (
        "그날 점심 자리는 한빛식당에 있고 모두 여덟 명이 같이 가서 96,000원이에요. "
        "창고 열쇠는 관리실에 맡겨 두었으니 거기서 찾으면 된다고 들었어요."
    ),
    (
        "데이터베이스는 /var/lib/pg 아래에 212GB이고 주소는 192.168.0.15예요. "
        "견적 번호는 AK-3301, 납기는 11월 30일이라고 합니다."
    ),
)


def talk_of(*turns: str) -> FoldSpec:
    answer = AIMessage("네, 적어 두었습니다. 더 정할 것이 있으면 말씀해 주세요.")
    return spec_of([message for said in turns for message in (HumanMessage(said), answer)], 120)


FIRST = "(1턴) 서버 10월 14일 09:00, 김민수 대리 010-7734-2068. 예산 900만 원, 선금 180만 원."
LAST = "(3턴) /var/lib/pg 212GB, 192.168.0.15. 견적 AK-3301, 납기 11월 30일."


@pytest.mark.parametrize(
    ("draft", "is_lost"),
    [
        (f"{FIRST} (2턴) 점심 한빛식당, 여덟 명, 96,000원. {LAST}", False),
        (f"{FIRST} {LAST}", True),
        (f"- 1턴: {FIRST[5:]}\n- 3턴: {LAST[5:]}", True),
        # Marked together, told without a mark of its own, or no turn is marked.
        (f"{FIRST} {LAST}".replace("(1턴)", "(1-2턴)"), False),
        (f"{FIRST} {LAST}".replace("(3턴)", "(2-3턴)"), False),
        (f"{FIRST} {LAST} 창고 열쇠는 그날 찾고 점심은 8명이 함.", False),
        (f"{FIRST} {LAST}".replace("(1턴)", "").replace("(3턴)", ""), False),
    ],
)
def test_a_turn_that_a_draft_is_silent_about_is_named(draft: str, *, is_lost: bool) -> None:
    source = talk_of(*TURNS)
    flaw = flaw_of(draft_of(draft), source)
    assert (flaw is not None) is is_lost
    if flaw is not None:
        assert (flaw.kind, flaw.missing[0]) == ("lacking", "(2턴)")
        assert "여덟 명" in flaw.missing
        assert "AK-3301" not in flaw.missing
        whole = f"{FIRST} (2턴) 점심 한빛식당, 여덟 명, 96,000원. {LAST}"
        assert review_drafts([draft, whole], source).text == whole


@pytest.mark.parametrize(
    ("second", "third"),
    [
        ("점심은 여덟 명이 같이 가요.", TURNS[2]),
        (TURNS[1].replace(" 96,000원", ""), f"{TURNS[2]} 점심은 여덟 명 말고 아홉 명이에요."),
    ],
)
def test_a_short_turn_and_one_whose_values_hold_no_more_need_no_mark(second: str, third: str) -> None:
    assert flaw_of(draft_of(f"{FIRST} {LAST}"), talk_of(TURNS[0], second, third)) is None


def test_what_goes_against_the_users_word_is_named_as_invented() -> None:
    said = "Never deploy on Fridays. Ben is our backend lead. Let's go with option 2."
    source = spec_of(
        [HumanMessage(said), AIMessage("We talk about the way there at length. " * 20)], 300, language="en"
    )
    draft = (
        "(turn 1) Deploys on Fridays should be avoided if possible. Decided: option 1. Marta Lund, the backend lead, "
        "was asked. The rest of the talk was about the way there, at length, and nothing else came of it all."
    )
    flaw = flaw_of(draft_of(draft), source)
    assert flaw is not None
    assert [words.partition(" ")[0] for words in flaw.invented] == ["Deploys", "Decided:", "Marta"]
