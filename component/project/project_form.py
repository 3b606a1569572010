"""Draws the forms, menus and confirmations for changing a project."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from component import dialog, redraw, widget
from component.bridge import delivery, service_provider
from component.dialog import Form
from component.format import escape_label
from component.page_state import PageState
from component.words.part import ProjectWords
from graph.value.error import NotFoundError
from graph.value.project_view import PrimedKind, ProjectView

if TYPE_CHECKING:
    from graph.service.projects import Projects


@delivery.once
def change(surface: str, act: Callable[[Projects], object]) -> None:
    """Changes a project and closes the open form; a refusal is shown on the same surface.

    `act` gets the projects of the user signed in at the press, and loads the memory again, which another tab may have
    changed.
    """
    if dialog.attempt(surface, lambda: act(service_provider.current().projects)):
        dialog.close_form()
        redraw.note(redraw.PROJECT, "changed")
        redraw.changed()


def save(surface: str, keys: tuple[str, ...], act: Callable[[Projects, Sequence[str]], object]) -> None:
    typed = [str(st.session_state[key]).strip() for key in keys]
    change(surface, lambda projects: act(projects, typed))


@dataclass(frozen=True)
class Part:
    now: PageState
    view: ProjectView
    surface: str

    @property
    def labels(self) -> ProjectWords:
        return self.now.words.project

    def key(self, name: str) -> str:
        return f"project_{name}_{self.surface}"

    def is_open(self, name: str) -> bool:
        return dialog.is_form_open(Form(self.surface, self.view.root, name))

    def opening(self, name: str) -> Callable[[], None]:
        return partial(dialog.open_form, Form(self.surface, self.view.root, name))

    def changing(self, act: Callable[[Projects], object]) -> Callable[[], None]:
        return partial(change, self.surface, act)

    def row(self, name: str) -> DeltaGenerator:
        return st.container(horizontal=True, wrap=False, gap="xsmall", key=self.key(f"row_of_{name}"))

    def icon(self, label: str, name: str, icon: str, act: Callable[[], None]) -> None:
        widget.draw_action(label, f"icon_{self.key(name)}", icon, act)

    def show_refusal(self) -> None:
        _, error = dialog.outcome(self.surface)
        if isinstance(error, NotFoundError):
            st.error(self.labels.vanished, icon=":material/error:")
        else:
            widget.show_error(self.now.words, error)


class Field(NamedTuple):
    label: str
    value: str = ""
    is_long: bool = False


def draw(
    part: Part, name: str, fields: Sequence[Field], act: Callable[[Projects, Sequence[str]], object], note: str = ""
) -> None:
    """Draws a form if it is open; saving calls `act` with the fields' texts. `note` is above the buttons."""
    if not part.is_open(name):
        return
    keys = tuple(part.key(f"field_{number}_{name}") for number in range(len(fields)))
    with st.form(part.key(f"form_{name}"), border=False):
        for key, field in zip(keys, fields, strict=True):
            if field.is_long:
                st.text_area(field.label, value=field.value, key=key, height=120)
            else:
                st.text_input(field.label, value=field.value, key=key)
        if note:
            widget.draw_note(note)
        part.show_refusal()
        _draw_choice(part, part.now.words.save, partial(save, part.surface, keys, act))


def _draw_choice(part: Part, label: str, act: Callable[[], None], *, is_form: bool = True) -> None:
    cancel, key = part.now.words.cancel, part.key("{}")
    dialog.draw_choice(label, act, cancel=cancel, on_cancel=dialog.close_form, key=key, is_form=is_form)


def draw_question(part: Part, question: str, label: str, act: Callable[[], None], *, is_danger: bool = False) -> None:
    """Draws a confirmation; its first button runs `act`, and is red if `is_danger`."""
    st.markdown(question)
    part.show_refusal()
    with st.container(key=f"{'danger' if is_danger else 'question'}_{part.key('choice')}"):  # the red button
        _draw_choice(part, label, act, is_form=False)


_LABEL_CHARS: Final = 80
Choices = Mapping[str, Callable[[], None]]


def draw_item_menu(
    part: Part, kind: PrimedKind, item_id: str, name: str, text: str, offered: Choices | None = None
) -> None:
    """Draws an item's menu; `offered` are its choices if not the usual ones, and none for no menu."""
    offered = choices(part, kind, item_id) if offered is None else offered
    if offered:
        label = f"{part.labels.primed_kinds[kind]}: {text[:_LABEL_CHARS]}"
        widget.draw_menu(label, f"menu_{part.key(name)}", offered)


