"""Selects the page's language, and the sentences for errors and compactions."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Final

from component.format import day_group, escape_label, format_count, format_tokens
from component.words.text import Language
from component.words.words import Words
from graph.value.error import AttachmentError, BusyError, InputError, PathError, TurnfoldError
from graph.value.record import Record
from graph.value.view import EXAMPLE_MODEL, FactCount, TurnView

_REFUSALS: Final = {
    "before_reset", "compact_stopped", "no_effect", "no_reset", "not_active", "not_last", "not_shorter",
    "nothing_to_compact", "pin_budget", "reset_words", "stands_verbatim"
}  # fmt: skip
# Details that tell a user nothing: an id, a number of a turn or a line, how many answers the server writes at once.
_BARE: Final = {"not_an_export", "not_found", "not_last", "server_busy", "user_busy"}
# Reasons whose details are figures; other details may be names that look like figures.
_WITH_FIGURES: Final = {
    "instructions_too_long", "message_too_long", "not_shorter", "over_guessed_window", "over_window", "too_long"
}  # fmt: skip
_FIGURE: Final = re.compile(r"\d+")


@cache
def words_of(language: Language) -> Words:
    return Words(language)


def language_of_locale(locale: str | None) -> Language:
    """Returns the initial language for a browser's locale; Korean if the browser reports none."""
    return "ko" if locale is None or locale.lower().startswith("ko") else "en"


def explain(words: Words, code: str, detail: str = "") -> str:
    """Returns the sentence for an error code as Markdown, with the detail appended if there is one."""
    if detail and code in words.detailed_errors:
        sentence = words.detailed_errors[code]
        return sentence.format(detail=as_code(detail) if "`{detail}`" in sentence else escape_label(detail))
    sentence = words.errors.get(code, words.errors["internal"])
    return f"{sentence} ({escape_label(detail)})" if detail and code not in _BARE else sentence


def as_code(text: str) -> str:
    """Returns a text to be put between backticks: an address as code is no link."""
    return text.replace("`", "'")


def explain_error(words: Words, error: TurnfoldError) -> str:
    """Returns the sentence for an error as Markdown; for input, paths and files by reason."""
    if isinstance(error, InputError | PathError | AttachmentError):
        reasons = {"input": words.input_reasons, "path": words.path_reasons, "attachment": words.attachment.reasons}
        sentence = reasons[error.code].get(error.reason, words.errors[error.code])
        if "{" in sentence:
            return sentence.format(*map(format_count, map(int, _FIGURE.findall(error.detail))))
        if error.detail in words.errors:  # the cause's code
            return f"{sentence} {words.errors[error.detail]}"
        if error.reason in _BARE or error.detail in {"", error.reason}:
            return sentence
        detail = error.detail
        if isinstance(error, InputError) and error.reason in _WITH_FIGURES:
            detail = _FIGURE.sub(lambda figure: format_count(int(figure[0])), detail)
        return f"{sentence} ({escape_label(detail)})"
    return explain(words, error.code, error.detail)


def describe_date(words: Words, moment: datetime) -> str:
    weekday, month = words.weekdays[moment.weekday()], words.months[moment.month - 1]
    return words.date.format(weekday=weekday, day=moment.day, month=month, year=moment.year)


def describe_day(words: Words, moment: datetime, now: datetime, zone: tzinfo) -> str:
    """Returns the day of a time in the reader's zone: today, yesterday, or its date."""
    group = day_group(moment, now, zone)
    return words.days[group] if group in {"today", "yesterday"} else describe_date(words, moment.astimezone(zone))


def day_line(words: Words, moment: datetime, before: datetime | None, zone: tzinfo) -> str:
    """Returns a line, as HTML, above the first turn of a day; none above the first of all if that is today's."""
    now = datetime.now(UTC)
    day = moment.astimezone(zone).date()
    if day == (before or now).astimezone(zone).date():
        return ""
    return f'<p class="day"><time datetime="{day}">{describe_day(words, moment, now, zone)}</time></p>'


def describe_attempt(words: Words, turn: TurnView, zone: tzinfo) -> str:
    """Returns the model, time and tokens of a turn's answer as HTML."""
    if turn.model == EXAMPLE_MODEL:
        return words.prepared
    parts = [html.escape(turn.model)]
    if turn.started_at is not None:
        local = turn.started_at.astimezone(zone)
        shown = f"{describe_date(words, local)} {local:%H:%M}"
        parts.append(f'<time datetime="{local.isoformat(timespec="seconds")}">{shown}</time>')
    if round(turn.seconds, 1):
        parts.append(words.tool_seconds.format(seconds=f"{turn.seconds:.1f}"))
    if turn.input_tokens:
        sent, said = (format_tokens(count, is_usage=turn.is_usage) for count in (turn.input_tokens, turn.output_tokens))
        parts.append(words.answer_tokens.format(input=sent, output=said))
    return "<br>".join(filter(None, parts))


def is_refusal(error: TurnfoldError) -> bool:
    """Returns True if nothing failed: the action isn't possible at the moment, or has no effect."""
    return isinstance(error, BusyError) or (isinstance(error, InputError) and error.reason in _REFUSALS)


def describe_strategy(words: Words, name: str, fold_when: str, window_turns: int) -> str:
    if name == "window" and not window_turns:
        return words.window_alone
    key = fold_when if (name, fold_when) == ("interval", "pays") else name
    return words.strategy_notes.get(key, "").format(count=window_turns)


def describe_facts(words: Words, counts: Iterable[FactCount]) -> str:
    """Returns counts by class in a line: 규칙 6/6 · 숫자 31/34."""
    return " · ".join(f"{words.fact_classes[count.name]} {count.kept}/{count.total}" for count in counts)


def describe_compaction(words: Words, record: Record) -> str:
    before, after = record.context_tokens, record.context_tokens_after
    return words.compacted.format(
        before=record.context_messages,
        after=record.context_messages_after,
        tokens_before=format_count(before),
        tokens_after=format_count(after),
        percent=round(100 * (before - after) / before) if before else 0,
    )
