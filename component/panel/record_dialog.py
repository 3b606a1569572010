"""The dialogs of a summary: edit, regenerate, compare versions."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple

import streamlit as st

from component import dialog, widget
from component.format import escape_label, format_count, format_rate, format_turns
from component.page_state import PageState
from component.panel import panel_head, record_action
from component.panel.record_action import EDIT, REMAKE, VERSIONS, Target
from component.words.words import Words
from graph.value.matcher import BoundedMatcher, TooManyStepsError
from graph.value.record import Record

# Including the white space after it, which alone would match everywhere and split changes.
_WORD: Final = re.compile(r"\S+\s*|\s+")
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")


class Piece(NamedTuple):
    text: str
    is_changed: bool


def differences(old: str, new: str) -> tuple[list[Piece], list[Piece]] | None:
    """Splits both texts into equal and changed pieces: deleted ones in the old text, added ones in the new.

    White space alone is no difference. Texts that take too long to compare by words are compared by lines; None if
    lines take too long, too.
    """
    for part in (_WORD, _LINE):
        try:
            return _differences(part.findall(old), part.findall(new))
        except TooManyStepsError:
            continue
    return None


def _differences(before: Sequence[str], after: Sequence[str]) -> tuple[list[Piece], list[Piece]]:
    left: list[Piece] = []
    right: list[Piece] = []
    matcher = BoundedMatcher([*map(str.strip, before)], [*map(str.strip, after)])
    for kind, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        is_changed = kind != "equal"
        for pieces, parts in ((left, before[old_from:old_to]), (right, after[new_from:new_to])):
            if parts:
                pieces.append(Piece("".join(parts), is_changed))
    return left, right


_COLUMN_PIXELS = 280


def draw_version_view(words: Words, other: Record, in_use: Record) -> None:
    compared = differences(other.summary, in_use.summary)
    before, after = compared or ([_unmarked(other)], [_unmarked(in_use)])
    with st.grid(2, min_column_width=_COLUMN_PIXELS, key="versions"):
        with st.container(border=True, gap="xsmall"):
            _draw_version(words, other, before, "del")
        with st.container(border=True, gap="xsmall"):
            _draw_version(words, in_use, after, "ins", f" :primary-badge[{words.steering.in_force}]")
    if other.summary == in_use.summary:
        widget.draw_note(words.steering.same_text)
    elif compared is None:
        widget.draw_note(words.steering.not_compared)


def name_of(words: Words, version: Record) -> str:
    labels = words.steering
    if version.kind == "verbatim":
        about = labels.version_verbatim
    elif version.edited:
        about = labels.edited
    else:
        about = words.card_rate.format(rate=format_rate(version.compression_rate))
    return labels.version.format(version=version.version, about=about, summary=format_count(version.summary_chars))


def _unmarked(version: Record) -> Piece:
    return Piece(version.summary, is_changed=False)


def _draw_version(
    words: Words, version: Record, pieces: Iterable[Piece], mark: Literal["del", "ins"], badge: str = ""
) -> None:
    st.markdown(f"**{escape_label(name_of(words, version))}**{badge}")
    if version.wish:
        widget.draw_note(f"{words.steering.instruction}: {escape_label(version.wish)}")
    labels = words.steering
    text = "".join(
        f'<{mark}><span class="unseen">{labels.only_here}</span>{html.escape(piece.text)}'
        f'<span class="unseen">{labels.change_ends}</span></{mark}>'
        if piece.is_changed
        else html.escape(piece.text)
        for piece in pieces
    )
    st.html(f'<div class="version">{text}</div>')


_INSTRUCTION_CHARS = 300
_SUMMARY_PIXELS = 320


def draw(now: PageState) -> None:
    about, labels = record_action.target(), now.words.steering
    if now.session is None or about is None or about.session_id != now.session.session_id:
        return
    dialog.draw(EDIT, labels.edit_title, _draw_edit, now, about, width=620)
    dialog.draw(REMAKE, labels.remake_title, _draw_remake, now, about)
    dialog.draw(VERSIONS, labels.versions_title, _draw_versions, now, about, width=860)


def _draw_edit(now: PageState, about: Target) -> None:
    labels, record = now.words.steering, about.record
    with st.form("edit_record", border=False):
        label = labels.summary.format(turns=format_turns(record.turns))
        st.text_area(label, value=record.summary, key=about.key("text"), height=_SUMMARY_PIXELS)
        _end_form(now, about, now.words.save, record_action.edit)


def _draw_remake(now: PageState, about: Target) -> None:
    labels, record = now.words.steering, about.record
    with st.form("remake_record", border=False):
        with st.container(gap=None):
            rate = min(0.5, max(0.1, record.compression_rate))
            panel_head.draw_slider(now.words, "dialog", rate, about.key("rate"), help=now.words.rate_help)
        wish, key, hint = record_action.instruction_of(record), about.key("wish"), labels.instruction_hint
        st.text_input(labels.instruction, value=wish, key=key, max_chars=_INSTRUCTION_CHARS, placeholder=hint)
        _end_form(now, about, labels.make, record_action.remake)


def _draw_versions(now: PageState, about: Target) -> None:
    labels = now.words.steering
    versions = {version.id: version for version in now.service.folds.versions(about.session_id, about.record.id)}
    in_use = versions.pop(about.record.id, about.record)
    if not versions:
        with st.container(border=True, gap="xsmall"):
            _draw_version(now.words, in_use, [_unmarked(in_use)], "ins")
        widget.draw_note(labels.only_version)
        st.button(labels.close, key="dialog_cancel", on_click=dialog.close)
    else:
        names = list(versions)
        chosen = st.selectbox(
            labels.other_version,
            names,
            index=len(names) - 1,
            format_func=lambda name: name_of(now.words, versions[name]),
            key=about.key("version"),
        )
        draw_version_view(now.words, versions[chosen], in_use)
        record_action.show_refusal(now.words)
        use, version = record_action.use_version, versions[chosen]
        dialog.draw_choice(labels.use, use, about, version, cancel=labels.close, is_form=False)


def _end_form(now: PageState, about: Target, label: str, save: Callable[[Target], None]) -> None:
    widget.draw_note(now.words.steering.from_next_turn)
    record_action.show_refusal(now.words)
    dialog.draw_choice(label, save, about, cancel=now.words.cancel)
