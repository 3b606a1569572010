"""Draws a turn's thoughts and steps, and follows a running turn: the answer is drawn block by block."""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Final

import streamlit as st
from markdown_it import MarkdownIt
from streamlit.delta_generator import DeltaGenerator

from component import dialog, page_state, reading, redraw, widget
from component.action import TurnPlace
from component.bridge import delivery
from component.chat import picture
from component.format import escape_label, format_turns
from component.markdown import answer_markdown, growing_markdown
from component.page_state import PageState
from component.widget import error_box
from component.words.words import Words
from graph.value.error import NotFoundError
from graph.value.event import CallRetried
from graph.value.view import LiveTurn, NamedImage, SessionView, StepStatus, ToolStep, TurnView

_ICONS = {"running": ":material/pending:", "done": ":material/check_circle:", "declined": ":material/block:"}
_THOUGHT_ICON: Final = "psychology"
_SHOWN_CHARS, _WHOLE_CHARS = 2_000, 200_000


@delivery.fragment()
def draw_thoughts(now: PageState, identifier: str, turn: TurnView) -> None:
    """Draws a finished turn's thoughts in an expander; they are read and sent to the browser when opened."""
    key = f"thoughts_{turn.number}_{turn.attempt}"
    if box := widget.open_box(_thought_label(now.words, turn.thought_seconds), key, _THOUGHT_ICON):
        with box, error_box(now.words):
            thoughts = now.service.turns.thoughts(identifier, turn.number, attempt=turn.attempt)
            st.markdown(answer_markdown(thoughts), anchors=False)


def _thought_label(words: Words, seconds: float) -> str:
    return words.thought.format(seconds=max(1, round(seconds)))


@delivery.fragment()
def draw_steps(now: PageState, identifier: str, turn: TurnView) -> None:
    """Draws a finished turn's steps, sent to the browser when opened, and the turns that it looked up."""
    if not all(step.turns for step in turn.steps):
        label, key = _count(now.words, turn.steps), f"steps_{turn.number}_{turn.attempt}"
        if box := widget.open_box(label, key, "build"):
            with box, error_box(now.words):
                draw_step_list(now, turn.steps, (identifier, turn.number, turn.attempt))
    draw_recalled(now.words, turn.steps)


def draw_recalled(words: Words, steps: Iterable[ToolStep]) -> None:
    turns = sorted({turn for step in steps for turn in step.turns or ()})
    if not turns:
        return
    buttons = [widget.turn_link(words, turn, words.recalled_turn.format(turn=turn)) for turn in turns]
    st.html(f'<p class="recalled">{_describe_turns(words, buttons)}</p>')


def draw_step_list(now: PageState, steps: Iterable[ToolStep], place: TurnPlace | None = None) -> None:
    """Draws each step in a box; the pictures of its result, and all of it, only with the `place` of an ended turn."""
    words = now.words
    for number, step in enumerate(steps):
        with _box(" · ".join([_label(words, step), *_end(words, step)]), step.status):
            widget.draw_note(words.tool_arguments)
            st.code(step.arguments, language="json", wrap_lines=True)
            if step.result:
                widget.draw_note(words.tool_result)
                _draw_result(now, step, place, number)
            if step.images and place is not None:
                images, key = [NamedImage("", url) for url in step.images], "_".join(map(str, place[1:]))
                picture.draw(words, place[0], images, f"step_{key}_{number}")


def _draw_result(now: PageState, step: ToolStep, place: TurnPlace | None, number: int) -> None:
    # What the input has of a longer one is the limit, and a note.
    if place is None or len(step.result) <= min(_SHOWN_CHARS, now.service.settings.tool_result_chars):
        _draw_text(step.result, _SHOWN_CHARS)
        return

    def draw_part(is_whole: bool) -> None:  # noqa: FBT001  # as `draw_clamped` calls it
        whole = now.service.turns.whole_result(*place, step.call_id) if is_whole else step.result
        _draw_text(whole, _WHOLE_CHARS if is_whole else _SHOWN_CHARS)

    widget.draw_clamped(now.words, f"result_{place[1]}_{place[2]}_{number}", draw_part)


def _draw_text(text: str, chars: int) -> None:
    st.code(text if len(text) <= chars else f"{text[:chars]}…", language=None, wrap_lines=True)


