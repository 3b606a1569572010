"""Finds where the chats of bfcl-memory say the answers to its questions."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import HumanMessage

_QUOTES: Final = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "-": " ", "–": " ", "—": " "})
_TIME: Final = re.compile(r"0?(\d{1,2}):(\d\d) ([ap])m", re.IGNORECASE)
_SENTENCE_END: Final = re.compile(r"[.!?][\"')]*\s")
_WORD: Final = re.compile(r"\w+")
_NEAR_CHARS: Final = 120
_LEAST_OVERLAP: Final = 0.5
_BEFORE: Final = re.compile(r"(?:\S+ ){0,2}\S*$")
_AFTER: Final = re.compile(r"\S*(?: \S+){0,2}")


@dataclass(frozen=True)
class Question:
    """A question about a session.

    Attributes:
        place: The answer where the session says it, with up to two words of its sentence on each side, normalised.
        is_for_tuning: Whether it is of the half (by a hash of its id) that weights may be tuned on.
    """

    id: str
    session: str
    place: str
    is_for_tuning: bool


def read_sessions(folder: Path) -> dict[str, list[HumanMessage]]:
    """Returns the user's turns by persona: all chats of a persona, in their order, are one session.

    Raises:
        FileNotFoundError: The chats aren't there.
    """
    sessions: dict[str, list[HumanMessage]] = {}
    chats = folder / "memory_prereq_conversation"
    for path in sorted(chats.glob("memory_*.json")):
        turns = [said[0]["content"] for chat in sorted(_lines(path), key=_chat_number) for said in chat["question"]]
        sessions[path.stem.removeprefix("memory_")] = [HumanMessage(text) for text in turns]
    if not sessions:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(chats))
    return sessions


def read_questions(folder: Path, sessions: Mapping[str, Sequence[HumanMessage]]) -> tuple[list[Question], int]:
    """Returns the questions whose answer stands literally in the session, and how many don't.

    Raises:
        FileNotFoundError: The answers aren't there.
    """
    questions: list[Question] = []
    unplaced = 0
    for entry in _lines(folder / "possible_answer_memory.json"):
        session = entry["id"].split("-")[1]
        texts = [normalise(message.text) for message in sessions[session]]
        place = find_place(texts, entry["ground_truth"], str(entry["source"]))
        if place:
            questions.append(Question(entry["id"], session, place, is_for_tuning(entry["id"])))
        else:
            unplaced += 1
    return questions, unplaced


def read_asked(folder: Path) -> dict[str, str]:
    """Returns the words of each question by its id.

    Raises:
        FileNotFoundError: The questions aren't there.
    """
    return {entry["id"]: entry["question"][0][0]["content"] for entry in _lines(folder / "BFCL_v4_memory.json")}


def is_for_tuning(question_id: str) -> bool:
    """Whether a question is of the half that weights may be tuned on."""
    return hashlib.sha256(question_id.encode()).digest()[0] % 2 == 0


def normalise(text: str) -> str:
    """Returns a text in lower case with plain quotes, no hyphens or dashes, and single spaces."""
    return " ".join(text.translate(_QUOTES).split()).casefold()


def find_place(texts: Sequence[str], answers: Sequence[str], source: str) -> str:
    """Returns the place of the answer that agrees most with the source's words; "" if none has half of them near.

    Args:
        texts: The session's normalised turns.
        answers: Any of these is right.
        source: The quotation that the answer was taken from, often shortened or joined.
    """
    wanted = set(_WORD.findall(normalise(source)))
    best, best_overlap = "", _LEAST_OVERLAP
    for text in texts:
        for begin, end in _occurrences(text, answers):
            near = text[max(0, begin - _NEAR_CHARS) : end + _NEAR_CHARS]
            overlap = len(wanted & set(_WORD.findall(near))) / max(1, min(len(wanted), len(set(_WORD.findall(near)))))
            if overlap > best_overlap:
                best, best_overlap = _with_neighbours(text, begin, end), overlap
    return best


def is_kept(place: str, shorter: str) -> bool:
    """Whether a text, normalised, still has the answer with the words around it."""
    return re.search(rf"(?<!\w){re.escape(place)}", shorter) is not None


def _occurrences(text: str, answers: Sequence[str]) -> Iterator[tuple[int, int]]:
    for answer in answers:
        plain = normalise(answer)
        forms = [plain]
        if time := _TIME.fullmatch(plain):
            hour, minute, half = time.groups()
            forms += [f"{hour}:{minute} {half}.m", f"{hour}:{minute} {half}m", f"{hour}:{minute}"]
            forms += [f"{hour} {half}m"] if minute == "00" else []
        for form in forms:
            end = r"(?!\d)(?![.:]\d)" if form[-1].isdigit() else ""
            for found in re.finditer(rf"(?<!\w)(?<!\d\.){re.escape(form)}{end}", text):
                yield found.span()


def _with_neighbours(text: str, begin: int, end: int) -> str:
    """Returns the text from up to two words before the answer to two words behind it, within its sentence."""
    start = max((stop.end() for stop in _SENTENCE_END.finditer(text, 0, begin)), default=0)
    following = _SENTENCE_END.search(text, end)
    stop = following.start() if following else len(text.rstrip(".!?"))
    before = _BEFORE.search(text, start, begin)
    after = _AFTER.match(text, end, stop)
    return text[before.start() if before else begin : after.end() if after else end].strip()


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _chat_number(chat: Mapping[str, Any]) -> int:
    return int(re.search(r"\d+", chat["id"])[0])  # type: ignore[index]  # each id has its number
