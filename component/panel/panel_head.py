"""The head of the panel: the rate slider and a forecast of the next summary."""

from __future__ import annotations

import html
from typing import Any, Final, Literal

import streamlit as st

from component import page_state, redraw, widget
from component.bridge import delivery
from component.format import format_about, format_count, format_rate
from component.page_state import PageState
from component.words.words import Words
from graph.value.view import NextFold

_ALIGNMENTS: Final[tuple[Literal["left", "center", "right"], ...]] = ("left", "center", "right")


def is_used(now: PageState) -> bool:
    return now.service.folds.uses_rate(page_state.chosen(page_state.STRATEGY))


def draw_rate(now: PageState) -> None:
    """Draws the rate for the settings, with a button that opens the panel at the slider."""
    words, note = now.words, now.words.rate_unused
    share = button = ""
    if is_used(now):
        note = words.rate_note
        share = f"<b>{words.rate_share.format(percent=round(st.session_state[page_state.RATE] * 100))}</b>"
        change = words.change_rate
        button = widget.icon_button("open-panel", "", change, change, **{"data-to": "[type=range]"})
    st.html(f'<p class="rate"><span>{words.rate}</span>{share}{button}</p>')
    widget.draw_note(note)


def draw_slider(words: Words, place: str, rate: float, key: str, **options: Any) -> None:  # noqa: ANN401  # those of `st.slider`
    """Draws a rate slider, and below it the words of its ends and its middle."""
    st.slider(words.rate, min_value=0.1, max_value=0.5, value=rate, step=0.05, key=key, **options)
    with st.container(horizontal=True, wrap=False, gap=None, key=f"rate_scale_{place}"):
        for text, alignment in zip(words.rate_scale, _ALIGNMENTS, strict=True):
            st.markdown(f":small[:gray[{text}]]", text_alignment=alignment)


FAILURES_TO_TELL = 3
_EXAMPLE_CHARS = 1_200


def draw(page: PageState, *, has_records: bool) -> None:
    """Draws the head; before the first summary, also when and how one is made."""
    words, rate = page.words, st.session_state[page_state.RATE]
    with st.container(border=True, gap="xsmall", key="panel_head"):
        if is_used(page):
            with st.container(horizontal=True, horizontal_alignment="distribute", gap="xsmall"):
                current = words.current_rate.format(rate=format_rate(rate))
                st.markdown(f":small[:gray[{current}]]", width="content")
                share = words.rate_share.format(percent=round(rate * 100))
                st.markdown(f":small[:primary[**{share}**]]", width="content")
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
            widget.draw_note(line)


@delivery.fragment(key=redraw.LACK)
def _draw_lack(page: PageState, *, has_records: bool) -> None:
    with widget.error_box(page.words):
        now = page_state.look_again(page)
        words, following = now.words, now.following
        is_first = not has_records and bool(following.turns) and not following.is_reset
        if is_first:
            st.html(_steps(words, following))
        if note := _note(now, following, has_records=has_records):
            widget.draw_note(note)
        if is_first:
            st.html(_sample(words, following, st.session_state[page_state.RATE]))


def _lines(now: PageState, following: NextFold, rate: float) -> list[str]:
    words = now.words
    lines = [] if is_used(now) else [words.rate_unused]
    if following.stands_verbatim:
        verbatim = words.next_verbatim if following.turns_left else words.next_short
        lines.append(verbatim.format(original=format_count(following.original_chars)))
    elif following.original_chars:
        summary = format_about(following.summary_chars)
        lines.append(words.next_by_chars.format(original=format_count(following.original_chars), summary=summary))
    elif following.turns:
        summary = format_about(round(_EXAMPLE_CHARS * rate))
        original = format_count(_EXAMPLE_CHARS)
        lines.append(words.next_by_turn.format(turn=following.turns[-1], original=original, summary=summary))
    elif following.threshold_tokens:
        tokens, threshold = format_count(following.tokens), format_count(following.threshold_tokens)
        lines.append(words.next_by_tokens.format(tokens=tokens, threshold=threshold))
    if following.original_chars and following.turns_left and page_state.chosen(page_state.FOLD_WHEN) == "pays":
        lines.append(words.next_together.format(first=following.turns[0], last=following.turns[-1]))
    return lines


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
        return words.fold_making
    return words.fold_retry if failures else words.fold_waiting


def _lack(now: PageState, following: NextFold) -> str:
    words = now.words
    if following.is_reset:
        return words.no_records_since_reset
    if following.turns:
        return words.turns_left.format(count=following.turns_left)
    if not following.threshold_tokens:
        return f"{words.no_records} {words.compact_by_hand}"
    rule = words.no_record_notes[page_state.chosen(page_state.STRATEGY)]
    return f"{words.no_records} {rule.format(threshold=format_count(following.threshold_tokens))}"


def _steps(words: Words, following: NextFold) -> str:
    count = len(following.turns)
    done = count - following.turns_left
    dots = "".join(f'<i class="{"on" if number < done else ""}"></i>' for number in range(count))
    marks = (f'<span class="dots">{dots}</span>', "<b>↓</b>", "<b>✓</b>")
    texts = (words.step_talk.format(count=count), words.step_fold, words.step_sent)
    items = "".join(
        f'<li><span aria-hidden="true">{mark}</span>{html.escape(text)}</li>'
        for mark, text in zip(marks, texts, strict=True)
    )
    return f'<ol class="steps">{items}</ol>'


def _sample(words: Words, following: NextFold, rate: float) -> str:
    title = words.card_title.format(turns=f"{following.turns[0]}-{following.turns[-1]}")
    summary_chars = len(words.sample_text)
    original, summary = format_count(round(summary_chars / rate)), format_count(summary_chars)
    chars = words.card_chars.format(original=original, summary=summary, percent=round(100 * rate))
    rate_text = words.card_rate.format(rate=format_rate(rate))
    return (
        f'<div class="sample"><p><b>{title}</b> {rate_text} · {words.sample}</p><p>{chars}</p>'
        f"<p>{html.escape(words.sample_text)}</p></div>"
    )
