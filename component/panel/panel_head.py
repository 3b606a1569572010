"""The head of the panel: the rate slider and a forecast of the next summary."""

from __future__ import annotations

import html
from typing import Any, Final, Literal

import streamlit as st

from component import page_state, redraw, widget
from component.bridge import delivery
from component.format import format_about, format_count, format_percent
from component.page_state import PageState
from component.words.words import Words
from graph.value.view import NextFold
from prompt.summary.summary_generator import MAX_TARGET_CHARS

_ALIGNMENTS: Final[tuple[Literal["left", "center", "right"], ...]] = ("left", "center", "right")


def is_used(now: PageState) -> bool:
    return now.service.folds.uses_rate(page_state.chosen(page_state.STRATEGY))


def draw_slider(words: Words, place: str, rate: float | None, key: str, **options: Any) -> None:  # noqa: ANN401  # those of `st.slider`
    """Draws a rate slider, and below it the words of its ends and its middle."""
    st.slider(words.rate, min_value=0.1, max_value=0.5, value=rate, step=0.05, key=key, **options)
    with st.container(horizontal=True, wrap=False, gap=None, key=f"rate_scale_{place}"):
        for text, alignment in zip(words.rate_scale, _ALIGNMENTS, strict=True):
            st.markdown(f":small[:gray[{text}]]", text_alignment=alignment)


FAILURES_TO_TELL = 3
_EXAMPLE_CHARS = 1_200
# Of each prepared summary, and from where to where on the slider it is the nearest.
_SAMPLE_RATES: Final = ((0.1, 0.0, 0.2), (0.3, 0.2, 0.4), (0.5, 0.4, 1.0))


def draw(page: PageState, *, has_records: bool) -> None:
    """Draws the head; before the first summary, also when and how one is made."""
    words, rate = page.words, st.session_state[page_state.RATE]
    with st.container(border=True, gap="xsmall", key="panel_head"):
        if is_used(page):
            st.html(f'<p class="rate-now">{_at(words.current_rate, rate)}<b>{_at(words.rate_share, rate)}</b></p>')
        _draw_slider(page)
        _draw_lines(page)
    _draw_lack(page, has_records=has_records)


@delivery.fragment()
def _draw_slider(page: PageState) -> None:
    if page_state.is_moved():
        st.rerun()
    key, is_off = page_state.slider_key(), not is_used(page)
    if is_off:
        key += "_unused"  # another key: until it is gone, the enabled slider's reports still count
    # Not set through session_state: such a value is sent once, and a slider that misses it shows 0.1.
    rate = st.session_state[page_state.RATE]
    with st.container(key="rate", gap=None):  # the text above is its label
        draw_slider(page.words, "panel", rate, key, label_visibility="collapsed", disabled=is_off)


# Separate from the slider, which needn't be redrawn: each answer changes the forecast.
@delivery.fragment(key=redraw.HEAD)
def _draw_lines(page: PageState) -> None:
    with widget.error_box(page.words):
        now = page_state.look_again(page)
        redraw.note_head(now.following, now.session)
        for line in _lines(now, now.following, st.session_state[page_state.RATE]):
            st.html(f'<p class="faint">{line}</p>')


@delivery.fragment(key=redraw.LACK)
def _draw_lack(page: PageState, *, has_records: bool) -> None:
    with widget.error_box(page.words):
        now = page_state.look_again(page)
        words, following = now.words, now.following
        is_first = not has_records and bool(following.turns) and not following.is_reset
        if note := _note(now, following, has_records=has_records):
            widget.draw_note(note)
        if is_first:
            st.html(_samples(words, st.session_state[page_state.RATE]))
            messages = "".join(f"<p>{html.escape(message)}</p>" for message in words.sample_messages)
            st.html(f'<details class="sample"><summary>{words.sample_original}</summary>{messages}</details>')


