"""Draws the panel's tab of a project: its memory, to be edited, and its rules."""

from __future__ import annotations

from functools import partial

import streamlit as st

from component import open_form, redraw
from component.format import escape_label, format_count
from component.page_state import PageState
from component.project import project_card, project_choice, project_form, project_plan, project_rules
from component.project.project_form import Field, Part
from graph.value.project_view import DecisionView


def draw(now: PageState, place: str) -> None:
    """Draws the tab; `place` ("rail" or "drawer") makes its element keys unique."""
    said = now.words.project
    st.subheader(said.title, anchor=False)
    root = project_choice.root_of(now.service, now.session)
    open_form.leave(place, root)
    redraw.note_project(place, None)
    if not root:
        st.markdown(f":small[:gray[{said.not_chosen}]]")
        return
    view = now.service.projects.get(root, language=now.words.language)
    redraw.note_project(place, view)
    part = Part(now, view, place)
    if not open_form.is_any_open(place):
        part.tell_refusal()
    _draw_name(part)
    if view.damage:
        project_card.draw_project_damage(part)
        project_rules.draw(part)
        return
    asks_first = view.rules.state in {"new", "changed"}
    if asks_first:
        project_rules.draw(part)
    project_plan.draw_plan(part)
    project_plan.draw_tasks(part)
    _draw_decisions(part)
    _draw_files(part)
    _draw_summary(part)
    if not asks_first:
        project_rules.draw(part)
    _draw_snapshots(part)


def _draw_name(part: Part) -> None:
    said, view = part.said, part.view
    with st.container(gap=None, key=part.key("name")):
        if project_form.is_edited(part, "project", ""):
            project_form.draw_form(part, "project", "")
        else:
            with part.row("name"):
                st.markdown(f"**{escape_label(view.name)}**")
                if not view.damage:
                    project_form.draw_item_menu(part, "project", "", "name", escape_label(view.name))
        st.markdown(f":small[:gray[{escape_label(view.root)}]]")
        if not view.damage:
            told = said.primed.format(tokens=format_count(view.primed_tokens))
            st.markdown(f":small[:gray[{told if len(view.primed) > 1 else said.primed_nothing}]]")


def _draw_decisions(part: Part) -> None:
    said, root = part.said, part.view.root
    with part.section("decisions", said.decisions, new=said.new_decision):
        fields = [Field(said.new_decision, is_long=True)]
        record = partial(part.projects.record_decision, root)
        project_form.draw(part, "new_decisions", fields, record)
        in_force = [each for each in part.view.decisions if each.is_in_force]
        if not in_force:
            st.markdown(f":small[:gray[{said.no_decisions}]]")
        for number, decision in enumerate(reversed(in_force)):
            _draw_decision(part, f"decision_{number}", decision)
        replaced = [each for each in part.view.decisions if not each.is_in_force]
        if not replaced:
            return
        label = said.replaced_decisions.format(count=len(replaced))
        box = st.expander(label, key=part.key("replaced"), icon=":material/history:", type="compact", on_change="rerun")
        if box.open:
            with box:
                for number, decision in enumerate(reversed(replaced)):
                    _draw_decision(part, f"replaced_{number}", decision)


def _draw_decision(part: Part, key: str, decision: DecisionView) -> None:
    if project_form.is_edited(part, "decision", decision.id):
        project_form.draw_form(part, "decision", decision.id)
        return
    said, text = part.said, escape_label(decision.text)
    day = f"{decision.date:%Y-%m-%d}" if decision.date else said.undated
    with part.row(key):
        st.markdown(f"{text}  \n:small[:gray[{day}]]" if decision.is_in_force else f":gray[{text}  \n:small[{day}]]")
        choices = dict(project_form.choices(part, "decision", decision.id))
        if not decision.is_in_force:
            choices.pop(said.edit)
        project_form.draw_menu(part, project_form.label_of(part, "decision", text), key, choices)


def _draw_files(part: Part) -> None:
    said = part.said
    with part.section("files", said.files, new=said.new_file):
        note_file = partial(part.projects.open_file, part.view.root)
        project_form.draw(part, "new_files", [Field(said.file_path)], note_file)
        if not part.view.open_files:
            st.markdown(f":small[:gray[{said.no_files}]]")
        for number, file in enumerate(reversed(part.view.open_files)):
            path = escape_label(file.path)
            with part.row(f"file_{number}"):
                st.markdown(f"{path} :small[:orange[{said.gone}]]" if file.is_gone else path)
                close = part.changing(part.projects.close_file, file.path)
                part.icon(said.close_file_of.format(text=path), f"close_{number}", ":material/close:", close)


def _draw_summary(part: Part) -> None:
    said, summary = part.said, part.view.summary
    with st.container(border=True, gap="xsmall", key=part.key("summary")):
        with part.row("head_of_summary"):
            st.markdown(f"**{said.summary}**")
            project_form.draw_item_menu(part, "summary", "", "summary", said.summary)
        if project_form.is_edited(part, "summary", ""):
            project_form.draw_form(part, "summary", "")
        elif summary:
            st.text(summary)
        else:
            st.markdown(f":small[:gray[{said.no_summary}]]")


def _draw_snapshots(part: Part) -> None:
    said, snapshots = part.said, part.view.snapshots
    if not snapshots:
        st.markdown(f":small[:gray[{said.no_snapshots}]]")
        return
    label = said.snapshots.format(count=len(snapshots))
    box = st.expander(label, key=part.key("snapshots"), icon=":material/backup:", type="compact", on_change="rerun")
    if box.open:
        with box:
            for snapshot in snapshots:
                project_card.draw_restore(part, snapshot.name, snapshot)
