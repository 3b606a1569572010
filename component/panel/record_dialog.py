"""What changes a summary: the dialogs to edit, regenerate and compare it, the callbacks, and the line to undo."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import streamlit as st

from component import background, dialog, page_state, redraw, widget
from component.bridge import delivery, service_provider
from component.format import escape_label, format_count, format_turns
from component.markdown import split_turns
from component.page_state import PageState
from component.panel import panel_head
from component.words.part import SteeringWords
from component.words.wording import words_of
from component.words.words import Words
from graph.value.matcher import Piece, differences
from graph.value.record import Record

if TYPE_CHECKING:
    from graph.service.folds import Folds


def draw_undo(page: PageState, surface: str) -> None:
    """Draws the line that undoes the last change."""
    change = background.last_change(page_state.look_again(page).session)
    if change is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"change_{surface}"):
        st.markdown(f":small[:material/check: {change.text}]", width="content")
        widget.draw_action(page.words.undo, f"take_back_{surface}", "undo", take_back, change)


@delivery.once
def take_back(change: background.Change) -> None:
    def take_back() -> None:
        folds = service_provider.current().folds
        (folds.restore if change.is_compaction else folds.use_version)(change.session_id, change.back_to)

    background.forget_change()
    page_state.attempt(take_back)
    redraw.page()


EDIT, REMAKE, VERSIONS, SOURCE = "edit_record", "remake_record", "record_versions", "record_source"
_MOST_NAMED = 8
_PLACE: Final = "record"
_TARGET, _INSTRUCTION = "steered_record", "unfulfilled_wish"


class Target(NamedTuple):
    session_id: str
    record: Record

    def key(self, name: str) -> str:
        return f"{name}_{self.record.id}"


def open_dialog(name: str, session_id: str, record: Record) -> None:
    st.session_state[_TARGET] = Target(session_id, record)
    dialog.request(name)
    redraw.page()


@delivery.once
def edit(about: Target) -> None:
    text = str(st.session_state[about.key("text")])
    done = _labels().edit_done.format(turns=format_turns(about.record.turns))
    _change_in_dialog(about, lambda folds: folds.edit(about.session_id, about.record.id, text), done)


def add_fact(asked: Mapping[str, str]) -> Callable[[], None]:
    """Adds a missing fact to a summary, on a press of the button in the card's list, which stays open."""
    session_id, back_to = asked["session"], asked["record"]

    def add() -> None:
        made = service_provider.current().folds.add_fact(session_id, back_to, asked["fact"])
        done = _labels().fact_added.format(turns=format_turns(made.turns))
        background.keep(session_id, done, back_to=made.replaces or back_to)
        if st.session_state.get(facts_key(back_to)):
            st.session_state[facts_key(made.id)] = True

    page_state.attempt(add)
    return redraw.changed


def facts_key(record_id: str) -> str:
    return f"facts_{record_id}"


@delivery.once
def use_version(about: Target, version: Record) -> None:
    done = _labels().use_done.format(turns=format_turns(about.record.turns), version=version.version)
    _change_in_dialog(about, lambda folds: folds.use_version(about.session_id, version.id), done)


@delivery.once
def remake(about: Target) -> None:
    rate = round(float(st.session_state[about.key("rate")]), 2)
    wish = str(st.session_state[about.key("wish")]).strip()
    st.session_state[_INSTRUCTION] = about.record.id, wish
    dialog.close()

    def done(made: Record) -> str:
        st.session_state.pop(_INSTRUCTION, None)
        before, after = format_count(about.record.summary_chars), format_count(made.summary_chars)
        return _labels().remake_done.format(turns=format_turns(made.turns), before=before, after=after)

    _make(about, lambda folds: folds.remake(about.session_id, about.record.id, rate=rate, instruction=wish), done)


@delivery.once
def fold_again(session_id: str, record: Record) -> None:
    def done(made: Record) -> str:
        labels = _labels()
        told = labels.fold_again_done if record.version > 1 else labels.summarise_done
        return told.format(turns=format_turns(made.turns))

    _make(Target(session_id, record), lambda folds: folds.fold_again(session_id, record.id), done)
    redraw.page()


