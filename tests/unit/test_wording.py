from __future__ import annotations

import re
import string
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args
from zoneinfo import ZoneInfo

import pytest

import graph
import graph.value.error
from component.words.text import LANGUAGES, Group, Language
from component.words.wording import describe_day, explain, explain_error, language_of_locale, words_of
from graph.value import error as errors
from graph.value.error import InputReason, PathReason, SignInReason


def codes(parent: type[errors.TurnfoldError] = errors.TurnfoldError) -> Iterator[str]:
    yield parent.code
    for child in parent.__subclasses__():
        yield from codes(child)


def sentences(words: Group) -> Iterator[tuple[str, str]]:
    for name, value in {**words.texts(), **vars(words)}.items():
        if isinstance(value, Group):
            yield from ((f"{name}.{key}", text) for key, text in sentences(value))
        elif isinstance(value, Mapping):
            yield from ((f"{name}.{key}", text) for key, text in value.items())
        elif isinstance(value, tuple):
            yield from ((f"{name}.{number}", text) for number, text in enumerate(value))
        elif isinstance(value, str) and name != "language":
            yield name, value


def placeholders(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def codes_without_an_error() -> set[str]:
    """The codes that rows are given though nothing was raised, as the product's source has them."""
    named = re.compile(r"""(?:error_code=|_CODE = |INTERRUPTED: Final = )"(\w+)\"""")
    sources = Path(graph.__path__[0]).rglob("*.py")
    found = {code for source in sources for code in named.findall(source.read_text(encoding="utf-8"))}
    assert {"interrupted", "expired", "summary_language"} <= found
    return found - {"discarded"}  # what is thrown away was no failure, and is never told


def test_nothing_is_left_in_english_on_the_korean_page() -> None:
    korean, english = dict(sentences(words_of("ko"))), dict(sentences(words_of("en")))
    assert not [name for name in korean if korean[name] == english[name]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_code_has_its_sentence(language: Language) -> None:
    assert set(codes()) | codes_without_an_error() == set(words_of(language).errors)


def test_both_languages_say_the_same_things_with_the_same_blanks() -> None:
    korean, english = dict(sentences(words_of("ko"))), dict(sentences(words_of("en")))
    assert korean.keys() == english.keys()
    different = {name for name, text in korean.items() if placeholders(text) != placeholders(english[name])}
    assert different == {"current_rate"}  # English gives the rate in per cent alone, beside it


def test_a_rate_is_a_number_in_korean_and_per_cent_in_english() -> None:
    said = [words_of(language).card_rate.format(rate=0.15000000000000002) for language in LANGUAGES]
    assert said == ["압축률 0.15", "target 15%"]
    said = [words_of(language).steering.rates.format(target=0.3, achieved=0.05) for language in LANGUAGES]
    assert said == ["목표 0.3 → 실제 0.05", "target 30% → achieved 5%"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_old_word_stands_beside_the_new_one(language: Language) -> None:
    old = {
        "ko": r"접(?:[은는어었을고히힌기]|습니)|문맥|그림|고르(?:세|기|면)|골라|고를|고른|[^심]사실",
        "en": r"(?i)\b(?:un)?fold(?:s|ed|ing)?\b|\bpictures?\b|\bagreed?\b",
    }
    assert [told for told in sentences(words_of(language)) if re.search(old[language], told[1])] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_empty(language: Language) -> None:
    assert all(text.strip() for _, text in sentences(words_of(language)))


def test_labels_of_the_design_stand_exactly() -> None:
    words = words_of("ko")
    assert words.settings == "⚙️ 고급 설정"
    assert words.rate == "요약 압축률"
    assert words.rate_help == "낮을수록 짧게 요약, 높을수록 상세하게 요약"
    assert words.history == "📝 대화 요약 히스토리"
    assert words.statistics == "📊 요약 통계"


def test_unknown_code_gets_the_general_sentence() -> None:
    assert explain(words_of("en"), "no-such-code") == words_of("en").errors["internal"]
    assert explain(words_of("en"), "silence", "120").startswith("The model's server was silent for 120 s")
    assert explain(words_of("ko"), "deadline", "300").startswith("답변이 300초(MODEL_DEADLINE_SECONDS) 안에")
    assert explain(words_of("en"), "deadline") == "The answer didn't finish in time."


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_error_of_the_endpoint_says_what_to_do(language: Language) -> None:
    words = words_of(language)
    unreachable = explain_error(words, errors.UnreachableError("http://127.0.0.1:11434/v1")).replace("\\", "")
    assert "http://127.0.0.1:11434/v1" in unreachable
    assert {"ko": "켜져 있는지", "en": "running?"}[language] in unreachable
    assert ".env" in words.errors["authentication"]
    assert "OPENAI_API_KEY" in words.errors["authentication"]
    assert "/compact" in words.errors["context_length"]


def test_input_error_is_told_by_its_reason() -> None:
    assert explain_error(words_of("ko"), errors.InputError("empty")) == "내용이 없습니다."
    assert explain_error(words_of("en"), errors.InputError("too_long", "9 > 5")).endswith("(9 > 5)")
    # An id, a line or a number of answers says nothing to who reads it.
    for error in (
        errors.NotFoundError("70gKGJYkyZxYCzq5"),
        errors.InputError("not_an_export", "1"),
        errors.InputError("not_last", "4"),
        errors.ServerBusyError("8"),
    ):
        assert "(" not in explain_error(words_of("en"), error)


@pytest.mark.parametrize(
    ("reason", "detail", "shown"),
    [
        ("too_long", "120345 > 100000", "120,345 > 100,000"),
        ("message_too_long", "200001 > 200000", "200,001 > 200,000"),
        ("over_window", "≈120345 > 8192", "≈120,345 > 8,192"),
        ("not_shorter", "9999 > 9998", "9,999 > 9,998"),
        ("import_too_large", "50,000,000", "50,000,000"),
        ("token_name_taken", "20261125", "20261125"),
        ("unknown_call", "call-120345", "call-120345"),
    ],
)
def test_figures_of_an_error_are_written_as_all_are_and_names_stay(
    reason: InputReason, detail: str, shown: str
) -> None:
    assert explain_error(words_of("en"), errors.InputError(reason, detail)).endswith(f"({shown})")


def test_a_pin_that_is_too_long_is_told_with_both_figures() -> None:
    error = errors.InputError("pin_budget", "12345 > 225")
    assert explain_error(words_of("en"), error) == "Too long to pin: ≈12,345 tokens, 225 left."
    assert explain_error(words_of("ko"), error) == "고정 한도를 넘습니다. 이 메시지 ≈12,345토큰, 남은 한도 225토큰."


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_guessed_window_names_its_setting(language: Language) -> None:
    words = words_of(language)
    assert "MODEL_WINDOW_TOKENS" in words.window_guess_help
    refused = errors.InputError("over_guessed_window", "≈71499 > 8192")
    assert "`MODEL_WINDOW_TOKENS`" in explain_error(words, refused)


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_reason_of_an_error_has_its_sentence(language: Language) -> None:
    words = words_of(language)
    assert set(words.input_reasons) == set(get_args(InputReason))
    assert set(words.path_reasons) == set(get_args(PathReason))
    assert all(getattr(words.sign_in, reason) for reason in get_args(SignInReason))


def test_path_error_is_told_by_its_reason_and_its_path() -> None:
    told = explain_error(words_of("en"), errors.PathError("not_regular", "docs/AGENTS.md"))
    assert told.startswith("This isn't a regular file. (docs/AGENTS")
    assert errors.PathError("vanished", "\udcff.md").detail == "?.md"


def test_browser_that_says_nothing_gets_korean() -> None:
    assert language_of_locale(None) == "ko"
    assert language_of_locale("KO-kr") == "ko"
    assert language_of_locale("fr") == "en"


def test_a_day_has_its_name_or_its_date() -> None:
    seoul, now = ZoneInfo("Asia/Seoul"), datetime(2026, 11, 27, 16, tzinfo=UTC)  # the 28th in Seoul
    days = [describe_day(words_of("en"), now - timedelta(hours=hours), now, seoul) for hours in (0, 2, 26)]
    assert days == ["Today", "Yesterday", "Thursday, 26 November 2026"]
    assert describe_day(words_of("ko"), now, now + timedelta(days=9), seoul) == "2026년 11월 28일 토요일"
