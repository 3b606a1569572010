"""Draws the tool calls of a turn, and links to the earlier turns recalled for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from component.bridge.delivery import delivered
from component.format import escape_label
from component.words.en import Words
from graph.value.view import StepStatus, ToolStep, TurnView

_ICONS = {"running": ":material/pending:", "done": ":material/check_circle:"}
_SHOWN_CHARS = 2_000


@st.fragment
@delivered
def draw_steps(words: Words, turn: TurnView) -> None:
    """Draws a finished turn's steps in an expander; they are sent to the browser when opened."""
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
    draw_recalled(words, turn.steps)


def draw_recalled(words: Words, steps: Iterable[ToolStep]) -> None:
    """Draws buttons for the recalled turns; the page's script scrolls to the turn."""
    turns = sorted({turn for step in steps for turn in step.turns or ()})
    if not turns:
        return
    buttons = [
        f'<button type="button" class="recalled-turn" data-first="{turn}" data-last="{turn}" '
        f'aria-label="{words.to_turn.format(turn=turn)}">{words.recalled_turn.format(turn=turn)}</button>'
        for turn in turns
    ]
    st.html(f'<p class="recalled">{_tell_turns(words, buttons)}</p>')


def draw_step_list(words: Words, steps: Iterable[ToolStep]) -> None:
    for step in steps:
        seconds = "" if step.seconds is None else f" · {words.tool_seconds.format(seconds=f'{step.seconds:.1f}')}"
        with _box(f"{_label(words, step)}{seconds}", step.status):
            st.markdown(f":small[:gray[{words.tool_arguments}]]")
            st.code(step.arguments, language="json", wrap_lines=True)
            if step.result:
                st.markdown(f":small[:gray[{words.tool_result}]]")
                cut = step.result[:_SHOWN_CHARS]
                st.code(cut if cut == step.result else f"{cut}…", language=None, wrap_lines=True)


def _label(words: Words, step: ToolStep) -> str:
    if step.turns is not None and step.status == "done":
        return _tell_turns(words, [words.recalled_turn.format(turn=turn) for turn in step.turns])
    # The name may be invented by the model, including Markdown.
    name = step.name.replace("`", "'")
    return f"`{name}` {escape_label(_brief(step.arguments))}"


def _tell_turns(words: Words, turns: Sequence[str]) -> str:
    if not turns:
        return words.recalled_none
    return (words.recalled_one if len(turns) == 1 else words.recalled_some).format(turns=", ".join(turns))


def _count(words: Words, steps: Sequence[ToolStep]) -> str:
    used = words.tool_used_once if len(steps) == 1 else words.tools_used.format(count=len(steps))
    failed = sum(step.status == "error" for step in steps)
    return f"{used} · {words.tools_failed.format(count=failed)}" if failed else used


def _box(label: str, status: StepStatus) -> DeltaGenerator:
    if status == "error":
        return st.status(label, state="error", type="step")  # only `st.status` has a coloured icon
    return st.expander(label, type="step", icon=_ICONS[status])


def _brief(arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        return ""
    said = [value for value in values.values() if value not in ("", None)] if isinstance(values, dict) else []
    texts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in said]
    brief = ", ".join(texts)
    return brief if len(brief) <= 60 else f"{brief[:60]}…"  # noqa: PLR2004 - one line of the column
