"""A project as a test sets it, for states of the page that files are hard to bring to."""

from __future__ import annotations

from graph.value.error import PathError, TurnfoldError
from graph.value.project_view import ProjectView, RulesView

NO_RULES = RulesView("none", "", (), (), (), None)


class ScriptedProjects:
    """The projects of a service: none until a view is set, then that one, whatever is changed.

    Attributes:
        view: What is shown.
        refusal: Raised by each change.
        calls: The names of the methods called, with what followed the root.
    """

    def __init__(self) -> None:
        self.view: ProjectView | None = None
        self.refusal: TurnfoldError | None = None
        self.calls: list[tuple[object, ...]] = []

    def roots(self) -> tuple[str, ...]:
        return () if self.view is None else (self.view.root,)

    def get(self, root: str, *, language: str = "ko") -> ProjectView:
        self.calls.append(("get", language))
        if self.view is None or root != self.view.root:
            raise PathError("not_allowed", root)
        return self.view

    def __getattr__(self, name: str) -> object:
        def change(root: str, *arguments: object, **named: object) -> ProjectView:
            self.calls.append((name, *arguments, *named.values()))
            if self.refusal is not None:
                raise self.refusal
            return self.get(root)

        return change
