"""Draws a record as a card of the panel: covered turns, length, text, facts, details and menu."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import streamlit as st

from component import background, turn_buttons, widget
from component.format import (
    count_lines,
    escape_label,
    format_count,
    format_percent,
    format_tokens,
    format_turns,
)
from component.markdown import split_turns, summary_markdown
from component.page_state import PageState
from component.panel import record_dialog
from component.panel.record_dialog import EDIT, REMAKE, SOURCE, VERSIONS
from component.words.part import SteeringWords
from component.words.wording import describe_compaction, describe_facts
from component.words.words import Words
from graph.value.record import Record


def _choices(labels: SteeringWords, session_id: str, record: Record) -> dict[str, Callable[[], None]]:
    def opening(name: str) -> Callable[[], None]:
        return partial(record_dialog.open_dialog, name, session_id, record)

    versions = {labels.versions: opening(VERSIONS)}
    if record.kind == "verbatim":
        again = {labels.fold_again: partial(record_dialog.fold_again, session_id, record)} if record.version > 1 else {}
        return {**again, **versions}
    compare = {labels.source: opening(SOURCE)}
    choices = {**compare, labels.edit: opening(EDIT), labels.remake: opening(REMAKE), **versions}
    if record.kind != "compaction":  # which has an undo button of its own
        choices[labels.undo_fold] = partial(record_dialog.undo_fold, session_id, record)
    return choices


_CLAMPED_LINES = 6
_AI = re.compile(r"^AI: ", re.MULTILINE)  # the speaker, as the model is told
_SENT_CHARS = 600  # of a clamped text: more than it shows at any width
_LINE_EMS = 20.0  # width of the panel's text column


def draw_row(now: PageState, record: Record, *, is_active: bool) -> None:
    original, summary = format_count(record.original_chars), format_count(record.summary_chars)
    template = now.words.card_row_verbatim if record.kind == "verbatim" else now.words.card_row
    label = template.format(turns=format_turns(record.turns), original=original, summary=summary)
    if row := widget.open_box(escape_label(label), f"older_{record.id}"):
        with row:
            draw(now, record, is_active=is_active)


def draw(now: PageState, record: Record, *, is_active: bool = True, can_restore: bool = True) -> None:
    """Draws the card. One that isn't active has no menu; a compaction is undone from its card."""
    words = now.words
    with st.container(border=True, gap="xsmall", key=f"card_{record.id}"):
        badge = _badge(words, record)
        st.markdown(f"**\\{_title(words, record)[:-1]}\\]**" + (f" :gray-badge[{badge}]" if badge else ""))
        figures = describe_compaction(words, record) if record.context_messages else _chars(words, record)
        widget.draw_note(figures)
        turns = {"data-first": f"{record.turns[0]}", "data-last": f"{record.turns[-1]}"}
        st.html(widget.icon_button("to-turns", "north_west", words.to_turns, **turns), width="content")
        if is_active and now.session is not None:
            label = words.steering.menu.format(turns=format_turns(record.turns))
            choices = _choices(words.steering, now.session.session_id, record)
            widget.draw_menu(label, f"menu_card_{record.id}", choices)
        first = 1 if record.kind == "verbatim" else 0  # a note for the model, which isn't drawn
        text = split_turns(record.summary, record.turns).splitlines()[first:]
        lines = "\n".join(filter(None, (line.lstrip("> ") for line in text)))
        is_long = count_lines(lines, _LINE_EMS) > _CLAMPED_LINES + 1  # the button of a clamped text takes a line
        key, texts = f"summary_{record.id}", (replace(record, summary=record.summary[:_SENT_CHARS]), record)
        widget.draw_clamped(words, key, lambda is_whole: draw_summary(words, texts[is_whole]), is_long=is_long)
        if record.kind == "verbatim" and record.version == 1:
            _draw_why_verbatim(now, record, is_active=is_active)
        _draw_facts(now, record, is_active=is_active)
        for warning in _warnings(words, record):
            st.markdown(f":small[:orange[:material/report: {warning}]]")
        if lines := "  \n".join(f":small[:gray[{line}]]" for line in _details(words, record)):
            with st.expander(words.details, key=f"details_{record.id}", icon=":material/info:", type="compact"):
                st.markdown(lines)
        if record.kind == "compaction" and can_restore and now.session is not None:
            made = background.Change(now.session.session_id, record.id, is_compaction=True)
            key, hint = f"restore_{record.id}", words.restore_help
            widget.draw_action(words.undo, key, "undo", record_dialog.take_back, made, help=hint)


def draw_summary(words: Words, record: Record) -> None:
    """Draws a summary as Markdown; a verbatim record as plain text, without the marks that are for the model."""
    if record.kind == "verbatim":
        text = record.summary.partition("\n> ")[2].replace("\n> ", "\n") or record.summary
        st.text(_AI.sub(f"{words.input.roles['assistant']}: ", text))
    else:
        st.markdown(summary_markdown(record.summary, record.turns), anchors=False)


def _draw_why_verbatim(now: PageState, record: Record, *, is_active: bool) -> None:
    widget.draw_note(now.words.kept_verbatim if record.output_tokens else now.words.short_verbatim)
    if is_active and now.session is not None:
        label, key = now.words.steering.summarise, f"summarise_{record.id}"
        widget.draw_action(label, key, "compress", record_dialog.fold_again, now.session.session_id, record)


