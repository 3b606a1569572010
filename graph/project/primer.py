"""Chooses what a new session is told of a project's memory, within its budget."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from graph.core.extract import cut_at_word
from graph.core.token import estimate_tokens
from graph.project.context_file import SUMMARY_CHARS_ENGLISH, Message
from graph.project.primed import Primed, PrimedLine, render_line
from graph.project.project_state import ProjectState
from graph.project.roll_up import WINDOW_KEEP, leaving_count, picked_summary
from graph.project.secret import mask_secrets
from prompt.project import memory as words
from prompt.system.framing import Language

BUDGET_TOKENS: Final = 1_600
OLD_AFTER: Final = timedelta(days=14)
_TITLE_CHARS: Final = 120
_DECISION_CHARS: Final = 300
_PATH_CHARS: Final = 160
_FILES: Final = 8
_MESSAGE_CHARS: Final = 4_000
_SPEAKERS: Final = ("user", "assistant")
_CUT_SHARE: Final = 0.85
# Labels, separators and the count of older decisions.
_LABELS_TOKENS: Final = 60
# Joiners shape letters and emoji; all else that can't be seen may carry words that only a model reads.
_JOINERS: Final = "\u200c\u200d"
_HIDDEN: Final = {"Cc", "Cf", "Co", "Cs", "Cn"}
_LINES: Final = re.compile(r"\r\n?|[\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def prime(state: ProjectState, now: datetime, is_there: Callable[[str], bool], language: Language) -> Primed:
    """Chooses the lines: plan, task, decisions in force, open files, summary, and last the recent dialog.

    The dialog has at most 800 tokens of the 1,600; older messages that wait for a summary are picked from. If all that
    is too much, the oldest decisions become a count, then the oldest files and messages are left out.

    Args:
        state: Both files.
        now: What ages are counted to.
        is_there: Whether an open file still is.
        language: That of the session.
    """
    dialog = _recent(state.context.conversation.recent_window, language)
    decisions, files, fixed = _decisions(state), _files(state, is_there), _fixed(state)
    room = BUDGET_TOKENS - _cost([words.NOTE[language]]) - _tokens([*fixed, *dialog], language) - _LABELS_TOKENS
    files = _newest(files, room, language, least=1)
    decisions_shown = _newest(decisions, room - _tokens(files, language), language, least=1)
    over = _tokens([*decisions_shown, *files], language) - room
    while over > 0 and dialog:
        over -= _tokens(dialog[:1], language)
        dialog = dialog[1:]
    head = [line for line in fixed if line.label != words.SUMMARY]
    summary = [line for line in fixed if line.label == words.SUMMARY]
    lines = [*head, *decisions_shown, *files, *summary, *dialog]
    aged = tuple(replace(line, is_old=line.at is not None and now - line.at > OLD_AFTER) for line in lines)
    return Primed(aged, len(decisions) - len(decisions_shown), language)


def _fixed(state: ProjectState) -> list[PrimedLine]:
    """Returns what always fits: project, active plan, active task and summary, if they are there."""
    memory, talk, workflow = state.context.memory, state.context.conversation, state.workflow
    plan, task = workflow.find_plan(memory.active_plan_id), workflow.find_task(memory.active_task_id)
    lines = [PrimedLine(words.PROJECT, _line(workflow.project_name, _TITLE_CHARS), workflow.updated_at)]
    if plan is not None:
        lines.append(PrimedLine(words.ACTIVE_PLAN, _line(plan.title, _TITLE_CHARS), plan.created_at, plan.id))
    if task is not None:
        at = task[1].created_at
        lines.append(PrimedLine(words.ACTIVE_TASK, _line(task[1].title, _TITLE_CHARS), at, task[1].id))
    summary, at = talk.running_summary, talk.summary_at or state.context.updated_at
    if waiting := leaving_count(talk.recent_window):  # for a summary that isn't made yet
        summary, at = picked_summary(summary, talk.recent_window[:waiting]), state.context.updated_at
    lines.append(PrimedLine(words.SUMMARY, _line(summary, SUMMARY_CHARS_ENGLISH), at))
    return _said(lines)


def _decisions(state: ProjectState) -> list[PrimedLine]:
    return _said(
        PrimedLine(words.DECISIONS, _line(each.text, _DECISION_CHARS), each.date, each.id)
        for each in state.context.memory.decisions
        if each.in_force
    )


def _files(state: ProjectState, is_there: Callable[[str], bool]) -> list[PrimedLine]:
    memory = state.context.memory
    return _said(
        PrimedLine(
            words.OPEN_FILES,
            _line(path, _PATH_CHARS),
            memory.file_times.get(path, state.context.updated_at),
            path,
            is_gone=not is_there(path),
        )
        for path in memory.open_files[-_FILES:]
    )


def _said(lines: Iterable[PrimedLine]) -> list[PrimedLine]:
    return [line for line in lines if line.text]


def _recent(window: Sequence[Message], language: Language) -> list[PrimedLine]:
    """Returns the newest messages that fit into 800 tokens; the newest one is cut if it doesn't."""
    chosen: list[PrimedLine] = []
    left = WINDOW_KEEP
    for message in reversed([each for each in window if each.role in _SPEAKERS]):
        line = PrimedLine(
            words.RECENT_DIALOG, _paragraph(message.content), message.ts, message.id, message.role.upper()
        )
        while not chosen and _tokens([line], language) > left:
            line = replace(line, text=cut_at_word(line.text, int(len(line.text) * _CUT_SHARE)))
        left -= _tokens([line], language)
        if left < 0:
            break
        chosen.append(line)
    return chosen[::-1]


def _newest(lines: list[PrimedLine], room: int, language: Language, *, least: int) -> list[PrimedLine]:
    """Returns the newest lines that fit, at least so many."""
    shown = 0
    for line in reversed(lines):
        room -= _tokens([line], language)
        if room < 0 and shown >= least:
            break
        shown += 1
    return lines[len(lines) - shown :]


def _tokens(lines: Iterable[PrimedLine], language: Language) -> int:
    """Returns what the lines cost, rounded up each, whatever marks they get."""
    return _cost(render_line(replace(line, is_old=True), language) for line in lines)


def _cost(texts: Iterable[str]) -> int:
    return sum(estimate_tokens(text) + 1 for text in texts)


def _line(text: str, max_chars: int) -> str:
    """Returns a text as one line without secrets and hidden characters."""
    return cut_at_word(" ".join(mask_secrets(_visible(text)).split()), max_chars)


def _paragraph(text: str) -> str:
    """Returns a text whose further lines are indented, so that none of them looks like a label."""
    return cut_at_word("\n  ".join(_LINES.split(mask_secrets(_visible(text)))), _MESSAGE_CHARS)


def _visible(text: str) -> str:
    return "".join(
        sign for sign in text if sign.isspace() or sign in _JOINERS or unicodedata.category(sign) not in _HIDDEN
    )