@delivery.once
def undo_fold(session_id: str, record: Record) -> None:
    def undo() -> None:
        quoted = service_provider.current().folds.undo(session_id, record.id)
        done = _labels().unmerged if quoted is None else _labels().undo_fold_done
        text = done.format(turns=format_turns(record.turns), count=record.source_count)
        background.keep(session_id, text, back_to=record.id)

    page_state.attempt(undo)
    redraw.page()


def _change_in_dialog(about: Target, change: Callable[[Folds], Record], done: str) -> None:
    """Changes a record and closes the dialog; a refusal is shown in the dialog."""

    def change_it() -> None:
        change(service_provider.current().folds)
        background.keep(about.session_id, done, back_to=about.record.id)

    if dialog.attempt(_PLACE, change_it):
        page_state.set_notice(None)
        dialog.close()


def _make(about: Target, make: Callable[[Folds], Record], done: Callable[[Record], str]) -> None:
    def report(made: Record) -> None:
        background.keep(about.session_id, done(made), back_to=about.record.id)

    background.start(_labels().making.format(turns=format_turns(about.record.turns)), make, report)


def _labels() -> SteeringWords:
    return words_of(st.session_state[page_state.LANGUAGE]).steering


_COLUMN_PIXELS = 280


def draw_version_view(words: Words, other: Record, in_use: Record) -> None:
    compared = differences(other.summary, in_use.summary)
    before, after = compared or ([_unmarked(other)], [_unmarked(in_use)])
    with st.grid(2, min_column_width=_COLUMN_PIXELS, key="versions"):
        _draw_version(words, other, before, "del")
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
        about = words.card_rate.format(rate=version.compression_rate)
    return labels.version.format(version=version.version, about=about, summary=format_count(version.summary_chars))


def _unmarked(version: Record) -> Piece:
    return Piece(version.summary, is_changed=False)


def _draw_version(
    words: Words, version: Record, pieces: Iterable[Piece], mark: Literal["del", "ins"], badge: str = ""
) -> None:
    labels = words.steering
    text = "".join(
        f'<{mark}><span class="unseen">{labels.only_here}</span>{html.escape(piece.text)}'
        f'<span class="unseen">{labels.change_ends}</span></{mark}>'
        if piece.is_changed
        else html.escape(piece.text)
        for piece in pieces
    )
    with st.container(border=True, gap="xsmall"):
        st.markdown(f"**{escape_label(name_of(words, version))}**{badge}")
        if version.wish:
            widget.draw_note(f"{labels.instruction}: {escape_label(version.wish)}")
        st.html(f'<div class="version">{text}</div>')


_INSTRUCTION_CHARS = 300
_SUMMARY_PIXELS = 320


def draw(now: PageState) -> None:
    about: Target | None = st.session_state.get(_TARGET)
    labels = now.words.steering
    if now.session is None or about is None or about.session_id != now.session.session_id:
        return
    dialog.draw(EDIT, labels.edit_title, _draw_edit, now, about, width=620)
    dialog.draw(REMAKE, labels.remake_title, _draw_remake, now, about)
    dialog.draw(VERSIONS, labels.versions_title, _draw_versions, now, about, width=860)
    dialog.draw(SOURCE, labels.source, _draw_source, now, about, width=860)


def _draw_edit(now: PageState, about: Target) -> None:
    labels, record = now.words.steering, about.record
    with st.form("edit_record", border=False):
        label = labels.summary.format(turns=format_turns(record.turns))
        st.text_area(label, value=record.summary, key=about.key("text"), height=_SUMMARY_PIXELS)
        _end_form(now, about, now.words.save, edit)


def _draw_remake(now: PageState, about: Target) -> None:
    labels, record = now.words.steering, about.record
    # Outside of the form, so that what it says changes with the slider.
    with st.container(gap=None):
        rate = min(0.5, max(0.1, record.compression_rate))
        panel_head.draw_slider(now.words, "dialog", rate, about.key("rate"), help=now.words.rate_help)
    left_out = now.service.folds.left_out_at(record, float(st.session_state.get(about.key("rate"), rate)))
    named = ", ".join(map(escape_label, left_out[:_MOST_NAMED]))
    if len(left_out) > _MOST_NAMED:
        named = labels.left_out_more.format(facts=named, count=len(left_out) - _MOST_NAMED)
    if record.kept_facts or record.missing_facts:
        widget.draw_note(labels.left_out.format(facts=named) if named else labels.left_out_none)
    with st.form("remake_record", border=False):
        asked_of, failed = st.session_state.get(_INSTRUCTION, ("", ""))
        wish, hint = failed if asked_of == record.id else record.wish, labels.instruction_hint
        key = about.key("wish")
        st.text_input(labels.instruction, value=wish, key=key, max_chars=_INSTRUCTION_CHARS, placeholder=hint)
        _end_form(now, about, labels.make, remake)