def draw_item(
    part: Part, kind: PrimedKind, item_id: str, name: str, text: str, shown: str, offered: Choices | None = None
) -> None:
    """Draws an item's row with its menu, and the button to complete a task that is offered; or the open form."""
    if is_edited(part, kind, item_id):
        draw_form(part, kind, item_id)
        return
    with part.row(name):
        if complete := (offered or {}).get(part.labels.complete):
            label = part.labels.complete_of.format(text=text)
            part.icon(label, f"complete_{name}", "radio_button_unchecked", complete)
        st.markdown(shown)
        draw_item_menu(part, kind, item_id, name, text, offered)


def choices(part: Part, kind: PrimedKind, item_id: str) -> Choices:
    labels, steering, root, changing = part.labels, part.now.words.steering, part.view.root, part.changing
    ask, forget = asking_to_forget(part, item_id), forgetting(part, item_id)
    changes: Mapping[PrimedKind, Choices] = {
        "plan": {labels.plan_done: changing(lambda projects: projects.workflow(root).complete_plan(item_id)), **ask},
        "task": {labels.complete: changing(lambda projects: projects.workflow(root).complete_task(item_id)), **forget},
        "decision": {labels.forget: changing(lambda projects: projects.context(root).forget_decision(item_id))},
        "file": {steering.close: changing(lambda projects: projects.context(root).note_open_files(closed=[item_id]))},
        "summary": {labels.forget: changing(lambda projects: projects.context(root).edit_summary(""))},
        "message": {labels.forget_dialog: changing(lambda projects: projects.context(root).forget_dialog())},
    }
    edit = {} if kind in {"file", "message"} else {steering.edit: part.opening(_form_of(kind, item_id))}
    return {**edit, **changes.get(kind, {})}


def forgetting(part: Part, item_id: str) -> Choices:
    return {part.labels.forget: part.changing(lambda projects: projects.workflow(part.view.root).forget(item_id))}


def asking_to_forget(part: Part, plan_id: str) -> Choices:
    """Returns the choice to delete a plan, with all tasks, after a confirmation."""
    return {part.labels.forget: part.opening(_question_of(plan_id))}


def is_edited(part: Part, kind: PrimedKind, item_id: str) -> bool:
    return part.is_open(_form_of(kind, item_id)) or part.is_open(_question_of(item_id))


def draw_form(part: Part, kind: PrimedKind, item_id: str) -> None:
    """Draws the item's open form or confirmation, with the full stored text, even if only part of it is primed."""
    labels, view = part.labels, part.view
    titles = {plan.id: plan.title for plan in view.plans}
    titles |= {task.id: task.title for plan in view.plans for task in plan.tasks}
    if part.is_open(_question_of(item_id)):
        question = labels.forget_plan_question.format(text=escape_label(titles.get(item_id, "")))
        draw_question(part, question, labels.forget, forgetting(part, item_id)[labels.forget], is_danger=True)
        return
    note, value = "", titles.get(item_id, "")
    if kind == "project":
        value = view.name
    elif kind == "decision":
        note, value = labels.edit_decision_note, next((each.text for each in view.decisions if each.id == item_id), "")
    elif kind == "summary":
        note, value = labels.summary_limit.format(count=view.summary_limit_chars), view.summary
    field = Field(labels.primed_kinds[kind], value, is_long=kind in {"decision", "summary"})
    draw(part, _form_of(kind, item_id), [field], partial(_edit, kind, item_id, view.root), note)


def _edit(kind: PrimedKind, item_id: str, root: str, projects: Projects, typed: Sequence[str]) -> None:
    (text,) = typed
    if kind == "project":
        projects.workflow(root).name_project(text)
    elif kind == "decision":
        projects.context(root).record_decision(text, replaces=item_id)
    elif kind == "summary":
        projects.context(root).edit_summary(text)
    else:
        projects.workflow(root).rename(item_id, text)


def _question_of(plan_id: str) -> str:
    return f"forget_{plan_id}"


def _form_of(kind: PrimedKind, item_id: str) -> str:
    return f"edit_{kind}_{item_id}"
