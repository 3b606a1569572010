"""Composes a turn's blocks as a test says, and notes what it was asked."""

from __future__ import annotations

from graph.core.pin import ContextRequest
from graph.value.error import TurnfoldError

FRONT = "## 영구 컨텍스트\nprojectRules:\n    들여쓰기는 네 칸으로 합니다.\n    커밋 글은 한국어로 씁니다."


class ScriptedContext:
    """A source with a fixed front, and a turn's block that names the request's file; `error` is raised instead."""

    def __init__(self, front: str = FRONT) -> None:
        self.front = front
        self.error: TurnfoldError | None = None
        self.requests: list[ContextRequest] = []

    def __call__(self, request: ContextRequest) -> tuple[str, str]:
        self.requests.append(request)
        if self.error is not None:
            raise self.error
        return (self.front if request.root else ""), volatile_of(request.context)


def volatile_of(context: object) -> str:
    """The block of a turn whose request said this of its context."""
    lines = [f"{key}: {value}" for key, value in dict(context).items()]  # type: ignore[call-overload]  # a mapping
    return "\n".join(["## 휘발성 컨텍스트", *lines]) if lines else ""
