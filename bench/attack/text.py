"""Attacks on time: ordinary text that some pattern may take far too long for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import httpx2

from bench.attack.run import Attempt
from bench.attack.server import ATTACKER
from bench.attack.watch import cpu_seconds

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MESSAGE_CHARS = 199_000  # just below what a message may have
_SHORT_CHARS = 20_000
_FOLDED_TURNS = 4  # the first three are folded before the fourth
_NEXT = "And what now?"


def _filled(begin: str, loop: str, end: str = "") -> Callable[[int], str]:
    return lambda size: begin + loop * ((size - len(begin) - len(end)) // len(loop)) + end


# Each is what a loop of some pattern takes, and an end that it fails at.
TEXTS = {
    "quotes": _filled("a", "“", "b"),
    "brackets": _filled("", "「"),
    "lines": _filled("a", "\n", "b"),
    "numbers": _filled("", "293,"),
    "spaces": _filled("", " ", "word"),
    "tabs": _filled("1", "\t", "x"),
    "tags": _filled("<", " ", "x"),
    "columns": _filled("", "a\t"),
}
_MARKS = ("`", "[", "(", "*", "_", "|", "$$", "<!--", "> ", "- ", "\\", "a ", "1.", "#", "@a.", "https://a.")
MARKS = {mark: _filled("a", mark, "b") for mark in _MARKS}


def secret_filter(attempt: Attempt) -> str:
    """86 characters that look like a secret's name and value, in a chat that works in a project."""
    said = f"token={(_LETTERS * 4)[:80]}A"
    with attempt.program(ATTACKER) as program:
        body = {"message": said, "options": {"project_root": str(attempt.target.folder / "project")}}
        answer = program.post("/chat", json=body)
    attempt.gauge.hold(1)  # what it notes of the turn, it notes behind the answer
    return f"/chat {said[:12]}…{said[-2:]} in a project, {len(said)} characters: {answer.status_code}"


def all_texts(attempt: Attempt) -> str:
    """All texts, each as two turns."""
    return _said(attempt, TEXTS.values(), _SHORT_CHARS)


def all_marks(attempt: Attempt) -> str:
    """One mark after another, of those that patterns look for."""
    return _said(attempt, MARKS.values(), attempt.many(_SHORT_CHARS, _MESSAGE_CHARS))


def one_text(name: str) -> Callable[[Attempt], str]:
    """Returns the attack with one text."""
    return lambda attempt: _said(attempt, [TEXTS[name]], _MESSAGE_CHARS)


def _said(attempt: Attempt, texts: Iterable[Callable[[int], str]], size: int) -> str:
    """Sends texts by both routes, with turns behind each; returns the CPU seconds of the slowest turn."""
    count, costs = 0, []
    with attempt.program(ATTACKER) as program:
        for text in texts:
            count += 1
            costs += [*_say(attempt, program, text(size)), *_complete(attempt, program, text(size))]
    return f"{count} × {size:,} characters by both routes, {len(costs)} turns; most CPU of one {max(costs):.1f} s"


def _say(attempt: Attempt, program: httpx2.Client, said: str) -> Iterator[float]:
    """Sends a text as one message of a session, which is folded three turns later, and asks for its figures."""
    body = {"message": said}
    for _ in range(_FOLDED_TURNS):
        cost, answer = _timed(attempt, partial(program.post, "/chat", json=body))
        yield cost
        if answer.is_error:
            return
        body = {"message": _NEXT, "session_id": answer.headers["x-turnfold-session"]}
    yield _timed(attempt, partial(program.get, f"/sessions/{body['session_id']}/statistics"))[0]


def _complete(attempt: Attempt, program: httpx2.Client, said: str) -> Iterator[float]:
    """Sends a text as a whole chat, then once more with the answer and a question behind it."""
    chat: list[dict[str, Any]] = [{"role": "user", "content": said}]
    for _ in range(2):
        ask = partial(program.post, "/v1/chat/completions", json={"model": "turnfold", "messages": chat})
        cost, answer = _timed(attempt, ask)
        yield cost
        if answer.is_error:
            return
        reply = answer.json()["choices"][0]["message"]["content"]
        chat += [{"role": "assistant", "content": reply}, {"role": "user", "content": _NEXT}]


def _timed(attempt: Attempt, ask: Callable[[], httpx2.Response]) -> tuple[float, httpx2.Response]:
    """Returns how long the server worked for an answer, all else that it did meanwhile included, and the answer."""
    pid = attempt.target.process.pid
    before = cpu_seconds(pid)
    answer = ask()
    return cpu_seconds(pid) - before, answer
