"""Draws what a project is changed with: a form in the place of what it changes, a menu, a question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import streamlit as st

from component import open_form, redraw, widget
from component.bridge import delivery, service_provider
from component.format import escape_label
from component.open_form import Form
from component.page_state import PageState
from component.widget import tell
from component.words.en import ProjectWords, Words
from graph.value.error import NotFoundError, TurnfoldError
from graph.value.project_view import PrimedKind, ProjectView

if TYPE_CHECKING:
    from graph.service.projects import Projects


@delivery.once
def change(place: str, method: Callable[..., object], *arguments: object) -> None:
    """Changes something and closes the open form; what is refused is told in its place.

    Args:
        place: Where it was pressed: "rail", "drawer" or "chat".
        method: A method of `service.projects`.
        arguments: Those of the method.
    """
    try:
        service_provider.current()  # a press may come after the end of the sign-in that the method is bound to
        method(*arguments)
    except TurnfoldError as error:
        open_form.refuse(place, error)
        return
    open_form.close()
    redraw.project_changed()


def save(place: str, keys: tuple[str, ...], method: Callable[..., object]) -> None:
    """Changes something by what was typed into the fields of these keys."""
    change(place, method, *(str(st.session_state[key]).strip() for key in keys))


@dataclass(frozen=True)
class Part:
    """A project in one place of the page.

    Attributes:
        place: "rail", "drawer" or "chat".
    """

    now: PageState
    view: ProjectView
    place: str

    @property
    def words(self) -> Words:
        """The page's words."""
        return self.now.words

    @property
    def said(self) -> ProjectWords:
        """Those on projects."""
        return self.now.words.project

    @property
    def projects(self) -> Projects:
        """What changes it."""
        return self.now.service.projects

    def key(self, name: str) -> str:
        """Returns the key of an element in this place."""
        return f"project_{name}_{self.place}"

    def form(self, name: str) -> Form:
        """Returns a form in this place."""
        return Form(self.place, self.view.root, name)

    def is_open(self, name: str) -> bool:
        """Whether this form is open."""
        return open_form.is_open(self.form(name))

    def opening(self, name: str) -> Callable[[], None]:
        """Returns the callback that opens a form."""
        return partial(open_form.request, self.form(name))

    def changing(self, method: Callable[..., object], *arguments: object) -> Callable[[], None]:
        """Returns the callback that calls a method of `projects` with the root and these."""
        return partial(change, self.place, method, self.view.root, *arguments)

    @contextmanager
    def section(self, name: str, title: str, new: str = "") -> Iterator[None]:
        """Draws a part with its title and, if `new` says what for, the button that opens the form `new_<name>`."""
        with st.container(border=True, gap="xsmall", key=self.key(name)):
            with self.row(f"head_of_{name}"):
                st.markdown(f"**{title}**")
                if new:
                    self.icon(new, f"new_{name}", ":material/add:", self.opening(f"new_{name}"))
            yield

    @contextmanager
    def row(self, name: str) -> Iterator[None]:
        """Draws a line: a text and what can be done with it."""
        with st.container(horizontal=True, wrap=False, gap="xsmall", key=self.key(f"row_of_{name}")):
            yield

    def icon(self, label: str, name: str, icon: str, act: Callable[[], None]) -> None:
        """Draws a button whose label is for screen readers."""
        st.button(label, key=self.key(f"icon_{name}"), icon=icon, type="tertiary", on_click=act)

    def tell_refusal(self) -> None:
        """Tells why the last change in this place was refused."""
        error = open_form.refusal(self.place)
        if isinstance(error, NotFoundError):
            st.error(self.said.vanished, icon=":material/error:")
        elif error is not None:
            tell(self.words, error)


class Field(NamedTuple):
    """A field of a form."""

    label: str
    value: str = ""
    is_long: bool = False


def draw(part: Part, name: str, fields: Sequence[Field], method: Callable[..., object], note: str = "") -> None:
    """Draws a form if it is the open one; saved, it calls `method` with the fields' texts, `note` above its buttons."""
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
            st.markdown(f":small[:gray[{note}]]")
        part.tell_refusal()
        # Enter presses a form's first button; the style sheet shows the two in reverse.
        with st.container(horizontal=True, key=part.key("choice")):
            st.form_submit_button(
                part.words.save,
                key=part.key("save"),
                type="primary",
                on_click=save,
                args=(part.place, keys, method),
            )
            st.form_submit_button(part.words.cancel, key=part.key("cancel"), on_click=open_form.close)


def draw_question(part: Part, question: str, label: str, act: Callable[[], None], *, is_danger: bool = False) -> None:
    """Draws a question whose first button does what was asked for; red, if that can't be undone."""
    st.markdown(question)
    part.tell_refusal()
    # By these names the style sheet knows the row, and what is red in it.
    around = f"{'danger' if is_danger else 'question'}_{part.key('choice')}"
    with st.container(key=around), st.container(horizontal=True, key=part.key("choice")):
        st.button(label, key=part.key("save"), type="primary", on_click=act)
        st.button(part.words.cancel, key=part.key("cancel"), on_click=open_form.close)


def draw_menu(part: Part, label: str, name: str, choices: Mapping[str, Callable[[], None]]) -> None:
    """Draws a menu whose label is for screen readers; each choice is a widget callback."""
    widget.draw_menu(label, f"menu_{part.key(name)}", choices)


_LABEL_CHARS: Final = 80


def draw_item_menu(part: Part, kind: PrimedKind, item_id: str, name: str, text: str) -> None:
    """Draws the menu; `name` is for its key, `text` tells it from others."""
    draw_menu(part, label_of(part, kind, text), name, choices(part, kind, item_id))


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
        draw_question(part, question, said.forget, forget, is_danger=True)
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
    draw(part, _form_of(kind, item_id), [field], save, note)


def _question_of(plan_id: str) -> str:
    return f"forget_{plan_id}"


def _form_of(kind: PrimedKind, item_id: str) -> str:
    return f"edit_{kind}_{item_id}"
