"""A project as a test sets it, for states of the page that files are hard to bring to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from graph.value.error import PathError, TurnfoldError
from graph.value.project_view import ProjectView, RulesView

NO_RULES = RulesView("none", "", (), (), (), None)


class ScriptedProjects:
    """The projects of a service: none until a view is set, then that one, whatever is changed.

    Attributes:
        view: What is shown.
        refusal: Raised by each change.
        calls: The methods called, also those of the managers: the name, the arguments but the root, the named ones as
            pairs.
        loaded: The managers that were asked for, by name.
    """

    def __init__(self) -> None:
        self.view: ProjectView | None = None
        self.refusal: TurnfoldError | None = None
        self.calls: list[tuple[object, ...]] = []
        self.loaded: list[str] = []

    def roots(self) -> tuple[str, ...]:
        return () if self.view is None else (self.view.root,)

    def get(self, root: str, *, language: str = "ko") -> ProjectView:
        self.calls.append(("get", language))
        if self.view is None or root != self.view.root:
            raise PathError("not_allowed", root)
        return self.view

    def agree(self, root: str, digest: str) -> None:
        self._change(root, "agree", digest)

    def restore(self, root: str, snapshot: str) -> None:
        self._change(root, "restore", snapshot)

    def start_over(self, root: str) -> None:
        self._change(root, "start_over")

    def workflow(self, root: str) -> ScriptedManager:
        self.loaded.append("workflow")
        return ScriptedManager(partial(self._change, root))

    def context(self, root: str) -> ScriptedManager:
        self.loaded.append("context")
        return ScriptedManager(partial(self._change, root))

    def _change(self, root: str, name: str, *arguments: object, **named: object) -> None:
        self.calls.append((name, *arguments, *named.items()))
        if self.refusal is not None:
            raise self.refusal
        self.get(root)


class ScriptedManager:
    """A manager of a project's memory, which changes nothing."""

    def __init__(self, change: Callable[..., None]) -> None:
        self._change = change

    def __getattr__(self, name: str) -> Callable[..., None]:
        return partial(self._change, name)
