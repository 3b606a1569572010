"""What can be done with one thing that a project knows: its menu, and the form that edits it in its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from component import project_form
from component.format import escape_label
from component.project_form import Field
from component.project_part import Part
from graph.value.project_view import PrimedKind

_LABEL_CHARS: Final = 80


def draw_menu(part: Part, kind: PrimedKind, item_id: str, name: str, text: str) -> None:
    """Draws the menu; `name` is for its key, `text` tells it from others."""
    project_form.draw_menu(part, label_of(part, kind, text), name, choices(part, kind, item_id))


def label_of(part: Part, kind: PrimedKind, text: str) -> str:
    """Returns what a menu is called."""
    return f"{part.said.primed_kinds[kind]}: {text[:_LABEL_CHARS]}"


def choices(part: Part, kind: PrimedKind, item_id: str) -> Mapping[str, Callable[[], None]]:
    """Returns what can be done, by its label."""
    said, projects, changing = part.said, part.projects, part.changing
    changes: Mapping[PrimedKind, Mapping[str, Callable[[], None]]] = {
        "plan": {said.plan_done: changing(projects.complete_plan, item_id), **asking_to_forget(part, item_id)},
        "task": {said.complete: changing(projects.complete_task, item_id), **forgetting(part, item_id)},
        "decision": {said.forget: changing(projects.forget_decision, item_id)},
        "file": {said.close_file: changing(projects.close_file, item_id)},
        "summary": {said.forget: changing(projects.edit_summary, "")},
        "message": {said.forget_dialog: changing(projects.forget_dialog)},
    }
    edit = {} if kind in {"file", "message"} else {said.edit: part.opening(_form_of(kind, item_id))}
    return {**edit, **changes.get(kind, {})}


def forgetting(part: Part, task_id: str) -> Mapping[str, Callable[[], None]]:
    """Returns the choice that deletes a task."""
    return {part.said.forget: part.changing(part.projects.forget, task_id)}


def asking_to_forget(part: Part, plan_id: str) -> Mapping[str, Callable[[], None]]:
    """Returns the choice that asks whether to delete a plan, as its tasks go with it."""
    return {part.said.forget: part.opening(_question_of(plan_id))}


def is_edited(part: Part, kind: PrimedKind, item_id: str) -> bool:
    """Whether the form of this thing, or the question whether to forget it, is open."""
    return part.is_open(_form_of(kind, item_id)) or part.is_open(_question_of(item_id))


def draw_form(part: Part, kind: PrimedKind, item_id: str) -> None:
    """Draws the form of this thing, if it is open, with the text as it is stored, however much of it is primed."""
    said, projects, view, root = part.said, part.projects, part.view, part.view.root
    titles = {plan.id: plan.title for plan in view.plans}
    titles |= {task.id: task.title for plan in view.plans for task in plan.tasks}
    if part.is_open(_question_of(item_id)):
        question = said.forget_plan_question.format(text=escape_label(titles.get(item_id, "")))
        forget = part.changing(projects.forget, item_id)
        project_form.draw_question(part, question, said.forget, forget, is_danger=True)
        return
    note, is_long, value = "", kind in {"decision", "summary"}, titles.get(item_id, "")
    save: Callable[..., object] = partial(projects.rename, root, item_id)
    if kind == "project":
        value, save = view.name, partial(projects.name, root)
    elif kind == "decision":
        value = next((each.text for each in view.decisions if each.id == item_id), "")
        note, save = said.edit_decision_note, partial(projects.record_decision, root, replaces=item_id)
    elif kind == "summary":
        note = said.summary_limit.format(count=view.summary_limit_chars)
        value, save = view.summary, partial(projects.edit_summary, root)
    field = Field(said.primed_kinds[kind], value, is_long=is_long)
    project_form.draw(part, _form_of(kind, item_id), [field], save, note)


def _question_of(plan_id: str) -> str:
    return f"forget_{plan_id}"


def _form_of(kind: PrimedKind, item_id: str) -> str:
    return f"edit_{kind}_{item_id}"
