"""The journeys through the states that the page can be in, a file each: each state is reached from the one before."""

from __future__ import annotations

from collections.abc import Sequence
from inspect import isfunction
from pathlib import Path
from types import ModuleType
from typing import Final

from playwright.sync_api import Browser

from tests.browser import (
    state_answer,
    state_attach,
    state_branch,
    state_context,
    state_first,
    state_fold,
    state_full,
    state_input,
    state_program,
    state_project,
    state_session,
    state_setting,
    state_sign_in,
    state_steering,
    state_strategy,
    state_tools,
    state_trouble,
)
from tests.browser.axe import Themes, walk_without_violation
from tests.browser.conftest import Target
from tests.browser.stage import State, staged
from tests.fake.openai_server import FakeOpenAI


def states_of(journey: ModuleType) -> Sequence[State]:
    """Returns the states of a file in its order: its public functions of the stage alone that return nothing."""
    return [
        found
        for name, found in vars(journey).items()
        if isfunction(found) and found.__module__ == journey.__name__ and not name.startswith("_")
        if found.__annotations__ == {"stage": "Stage", "return": "None"}
    ]


JOURNEYS: Final = {
    "first chat": state_first,
    "settings": state_setting,
    "search": state_session,
    "branch": state_branch,
    "fold and card": state_fold,
    "steering": state_steering,
    "reset and compaction": state_context,
    "answer, Stop and reload": state_answer,
    "files": state_attach,
    "slider and strategy": state_strategy,
    "trouble": state_trouble,
    "program": state_program,
    "project": state_project,
    "sign-in": state_sign_in,
    "full context": state_full,
    "tools": state_tools,
    "model input": state_input,
}
# `make test` walks what only a browser can show: what moves while an answer comes, what folds mark and lead to.
_QUICK: Final = ("fold and card", "answer, Stop and reload")


def quick_journeys(first: int) -> list[str]:
    """Returns every other journey of `make test` from this one on: the others are walked at the other width."""
    return [name for name in list(JOURNEYS)[first::2] if name in _QUICK]


def other_journeys(first: int) -> list[str]:
    """Returns the journeys that `make test` doesn't walk at this width."""
    return [name for name in JOURNEYS if name not in quick_journeys(first)]


def walk(
    journey: str,
    look: str,
    chromium: Browser,
    target: Target,
    endpoint: FakeOpenAI,
    folder: Path,
    themes: Themes = "own",
) -> None:
    """Walks a journey in a look; none of its states may break a rule of axe."""
    with staged(chromium, target.address, look, endpoint, target.service, folder) as stage:
        if themes == "other":
            stage.visitor.page.emulate_media(color_scheme="light" if stage.is_dark else "dark")
        walk_without_violation(stage, states_of(JOURNEYS[journey]), themes)