def _draw_versions(now: PageState, about: Target) -> None:
    labels = now.words.steering
    versions = {version.id: version for version in now.service.folds.versions(about.session_id, about.record.id)}
    in_use = versions.pop(about.record.id, about.record)
    if not versions:
        _draw_version(now.words, in_use, [_unmarked(in_use)], "ins")
        widget.draw_note(labels.only_version)
        st.button(labels.close, key="dialog_cancel", on_click=dialog.close)
    else:
        names, key = {name: name_of(now.words, version) for name, version in versions.items()}, about.key("version")
        last = len(names) - 1
        chosen = st.selectbox(labels.other_version, [*names], last, format_func=names.__getitem__, key=key)
        draw_version_view(now.words, versions[chosen], in_use)
        widget.show_error(now.words, dialog.outcome(_PLACE)[1])
        version = versions[chosen]
        label = labels.use.format(version=version.version)
        dialog.draw_choice(label, use_version, about, version, cancel=labels.close, is_form=False)


def _draw_source(now: PageState, about: Target) -> None:
    """Draws the covered turns beside the summary, with the facts that it has and lacks."""
    words, record = now.words, about.record
    labels, facts = words.steering, (record.kept_facts, now.service.folds.lacking(record))
    source = now.service.turns.transcript(about.session_id, last=len(record.turns), before=record.turns[-1] + 1)
    said = [
        f"<b>{words.input.turn.format(turn=turn.number)}</b>\n{_with_facts(labels, turn.user_text, *facts)}"
        f"\n\n{_with_facts(labels, turn.answer_text, *facts)}"
        for turn in source.turns
    ]
    summary = _with_facts(labels, split_turns(record.summary, record.turns), record.kept_facts)
    if any(facts):
        keys = f"<mark>{labels.has_fact}</mark> · <mark class='lacks'>{labels.lacks_fact}</mark>"
        st.html(f'<p class="version faint">{keys}</p>')
    with st.grid(2, min_column_width=_COLUMN_PIXELS, key="versions"):
        for title, text in ((labels.source_text, "\n\n".join(said)), (name_of(words, record), summary)):
            with st.container(border=True, gap="xsmall"):
                st.markdown(f"**{escape_label(title)}**")
                st.html(f'<div class="version">{text}</div>')
    if any(turn.steps for turn in source.turns):
        widget.draw_note(labels.source_steps)
    st.button(labels.close, key="dialog_cancel", on_click=dialog.close)


def _with_facts(labels: SteeringWords, text: str, kept: Sequence[str], missing: Sequence[str] = ()) -> str:
    """Returns a text as HTML in which the facts are marked where they stand letter for letter."""
    found: dict[int, str] = {}
    taken = bytearray(len(text))
    for fact in sorted({*kept, *missing}, key=len, reverse=True):
        start = text.find(fact)
        while start >= 0:
            end = start + len(fact)
            before, goes_on = text[max(start - 1, 0) : start], fact[-1].isdigit() and text[end : end + 1].isdigit()
            if not (any(taken[start:end]) or goes_on or (before.isascii() and before.isalnum())):
                found[start], taken[start:end] = fact, b"1" * len(fact)
            start = text.find(fact, start + 1)
    shown, at = "", 0
    for start, fact in sorted(found.items()):
        lacks = f'<span class="unseen">{labels.lacks_fact}: </span>'
        marked = html.escape(fact)
        marked = f"<mark>{marked}</mark>" if fact in kept else f'<mark class="lacks">{lacks}{marked}</mark>'
        shown, at = f"{shown}{html.escape(text[at:start])}{marked}", start + len(fact)
    return shown + html.escape(text[at:])


def _end_form(now: PageState, about: Target, label: str, save: Callable[[Target], None]) -> None:
    widget.draw_note(now.words.steering.from_next_turn)
    widget.show_error(now.words, dialog.outcome(_PLACE)[1])
    dialog.draw_choice(label, save, about, cancel=now.words.cancel)