def _label(words: Words, step: ToolStep) -> str:
    if step.turns is not None and step.status == "done":
        return _describe_turns(words, [words.recalled_turn.format(turn=turn) for turn in step.turns])
    # The name may be invented by the model, including Markdown.
    name = step.name.replace("`", "'")
    shown = f"{escape_label(step.server)} · **{escape_label(step.title)}**" if step.server else f"`{name}`"
    return f"{shown} {escape_label(_brief(step.arguments))}"


def _end(words: Words, step: ToolStep) -> list[str]:
    if step.status == "declined":
        return [words.tool_declined]
    if step.attempt:
        return [words.tool_earlier]
    shown = f"{step.seconds or 0:.1f}"
    return [] if shown == "0.0" else [words.tool_seconds.format(seconds=shown)]


def _describe_turns(words: Words, turns: Sequence[str]) -> str:
    if not turns:
        return words.recalled_none
    return (words.recalled_one if len(turns) == 1 else words.recalled_some).format(turns=", ".join(turns))


def _count(words: Words, steps: Sequence[ToolStep]) -> str:
    used = words.tool_used_once if len(steps) == 1 else words.tools_used.format(count=len(steps))
    told = {"error": words.tools_failed, "declined": words.tools_declined}
    counts = {status: sum(step.status == status for step in steps) for status in told}
    return " · ".join([used, *(told[status].format(count=count) for status, count in counts.items() if count)])


def _box(label: str, status: StepStatus) -> DeltaGenerator:
    if status == "error":
        return st.status(label, state="error", type="step")  # only `st.status` has a coloured icon
    return st.expander(label, type="step", icon=_ICONS[status])


def _brief(arguments: str) -> str:
    try:
        values = json.loads(arguments)
    except ValueError:
        return ""
    given = [value for value in values.values() if value not in ("", None)] if isinstance(values, dict) else []
    texts = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in given]
    brief = ", ".join(texts)
    return brief if len(brief) <= 60 else f"{brief[:60]}…"  # noqa: PLR2004 - one line of the column


PART_CHARS: Final = 300

_PARSER: Final = MarkdownIt("commonmark", {"maxNesting": 20}).enable("table").disable(["inline", "text_join"])
_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
# Definitions of links and footnotes apply to the whole text.
_DEFINITION: Final = re.compile(r"^[ >]*\[[^\]\n]+\]:", re.MULTILINE)


def split_paragraphs(markdown: str, known: Sequence[str] = (), *, part_chars: int = PART_CHARS) -> list[str]:
    """Splits Markdown into parts of whole blocks, of at least `part_chars` but for the last.

    All but the last of the `known` parts, of a shorter version, are reused if the text still starts with them.
    """
    if _DEFINITION.search(markdown):
        return [markdown]
    whole = [*known[:-1]]
    begin = sum(map(len, whole))
    if not markdown.startswith("".join(whole)):
        whole, begin = [], 0
    parts = [*whole, ""]
    for block in _blocks(markdown[begin:]):
        # A displayed formula may contain lines that look like blocks.
        if len(parts[-1]) >= part_chars and parts[-1].count("$$") % 2 == 0:
            parts.append("")
        parts[-1] += block
    return parts


def _blocks(markdown: str) -> list[str]:
    lines = _LINE.findall(markdown)
    begins = [token.map[0] for token in _PARSER.parse(markdown) if token.level == 0 and token.map]
    return ["".join(lines[begin:end]) for begin, end in pairwise([0, *begins[1:], len(lines)])]


# A run that ends before the turn requests the next one itself, so nearly always a run is waiting; the browser's timer
# is for a lost request.
ASK_SECONDS = 1.0
RUN_SECONDS = 20.0
_PAUSE_SECONDS = 0.02  # between checks for other requests
_DRAW_SECONDS = 0.2  # minimum time between drawings
LOOK_SECONDS = 3  # at what may change unheard


def draw(now: PageState, identifier: str, number: int) -> None:
    now.service.sessions.leave(delivery.tab())
    with st.chat_message("assistant"):
        _follow(now, identifier, number)


