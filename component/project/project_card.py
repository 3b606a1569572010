"""Draws a project's card in a chat, and the repair of a damaged memory."""

from __future__ import annotations

from datetime import UTC, date, datetime

import streamlit as st

from component import action, dialog, project_choice, redraw, widget
from component.bridge import delivery
from component.format import escape_label, format_bytes, zone_of
from component.page_state import PageState
from component.project import project_form
from component.project.project_form import Part
from component.words.part import ProjectWords
from graph.value.project_view import PrimedLineView, SnapshotView

_FORM = "damage"


def draw_project_damage(part: Part) -> None:
    """Draws the damaged file and the repairs: the newest snapshot, if there is one, or an empty memory."""
    labels, snapshots = part.labels, part.view.snapshots
    offer = labels.damaged_offer if snapshots else labels.damaged_no_snapshot
    file, _, location = part.view.damage.partition(": ")
    detail = f" ({escape_label(location)})" if location else ""
    st.warning(f"{labels.damaged.format(file=escape_label(file))} {offer}{detail}", icon=":material/broken_image:")
    if snapshots:
        draw_restore(part, 0, snapshots[0], is_first=True)
    if part.is_open("start_over"):
        act = part.changing(lambda projects: projects.start_over(part.view.root))
        project_form.draw_question(part, labels.start_over_question, labels.start_over, act)
    else:
        ask = part.opening("start_over")
        st.button(labels.start_over, key=part.key("ask_start_over"), icon=":material/restart_alt:", on_click=ask)


def draw_restore(part: Part, _number: int, snapshot: SnapshotView, *, is_first: bool = False) -> None:
    labels, name = part.labels, _FORM if is_first else snapshot.name
    time = f"{snapshot.created_at.astimezone(zone_of(part.now.time_zone)):%Y-%m-%d %H:%M:%S}"
    if part.is_open(f"restore_{name}"):
        question = labels.restore_question.format(time=time)
        act = part.changing(lambda projects: projects.restore(part.view.root, snapshot.name))
        project_form.draw_question(part, question, labels.restore, act)
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False):
        st.markdown(f"{time}  \n:small[:gray[{format_bytes(snapshot.bytes)}]]" if not is_first else time)
        kind, act = "secondary" if is_first else "tertiary", part.opening(f"restore_{name}")
        widget.draw_action(labels.restore, part.key(f"ask_{name}"), "settings_backup_restore", act, type=kind)


_SURFACE, _KNOWN = "chat", "project_is_known"
_KIND_WIDTH = 88


@delivery.fragment()
def draw(now: PageState) -> None:
    is_known = False
    with widget.error_box(now.words):
        is_known = _draw(now)
    if not delivery.is_whole() and is_known != st.session_state.get(_KNOWN):
        st.rerun()  # the elements below the card depend on it
    st.session_state[_KNOWN] = is_known


def is_known() -> bool:
    """Returns True if the card has its own suggestions; never with the embedded model, which can't use the project."""
    return bool(st.session_state.get(_KNOWN))


def _draw(now: PageState) -> bool:
    root = project_choice.root_of(now.service, now.session)
    if not root:
        return False
    labels = now.words.project
    with st.container(border=True, gap="small", key="known"):
        if not st.session_state[project_choice.HAS_MEMORY]:
            _draw_end(f":material/history_toggle_off: {labels.card_fresh}", labels.with_memory, has_memory=True)
            return False
        part = Part(now, now.service.projects.get(root, language=now.words.language), _SURFACE)
        is_noted = any(line.kind != "project" for line in part.view.primed)  # nothing is read if it is damaged
        if part.view.damage:
            draw_project_damage(part)
        else:
            _draw_known(part)
        note = f":small[:gray[{labels.card_note}]]" if is_noted else ""
        _draw_end(note, labels.without_memory, has_memory=False)
    if now.service.settings.is_offline or not is_noted:
        return False
    with st.grid(2, min_column_width=220, key="project_suggestions"):
        for number, text in enumerate(labels.suggestions):
            st.button(text, key=f"project_suggestion_{number}", width="stretch", on_click=_send, args=(text,))
    return True


def draw_origin(now: PageState) -> None:
    """Draws an expander with the memory sent to the open chat, or a note that none was sent."""
    if now.session is None or not project_choice.root_of(now.service, now.session):
        return
    if now.session.has_memory:
        _draw_as_sent(now, now.session.session_id)
    else:
        widget.draw_note(f":material/history_toggle_off: {now.words.project.card_was_fresh}")


@delivery.fragment()
def _draw_as_sent(now: PageState, identifier: str) -> None:
    labels = now.words.project
    if box := widget.open_box(labels.card_origin, "known_begun", "history"):
        with box, widget.error_box(now.words):
            widget.draw_note(labels.card_as_sent)
            st.text(now.service.sessions.memory(identifier) or labels.card_nothing)


def _send(text: str) -> None:
    action.send(text)
    redraw.page()


def _draw_end(text: str, label: str, *, has_memory: bool) -> None:
    key, icon = ("with_memory", "history") if has_memory else ("without_memory", "history_toggle_off")
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(text, width="content")
        widget.draw_action(label, key, icon, st.session_state.update, {project_choice.HAS_MEMORY: has_memory})


def _draw_known(part: Part) -> None:
    labels, view = part.labels, part.view
    st.markdown(f"**{labels.card_title}**")
    if view.rules.state in {"new", "changed"}:
        st.markdown(f":small[:orange[:material/info: {labels.card_rules}]]")
    if not dialog.has_form(_SURFACE):
        part.show_refusal()
    with st.container(gap="xsmall", key="known_lines"):
        today, older = datetime.now(UTC).date(), view.older_decisions
        for number, line in enumerate(view.primed):
            if line.kind == "decision" and older:
                widget.draw_note(labels.older_decisions.format(count=older))
                older = 0
            is_first = number == 0 or view.primed[number - 1].kind != line.kind or bool(line.speaker)
            _draw_line(part, number, line, today, is_first=is_first)


def _draw_line(part: Part, number: int, line: PrimedLineView, today: date, *, is_first: bool) -> None:
    if project_form.is_edited(part, line.kind, line.item_id):
        project_form.draw_form(part, line.kind, line.item_id)
        return
    kind, text = part.labels.primed_kinds[line.speaker or line.kind], escape_label(line.text)
    with st.container(horizontal=True, wrap=False, gap="xsmall", key=f"known_line_{number}"):
        st.markdown(f":small[:gray[{kind if is_first else ''}]]", width=_KIND_WIDTH)
        st.markdown(f"{text} {_age(part.labels, line, today)}")
        project_form.draw_item_menu(part, line.kind, line.item_id, f"line_{number}", text)


def _age(labels: ProjectWords, line: PrimedLineView, today: date) -> str:
    days = (today - line.date).days if line.date else None
    if days is None:
        age = "" if line.kind == "project" else labels.undated
    elif days <= 0:
        age = labels.age_today
    else:
        age = labels.age_yesterday if days == 1 else labels.age_days.format(days=days)
    doubts = [text for text, is_so in ((labels.is_old, line.is_old), (labels.gone, line.is_gone)) if is_so]
    told = " · ".join(filter(None, [age, *doubts]))
    return f":small[:{'orange' if doubts else 'gray'}[{told}]]" if told else ""