def _draw_facts(now: PageState, record: Record, *, is_active: bool) -> None:
    words, missing, kept = now.words, now.service.folds.lacking(record), record.kept_facts
    if not kept and not missing:
        return
    colour = "orange" if now.service.folds.lacks_firm(record) and not record.edited else "gray"
    count = words.facts_kept.format(kept=len(kept), all=len(kept) + len(missing))
    label, key = f":{colour}[{count}]", record_dialog.facts_key(record.id)
    if box := widget.open_box(label, key, "fact_check"):
        with box:
            st.markdown(f":small[{describe_facts(words, now.service.folds.count_facts(record))}]")
            if now.session is not None:
                asked = SOURCE, now.session.session_id, record
                key = f"source_{record.id}"
                widget.draw_action(words.steering.source, key, "compare", record_dialog.open_dialog, *asked)
            if missing and now.session is not None:
                st.html(_missing_list(now, now.session.session_id, record.id, is_active=is_active))
            if kept:
                badges = " ".join(f":gray-badge[{escape_label(fact)}]" for fact in kept)
                st.markdown(f":small[{words.facts_present}]  \n{badges}")


def _missing_list(now: PageState, identifier: str, record_id: str, *, is_active: bool) -> str:
    """Returns the sentences with missing facts; those of an active record with buttons."""
    words, sentences = now.words, dict[tuple[str, str], list[str]]()
    for fact in now.service.folds.missing_facts(identifier, record_id):
        sentences.setdefault((fact.clause, fact.message_id), []).append(fact.text)
    pinned = {pin.message_id for pin in now.service.folds.pins(identifier).messages}
    rows = []
    for (clause, message_id), facts in sentences.items():
        row, named = _marked(clause, facts), ", ".join(facts)
        if is_active:
            about = {"session": identifier, "record": record_id, "fact": facts[0]}
            label = f"{words.facts_add}: {named}"
            buttons = turn_buttons.markup("add_fact", label, about, icon="add", text=words.facts_add)
            if message_id:
                is_pinned = message_id in pinned
                text = words.sessions.pin
                buttons += turn_buttons.pin(words, message_id, is_pinned=is_pinned, text=text, about=named)
            row += f'<div class="turn-buttons">{buttons}</div>'
        rows.append(f"<li>{row}</li>")
    return f'<p class="missing">{words.facts_missing}</p><ul class="missing">{"".join(rows)}</ul>'


def _marked(clause: str, facts: Sequence[str]) -> str:
    for fact in sorted(facts, key=len, reverse=True):
        before, found, behind = clause.partition(fact)
        if found:
            return f"{_marked(before, facts)}<b>{html.escape(fact)}</b>{_marked(behind, facts)}"
    return html.escape(clause)


def _title(words: Words, record: Record) -> str:
    titles = {"compaction": words.card_compaction, "verbatim": words.card_verbatim}
    return titles.get(record.kind, words.card_title).format(turns=format_turns(record.turns))


def _badge(words: Words, record: Record) -> str:
    if record.edited:
        return words.steering.edited
    if record.kind == "merge":
        return words.card_merged.format(count=record.source_count)
    return words.card_rate.format(rate=record.compression_rate) if record.kind == "interval" else ""


def _chars(words: Words, record: Record) -> str:
    original, summary = format_count(record.original_chars), format_count(record.summary_chars)
    if record.kind == "verbatim":  # a verbatim record is longer than its source by speakers and quote marks
        return words.card_chars_verbatim.format(original=original)
    percent = format_percent(record.summary_chars, record.original_chars)
    return words.card_chars.format(original=original, summary=summary, percent=percent)


def _warnings(words: Words, record: Record) -> Iterator[str]:
    if record.invented_facts:
        yield words.facts_invented.format(facts=", ".join(map(escape_label, record.invented_facts)))
    if record.outcome == "picked":
        yield words.was_weak if record.error_code else words.was_picked


def _details(words: Words, record: Record) -> Iterator[str]:
    labels = words.steering
    if record.kind == "verbatim" and record.version > 1:
        yield labels.undone
    if record.context_messages:
        yield _chars(words, record)
    if record.kind == "interval" and not record.edited and record.original_chars:
        target, needed = round(record.compression_rate, 2), round(record.needed_rate, 2)
        shown = labels.dense_rates if record.needed_rate > record.compression_rate else labels.note_rates
        achieved = round(record.summary_chars / record.original_chars, 2)
        is_target = not record.needed_rate or needed == target
        yield (labels.rates if is_target else shown).format(target=target, needed=needed, achieved=achieved)
    if record.kind != "verbatim":
        before, after = format_count(record.source_tokens), format_count(record.summary_tokens)
        yield labels.tokens.format(before=before, after=after)
    if record.outcome == "shortened":
        yield words.was_shortened
    if record.version > 1:
        yield f"v{record.version}"
    tokens = record.input_tokens + record.output_tokens
    if record.kind == "verbatim" and not tokens:
        return  # no model was called for it
    yield (words.card_cost if tokens else words.card_free).format(
        input=format_tokens(record.input_tokens, is_usage=record.is_usage),
        output=format_tokens(record.output_tokens, is_usage=record.is_usage),
        seconds=f"{record.seconds:.1f}",
        model=escape_label(words.summarisers.get(record.model, record.model)),
    )
