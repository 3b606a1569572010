"""Draws the tool calls of a turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from component.delivery import delivered
from component.format import escape_label
from component.word import Words
from graph.view import StepStatus, ToolStep, TurnView

_ICONS = {"running": ":material/pending:", "done": ":material/check_circle:"}
_SHOWN_CHARS = 2_000


@st.fragment
@delivered
def draw_steps(words: Words, turn: TurnView) -> None:
    """Draws an ended turn's steps in a collapsed box; they are sent to the browser when it is opened."""
    box = st.expander(
        _count(words, turn.steps),
        key=f"steps_{turn.number}_{turn.attempt}",
        icon=":material/build:",
        type="compact",
        on_change="rerun",
    )
    if box.open:
        with box:
            draw_step_list(words, turn.steps)


def draw_step_list(words: Words, steps: Iterable[ToolStep]) -> None:
    """Draws one expandable line per step, with its input and result."""
    for step in steps:
        seconds = "" if step.seconds is None else f" · {words.tool_seconds.format(seconds=f'{step.seconds:.1f}')}"
        # The model may have invented the name, Markdown included.
        name = step.name.replace("`", "'")
        label = f"`{name}` {escape_label(_brief(step.arguments))}{seconds}"
        with _box(label, step.status):
            st.markdown(f":small[:gray[{words.tool_arguments}]]")
            st.code(step.arguments, language="json", wrap_lines=True)
            if step.result:
                st.markdown(f":small[:gray[{words.tool_result}]]")
                cut = step.result[:_SHOWN_CHARS]
                st.code(cut if cut == step.result else f"{cut}…", language=None, wrap_lines=True)


def _count(words: Words, steps: Sequence[ToolStep]) -> str:
    used = words.tool_used_once if len(steps) == 1 else words.tools_used.format(count=len(steps))
    failed = sum(step.status == "error" for step in steps)
    return f"{used} · {words.tools_failed.format(count=failed)}" if failed else used


def _box(label: str, status: StepStatus) -> DeltaGenerator:
    if status == "error":
        return st.status(label, state="error", type="step")  # Streamlit colours the icon of no other box
    return st.expander(label, type="step", icon=_ICONS[status])


def _brief(arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        return ""
    texts = [str(value) for value in values.values() if value not in ("", None)] if isinstance(values, dict) else []
    brief = ", ".join(texts)
    return brief if len(brief) <= 60 else f"{brief[:60]}…"  # noqa: PLR2004 - one line of the column
