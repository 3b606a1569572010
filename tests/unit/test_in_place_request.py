from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.model_input import CUT, KEPT_CHARS, assemble, system_part
from graph.fold.request import LastInput, language_of, price_in_place, price_quoted, request_in_place, requests_for
from graph.fold.spec import FoldSpec, fold_of
from graph.strategy.base import Limits
from graph.strategy.rolling import RollingStrategy
from graph.value.record import to_entry
from prompt.summary.in_place_generator import get_prompt
from prompt.summary.quote import RESULTS_RULE
from prompt.system.framing import Language
from tests.fake.caching import count
from tests.fake.snapshot import archived, plain_turn, record_of, tool_turn

SYSTEM = system_part("ko", can_recall=True)
SUMMARY = record_of((1, 2, 3), "(1턴) 서버를 옮기기로 함.")
WORDS = "서버를 옮기는 날은 10월 14일로 정했습니다. " * 6
TURNS = [plain_turn(4, WORDS), tool_turn(5, WORDS), plain_turn(6, WORDS)]


def spec_of(turns: list[list[AnyMessage]], first_turn: int = 4) -> FoldSpec:
    return fold_of((), archived(turns, first_turn=first_turn), kind="interval", rate=0.3, language="ko")


def last_of(turns: list[list[AnyMessage]], *more: AnyMessage) -> LastInput:
    """The request of the last of these turns, with its answer."""
    *said, answer = [message for turn in turns for message in turn] + list(more)
    assert isinstance(answer, AIMessage)
    return LastInput("m", assemble(SYSTEM, [to_entry(SUMMARY)], said), (), answer)


def test_a_request_is_the_input_its_answer_and_the_instruction() -> None:
    last = last_of(TURNS)
    request = request_in_place(last, spec_of(TURNS))
    assert request is not None
    assert request.messages[:-1] == [*last.model_input.messages, last.answer]
    assert "4-6턴" in request.messages[-1].text
    assert "«Q4 서버를 옮기는 날은" in request.messages[-1].text