@delivery.fragment(key=redraw.WATCH)
def watch(now: PageState, drawn: SessionView) -> None:
    """Redraws changes made in another tab or by another server; a running turn is followed by `draw` instead.

    It has no timer: the server runs it once something has changed, and once behind each drawing.
    """
    identifier, sessions = drawn.session_id, now.service.sessions
    with error_box(now.words):
        is_asked_for = delivery.is_asked_for()
        try:
            if delivery.is_served():
                # What waits until a dialog or a form is closed is looked at again until then.
                is_held = dialog.is_open() or dialog.has_form(dialog.PANEL)
                seen = sessions.mark(identifier) if is_asked_for and not is_held else None
                again_seconds = LOOK_SECONDS if redraw.is_restless() else None
                wake = delivery.waker(redraw.WATCH)
                sessions.follow(identifier, delivery.tab(), wake, seen=seen, again_seconds=again_seconds)
            if not is_asked_for or dialog.is_open():
                return
            session = reading.session(now.service, identifier)
        except NotFoundError:
            st.rerun()
        if page_state.settings_of(session) != page_state.settings_of(drawn):
            st.rerun()
        redraw.ask(redraw.stale_parts())


@delivery.fragment(run_every=ASK_SECONDS)
def _follow(now: PageState, identifier: str, number: int) -> None:
    # Drawn from fresh data by the turn's own run: only a later run may request a redraw.
    is_fresh = not delivery.is_asked_for()
    # In one container, which the ended answer's first element replaces whole: else parts stay beside it for a moment.
    with error_box(now.words), st.container():
        try:
            with reading.shared(now.service, identifier):
                turn = now.service.turns.live(identifier)
            if turn is not None and turn.number == number:
                _draw_running(now, identifier, turn, waits=not is_fresh)
            elif is_fresh:
                st.html(_status(now.words.phase_closing))
            else:
                ended = reading.transcript(now.service, identifier, 1).turns[-1]
                if ended.thought_seconds:
                    _draw_line(_thought_label(now.words, ended.thought_seconds))
                draw_step_list(now, ended.steps)
                draw_recalled(now.words, ended.steps)
                st.markdown(answer_markdown(ended.answer_text), anchors=False)
                redraw.ask(redraw.stale_parts())
        except NotFoundError:
            # Deleted in another tab: draw the empty page.
            st.rerun()


class _GrowingText:
    """Draws a growing text; sends only the parts that grow."""

    def __init__(self, box: DeltaGenerator) -> None:
        self._box = box
        self._parts: list[str] = []
        self._drawn: list[DeltaGenerator] = []

    def show(self, text: str, *, is_whole: bool = False) -> None:
        parts = split_paragraphs(answer_markdown(text) if is_whole else growing_markdown(text), self._parts)
        for index, part in enumerate(parts):
            if index == len(self._drawn):
                self._drawn.append(self._box.markdown(part, anchors=False))
            elif part != self._parts[index]:
                self._drawn[index] = self._drawn[index].markdown(part, anchors=False)
        for drawn in self._drawn[len(parts) :]:
            drawn.empty()
        self._drawn = self._drawn[: len(parts)]
        self._parts = parts


def _thoughts_label(words: Words, turn: LiveTurn) -> str:
    if not turn.thoughts:
        return ""
    return words.thinking if turn.thinking_since else _thought_label(words, turn.thought_seconds)


def _draw_thinking(words: Words, label: str, turn: LiveTurn) -> _GrowingText | None:
    """Draws the line of what the model thinks in a running turn; the style sheet counts its seconds."""
    place = st.empty()
    if not label:
        return None
    with place.container(key="thinking", gap=None):
        if turn.thinking_since:
            st.html(_counter(words, turn))
        return _GrowingText(_draw_line(label).container())


def _draw_line(label: str) -> DeltaGenerator:
    return st.expander(label, icon=f":material/{_THOUGHT_ICON}:", type="compact")


def _counter(words: Words, turn: LiveTurn) -> str:
    """Returns what the style sheet counts from: a line that was written anew each second would close."""
    seconds = turn.thought_seconds + time.monotonic() - turn.thinking_since
    rule = f"--since: -{seconds:.1f}s; --thinking-unit: '{words.thinking_unit}'"
    return f'<i class="thinking"></i><style>.st-key-thinking {{ {rule} }}</style>'


