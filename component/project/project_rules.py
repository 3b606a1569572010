"""Draws the rules files of a project: what is sent of each, what isn't and why, and the agreement to them."""

from __future__ import annotations

import streamlit as st

from component.format import escape_label, format_bytes, zone_of
from component.project.project_form import Part
from graph.value.project_view import RuleFileView


def draw(part: Part) -> None:
    """Draws them all, and, if they are new or have changed, the button that agrees to them."""
    said, rules = part.said, part.view.rules
    with part.section("rules", said.rules):
        st.markdown(f":small[{_state(part)}]")
        if rules.state in {"new", "changed"}:
            st.button(
                said.use_rules,
                key=part.key("agree"),
                type="primary",
                on_click=part.changing(part.projects.agree, rules.digest),
            )
        for limit in rules.exceeded:
            st.markdown(f":small[:orange[:material/warning: {said.rule_limits[limit]}]]")
        if rules.state == "changed":
            _draw_difference(part)
        for number, file in enumerate(rules.files):
            _draw_file(part, number, file)


def _state(part: Part) -> str:
    said, rules = part.said, part.view.rules
    if rules.state == "none":
        return f":gray[{said.no_rules}]"
    if rules.state == "agreed" and rules.agreed_at is not None:
        date = rules.agreed_at.astimezone(zone_of(part.now.time_zone))
        return f":gray[{said.rules_agreed.format(date=f'{date:%Y-%m-%d}')}]"
    return f":orange[:material/info: {said.rules_changed if rules.state == 'changed' else said.rules_new}]"


def _draw_file(part: Part, number: int, file: RuleFileView) -> None:
    said = part.said
    with st.container(gap=None, key=part.key(f"file_of_rules_{number}")):
        if file.refusal:
            st.markdown(f":material/block: `{file.path}`" if "`" not in file.path else escape_label(file.path))
            reason = part.words.path_reasons.get(file.refusal, part.words.errors["path"])
            st.markdown(f":small[:orange[{said.rule_refused.format(reason=reason)}]]")
            return
        box = st.expander(
            f"`{file.path}`" if "`" not in file.path else escape_label(file.path),
            key=part.key(f"rule_{number}"),
            expanded=part.view.rules.state == "new",  # what is agreed to is shown
            icon=":material/description:",
            type="compact",
            on_change="rerun",
        )
        if box.open:
            with box:
                st.code(file.text, language=None, wrap_lines=True)
        st.markdown(f":small[:gray[{_line(part, file)}]]")
        for note in _notes(part, file):
            st.markdown(f":small[:orange[{note}]]")
        hidden = (
            (said.rule_comments, file.comment_count),
            (said.rule_invisible, file.invisible_count),
            (said.rule_bad, file.bad_count),
            (said.rule_imports, file.import_count),
        )
        told = [text.format(count=count) for text, count in hidden if count]
        if told:
            st.markdown(f":small[:gray[{' · '.join(told)}]]")


def _line(part: Part, file: RuleFileView) -> str:
    said, size = part.said, format_bytes(file.size_bytes)
    sent = said.rule_size.format(size=size, sent=format_bytes(file.sent_bytes))
    size_text = sent if file.sent_bytes else said.rule_unsent.format(size=size)
    return f"{said.rule_kinds[file.kind]} · {size_text}"


def _notes(part: Part, file: RuleFileView) -> list[str]:
    said, notes = part.said, []
    if file.problem:
        notes.append(said.rule_problems[file.problem])
    if file.left_out_bytes:
        left, size = format_bytes(file.left_out_bytes), format_bytes(file.size_bytes)
        notes.append(f":material/content_cut: {said.rule_cut.format(left=left, size=size)}")
    return notes


def _draw_difference(part: Part) -> None:
    box = st.expander(
        part.said.difference,
        key=part.key("difference"),
        icon=":material/difference:",
        type="compact",
        expanded=True,
        on_change="rerun",
    )
    if box.open:
        with box:
            st.code("\n".join(part.view.rules.difference), language="diff", wrap_lines=True)