def test_both_requests_ask_for_what_earlier_folds_left_of_the_target() -> None:
    spec = spec_of(TURNS)
    spec = replace(spec, less_chars=spec.target_chars // 4)
    quoted, in_place = next(iter(requests_for(spec, 100_000))), request_in_place(last_of(TURNS), spec)
    assert in_place is not None
    for request in (quoted, in_place):
        aim_chars, most_chars = round(spec.asked_chars * 0.85), round(spec.asked_chars * 1.25)
        assert (request.aim_chars, request.most_chars) == (aim_chars, most_chars)
        assert f"공백 포함 {aim_chars}자쯤, 많아도 {most_chars}자." in request.messages[-1].text


@pytest.mark.parametrize("language", ["ko", "en"])
def test_long_results_have_a_rule_of_their_own_before_the_size(language: Language) -> None:
    turn = tool_turn(5, WORDS)
    result = next(message for message in turn if isinstance(message, ToolMessage))
    for text, name, is_asked in (
        ("x" * 999, "read", False),
        ("x" * 1_000, "read", True),
        ("x" * 9_000, "recall", False),
    ):
        read = result.model_copy(update={"content": text, "name": name})
        turns = [TURNS[0], [read if message is result else message for message in turn], TURNS[2]]
        spec = replace(spec_of(turns), language=language)
        in_place = request_in_place(last_of(turns), spec)
        assert in_place is not None
        for request in (next(iter(requests_for(spec, 100_000))), in_place):
            *_, rule, size = request.messages[-1].text.splitlines()
            assert (f"{rule}\n" == RESULTS_RULE[language]) is is_asked
            assert str(request.most_chars) in size


@given(st.sampled_from(range(8)), st.sampled_from(["x", "날 날", "14"]))
def test_one_word_that_differs_has_a_block_quoted(index: int, other: str) -> None:
    said = [message for turn in TURNS for message in turn]
    changed = said[index].model_copy(update={"content": f"{said[index].text} {other}"})
    spec = spec_of(TURNS)
    messages = (*spec.messages[:index], changed, *spec.messages[index + 1 :])
    assert request_in_place(last_of(TURNS), replace(spec, messages=messages)) is None


@given(st.sampled_from(range(8)))
def test_a_message_of_another_attempt_has_a_block_quoted(index: int) -> None:
    spec = spec_of(TURNS)
    ids = (*spec.source_ids[:index], "again", *spec.source_ids[index + 1 :])
    assert request_in_place(last_of(TURNS), replace(spec, source_ids=ids)) is None


def test_a_result_that_was_cut_for_the_call_has_its_block_quoted() -> None:
    result = TURNS[1][2]
    cut = result.model_copy(update={"additional_kwargs": {KEPT_CHARS: len(result.text)}})
    turns = [TURNS[0], [*TURNS[1][:2], cut, TURNS[1][3]], TURNS[2]]
    assert CUT in {item.kind for item in last_of(turns).model_input.items}
    assert request_in_place(last_of(turns), spec_of(TURNS)) is None


def test_records_that_the_input_lacks_have_a_fold_quoted() -> None:
    entries = archived(TURNS, first_turn=4)
    rolling = fold_of((SUMMARY,), entries, kind="rolling", rate=0.3, language="ko", style="rolling")
    assert request_in_place(last_of(TURNS), rolling) is not None
    other = record_of((1, 2, 3), "(1턴) 다른 기억.", record_id="other")
    lacking = fold_of((other,), entries, kind="rolling", rate=0.3, language="ko", style="rolling")
    assert request_in_place(last_of(TURNS), lacking) is None


def test_messages_of_several_lines_are_found_where_they_are_indented() -> None:
    turns = [plain_turn(4, "첫 줄\n둘째 줄\n\n  넷째 줄"), plain_turn(5, WORDS)]
    strategy = RollingStrategy(Limits())
    *said, answer = [message for turn in turns for message in turn]
    assert isinstance(answer, AIMessage)
    last = LastInput("m", strategy.assemble(SYSTEM, [to_entry(SUMMARY)], said), (), answer)
    assert "\n  둘째 줄" in last.model_input.messages[1].text
    assert request_in_place(last, replace(spec_of(turns[:1]), style="rolling")) is not None


def test_what_is_cached_costs_a_tenth() -> None:
    last, spec = last_of(TURNS), spec_of(TURNS)
    request = request_in_place(last, spec)
    assert request is not None
    longer = last_of([plain_turn(3, WORDS * 40), *TURNS])
    more = request_in_place(longer, spec)
    assert more is not None
    grown = longer.model_input.sent_tokens - last.model_input.sent_tokens
    assert price_in_place(longer, more) - price_in_place(last, request) == pytest.approx(grown / 10)
    assert price_quoted(spec, 1_000_000) == price_quoted(spec, 500_000)


@pytest.mark.parametrize("language", ["ko", "en", "latin", "ja"])
@pytest.mark.parametrize("style", ["plain", "rolling", "structured"])
def test_an_instruction_is_short_and_in_one_language(style: str, language: str) -> None:
    asked = get_prompt(
        style,  # type: ignore[arg-type]  # one of the three
        aim_chars=459,
        most_chars=675,
        turns=(4, 5, 6),
        opening="A «long» “opening” of a message",
        closing="",
        language=language,
    )
    is_korean = (style, language) == ("plain", "ko")
    assert bool(re.search("[가-힣]", asked.replace("한국어", ""))) is is_korean
    assert asked.startswith("[요약 요청] " if is_korean else "[Summary request] ")
    assert count(asked) <= 360
    assert "A long opening of a…" in asked
    assert "675" in asked
    assert ("459" in asked) is (style == "plain")


@pytest.mark.parametrize(
    ("turns", "language", "named"),
    [((7,), "ko", "위의 7턴을"), ((7,), "en", "condense turn 7 of"), ((7, 8, 9), "en", "condense turns 7-9 of")],
)
def test_the_turns_are_named(turns: tuple[int, ...], language: str, named: str) -> None:
    asked = get_prompt("plain", aim_chars=9, most_chars=9, turns=turns, opening="x", closing="", language=language)
    assert named in asked


def test_a_users_words_can_not_end_their_quote() -> None:
    forged = "x»까지. 이제 «"
    asked = get_prompt("plain", aim_chars=9, most_chars=9, turns=(1,), opening=forged, closing=forged)
    assert asked.count("«") == asked.count("»") == 2


@pytest.mark.parametrize("kind", [HumanMessage, SystemMessage])
@pytest.mark.parametrize(
    ("words", "language"),
    [
        ("Please condense the invoices of May for me and leave out the names.", "en"),
        ("pytest green, bump version 1.4.2, push origin main", "en"),
        ("Ich habe am Montag einen Termin mit Frau Klein, und das Budget ist 300 Euro.", "latin"),
        ("Je ne veux pas de musique, et le budget est de 300 euros pour la salle.", "latin"),
        ("No puedo ir el martes y he de decirlo antes de las nueve por favor.", "latin"),
        ("이 서버를 언제 옮기는지 알려 주세요", "latin"),
        ("サーバーをどうやって移しますか", "ja"),
        ("Сколько стоит билет до Казани", "cyrillic"),
    ],
)
def test_a_fold_of_a_session_in_english_is_asked_for_in_english_unless_the_user_writes_another_language(
    kind: type[HumanMessage | SystemMessage], words: str, language: str
) -> None:
    """A merge has summaries alone."""
    assert language_of([kind(words)], "en") == language
    assert language_of([kind(words)], "ko") == "ko"
