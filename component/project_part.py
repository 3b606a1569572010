"""A project in one place of the page: what each of its parts needs to be drawn and changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from component import open_form, project_action
from component.error_box import tell
from component.open_form import Form
from component.page_state import PageState
from component.word import Words
from component.word_project import ProjectWords
from graph.value.error import NotFoundError
from graph.value.project_view import ProjectView

if TYPE_CHECKING:
    from graph.service.projects import Projects


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
        return partial(project_action.change, self.place, method, self.view.root, *arguments)

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