def _lines(now: PageState, following: NextFold, rate: float) -> list[str]:
    words = now.words
    lines = [] if is_used(now) else [words.rate_unused]
    if following.stands_verbatim:
        verbatim = words.next_verbatim if following.turns_left else words.next_short
        lines.append(verbatim.format(original=format_count(following.original_chars)))
    elif following.original_chars:
        lines.append(_forecast(words.next_by_chars, rate, following.original_chars))
    elif following.turns:  # the empty page says when
        template = words.next_by_turn if _is_begun(now) else words.next_example
        lines.append(_forecast(template, rate, _EXAMPLE_CHARS, turn=following.turns[-1]))
    elif following.threshold_tokens:
        tokens, threshold = format_count(following.tokens), format_count(following.threshold_tokens)
        lines.append(words.next_by_tokens.format(tokens=tokens, threshold=threshold))
    if following.original_chars and following.turns_left and page_state.chosen(page_state.FOLD_WHEN) == "pays":
        lines.append(words.next_together.format(first=following.turns[0], last=following.turns[-1]))
    return lines


def _is_begun(now: PageState) -> bool:
    return now.session is not None and now.session.turn_count > 0


def _forecast(template: str, rate: float, chars: int, **values: int) -> str:
    return _at(template.format(original=format_count(chars), summary="{summary}", **values), rate, chars)


def _note(now: PageState, following: NextFold, *, has_records: bool) -> str:
    """Returns a sentence on a strategy without summaries, a due fold, or a missing summary; "" for none."""
    words = now.words
    if following.sent_turns is not None:
        return words.window_turns.format(count=following.sent_turns) if following.sent_turns else words.window_alone
    if following.ready:
        return words.fold_ready
    if not following.is_due or following.stands_verbatim:  # whose line says what becomes of it
        return "" if has_records or following.is_due else _lack(now, following)
    failures = now.session.fold_failures if now.session else 0
    if failures >= FAILURES_TO_TELL:
        return words.fold_warning.format(count=failures)
    if following.is_making:
        return words.fold_held if following.is_held else words.fold_making
    return words.fold_retry if failures else words.fold_waiting


def _lack(now: PageState, following: NextFold) -> str:
    words = now.words
    if following.is_reset:
        return words.no_records_since_reset
    if following.turns:
        told = words.turn_left if following.turns_left == 1 else words.turns_left.format(count=following.turns_left)
        return told if _is_begun(now) else ""
    if not following.threshold_tokens:
        return f"{words.no_records} {words.compact_by_hand}"
    rule = words.no_record_notes[page_state.chosen(page_state.STRATEGY)]
    return f"{words.no_records} {rule.format(threshold=format_count(following.threshold_tokens))}"


def _at(template: str, rate: float, chars: int = 0) -> str:
    """Returns a text with the rate in it, which follows the slider while it is dragged (`asset/panel.js`)."""
    summary = format_about(min(int(chars * rate), MAX_TARGET_CHARS))
    text = template.format(rate=round(rate, 2), percent=round(rate * 100), summary=summary)
    most = f'data-chars="{chars}" data-most="{MAX_TARGET_CHARS}"'
    return f'<span data-rate="{html.escape(template)}" {most}>{html.escape(text)}</span>'


def _samples(words: Words, rate: float) -> str:
    """Returns a card for each of the prepared summaries, all but the nearest hidden."""
    title, original_chars = words.card_title.format(turns="1-3"), sum(map(len, words.sample_messages))
    cards = []
    for (each, begin, end), notes in zip(_SAMPLE_RATES, words.sample_notes, strict=True):
        percent = format_percent(len(notes), original_chars)
        original, summary = format_count(original_chars), format_count(len(notes))
        chars = words.card_chars.format(original=original, summary=summary, percent=percent)
        about = f"<b>{title}</b> {words.card_rate.format(rate=each)} · {words.sample}"
        text = "".join(f"<p>{html.escape(line)}</p>" for line in notes.splitlines())
        hidden = "" if begin <= rate < end else " hidden"
        place = f'data-begin="{begin}" data-end="{end}"{hidden}'
        cards.append(f'<div class="sample" {place}><p>{about}</p><p>{chars}</p>{text}</div>')
    return "".join(cards)