def _draw_running(now: PageState, identifier: str, turn: LiveTurn, *, waits: bool) -> None:
    """Draws the running turn and new text until the run's time is up or another request waits."""
    until = time.monotonic() + RUN_SECONDS * waits
    label = _thoughts_label(now.words, turn)
    thoughts = _draw_thinking(now.words, label, turn)
    if thoughts is not None:
        thoughts.show(turn.thoughts)
    draw_step_list(now, turn.steps)
    draw_recalled(now.words, turn.steps)
    answer = _GrowingText(st.container(key="streaming"))
    answer.show(turn.text)
    line = st.html(_phase(now.words, turn))
    while time.monotonic() < until:
        st.session_state.get(page_state.OPEN)  # Streamlit ends the run here if the whole page is requested
        if delivery.is_wanted():
            break
        seen = turn
        with reading.shared(now.service, identifier):
            following = now.service.turns.live(identifier, seen=seen, wait_seconds=_PAUSE_SECONDS)
        if following is None or following.number != seen.number:
            ended = reading.transcript(now.service, identifier, 1).turns[-1]
            answer.show(ended.answer_text, is_whole=True)
            redraw.ask(redraw.stale_parts())
            return
        turn = following
        if _calls(turn) != _calls(seen) or _thoughts_label(now.words, turn) != label:
            break
        began = time.monotonic()
        if thoughts is not None:
            thoughts.show(turn.thoughts)
        answer.show(turn.text)
        if _phase_key(turn) != _phase_key(seen):
            line.html(_phase(now.words, turn))
            if parts := redraw.stale_parts():  # a fold is finished
                redraw.ask(parts)
                break
        # No pause after the first delta, which may be half a word.
        if turn != seen and (seen.text or seen.thoughts or seen.steps):
            time.sleep(max(_DRAW_SECONDS, time.monotonic() - began))  # drawing a very long answer takes longer
    delivery.draw_next()


def _calls(turn: LiveTurn) -> list[ToolStep]:
    return [replace(step, progress="") for step in turn.steps]


def _phase_key(turn: LiveTurn) -> tuple[object, ...]:
    """Returns what the phase's line depends on; the style sheet counts its seconds."""
    return turn.stop_requested, turn.phase, turn.phase_turns, turn.phase_percent, turn.phase_since, _progress(turn)


def _progress(turn: LiveTurn) -> str:
    return next((step.progress for step in reversed(turn.steps) if step.progress and step.status == "running"), "")


def _phase(words: Words, turn: LiveTurn) -> str:
    if turn.stop_requested:
        return _status(f"{words.stopping}…")
    if turn.phase == "thinking":
        return f'<p class="phase thinking" role="status">{words.thinking}</p>'  # seen as the line of the thoughts
    if turn.phase == "answering":
        return _status(words.phase_answering)
    seconds, retry = time.monotonic() - turn.phase_since, turn.retry if turn.phase == "waiting" else None
    if retry is not None and retry.wait_seconds:
        left = _seconds(words, max(0, math.ceil(retry.wait_seconds - seconds)), "down")
        reason = words.retry_reasons.get(retry.code, words.retry_reasons["provider"])
        return _status(words.phase_retry.format(reason=reason, time=left, attempt=_attempt(words, retry)))
    texts = {
        "folding": words.phase_folding.format(turns=format_turns(turn.phase_turns or (0,))),
        "reading": words.phase_reading.format(percent=turn.phase_percent),
        "tool": html.escape(_progress(turn)) or words.phase_tool,
    }
    since, begun = "", int(seconds)
    if turn.phase_since:
        since = f'<span class="since" style="--since: -{begun}s"> · {_seconds(words, begun, "up")}</span>'
    attempt = f" {_attempt(words, retry)}" if retry is not None else ""
    return _status(f"{texts.get(turn.phase, words.phase_waiting)}{since}{attempt}")


def _seconds(words: Words, seconds: int, way: str) -> str:
    """Returns seconds that the style sheet counts on; a screen reader is told the number once."""
    style = f"--from: {seconds}; --since: -{seconds}s"
    return f'<i class="seconds {way}" style="{style}">{seconds}</i>{words.thinking_unit}'


def _attempt(words: Words, retry: CallRetried) -> str:
    return words.phase_attempt.format(attempt=retry.attempt, most=retry.most_attempts)


def _status(text: str) -> str:
    return f'<p class="phase" role="status"><span>{text}</span></p>'
