"""Reads the public data sets, and fills a real archive with them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.store.database import Database
from graph.store.search import SearchStore
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.transfer import export_lines, import_lines
from prompt.system.framing import note_cut

SOURCES = """\
The bench reads public data sets, each from a folder of its name below the one that --data names:
  bfcl-memory  https://github.com/ShishirPatil/gorilla, berkeley-function-call-leaderboard/bfcl_eval/data:
               BFCL_v4_memory.json, possible_answer/BFCL_v4_memory.json as possible_answer_memory.json,
               memory_prereq_conversation/memory_*.json
  tau-bench    https://github.com/sierra-research/tau-bench, historical_trajectories/gpt-4o-airline.json:
               its first 40 runs as gpt-4o-airline-first40.json
  klue-ner     https://github.com/KLUE-benchmark/KLUE, klue_benchmark/klue-ner-v1.1: klue-ner-v1.1_dev.tsv"""
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "-": " ", "–": " ", "—": " "})
_TIME = re.compile(r"0?(\d{1,2}):(\d\d) ([ap])m", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?][\"')]*\s")
_WORD = re.compile(r"\w+")
# By what tells them, in this order.
_KINDS = {
    "date": re.compile(
        r"\b(?:Jan|Febr)uary\b|\b(?:March|April|May|June|July|August)\b|\b(?:Septem|Octo|Novem|Decem)ber\b|day\b"
        r"|\b(?:19|20)\d\d\b"
    ),
    "number": re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|half|hundred"
        r"|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)\b",
        re.IGNORECASE,
    ),
    "preference": re.compile(r"\b(?:prefer|favou?rite|love|enjoy|hate|dislike|like to|rather)", re.IGNORECASE),
    "name": re.compile(r"^(?:(?:the|of|and|de) |[A-Z][\w.'-]*(?: |$))+$"),
}
_NEAR_CHARS = 120
_LEAST_OVERLAP = 0.5
_BEFORE = re.compile(r"(?:\S+ ){0,2}\S*$")
_AFTER = re.compile(r"\S*(?: \S+){0,2}")
_CUT_CHARS = 700
_OWNER = "bench"
_MOMENT = datetime(2026, 1, 1, tzinfo=UTC).isoformat()


class Question(NamedTuple):
    """A question about a session.

    Attributes:
        asked: The question as it stands.
        answer: The answer where the session says it, with up to two words of its sentence on each side, normalised.
        kind: The class of the answer.
        is_for_tuning: Whether it is of the half (by a hash of its id) that weights may be tuned on.
    """

    asked: str
    session: str
    answer: str
    is_for_tuning: bool
    kind: str


class Marked(NamedTuple):
    """A sentence and the entities marked in it: (tag, index of the first character, index after the last one)."""

    text: str
    entities: tuple[tuple[str, int, int], ...]


def read_sessions(folder: Path) -> dict[str, list[HumanMessage]]:
    """Returns the user's turns of bfcl-memory by persona: all chats of one, in their order, are one session."""
    sessions = {}
    for path in sorted((folder / "bfcl-memory" / "memory_prereq_conversation").glob("memory_*.json")):
        chats = sorted(_lines(path), key=lambda chat: int("".join(re.findall(r"\d+", chat["id"])[:1])))
        turns = [said[0]["content"] for chat in chats for said in chat["question"]]
        sessions[path.stem.removeprefix("memory_")] = [HumanMessage(text) for text in turns]
    return sessions


def read_questions(folder: Path, sessions: Mapping[str, Sequence[HumanMessage]]) -> tuple[list[Question], int]:
    """Returns the questions of bfcl-memory whose answer stands literally in the session, and how many don't."""
    asked = {
        entry["id"]: entry["question"][0][0]["content"] for entry in _lines(folder / "bfcl-memory/BFCL_v4_memory.json")
    }
    questions: list[Question] = []
    unlocated = 0
    for entry in _lines(folder / "bfcl-memory/possible_answer_memory.json"):
        session = entry["id"].split("-")[1]
        texts = [normalise(message.text) for message in sessions[session]]
        answer = _find_answer(texts, entry["ground_truth"], str(entry["source"]))
        is_for_tuning = hashlib.sha256(entry["id"].encode()).digest()[0] % 2 == 0
        if answer:
            kind = _kind_of(entry["ground_truth"][0], str(entry["source"]))
            questions.append(Question(asked[entry["id"]], session, answer, is_for_tuning, kind))
        else:
            unlocated += 1
    return questions, unlocated


def _kind_of(answer: str, source: str) -> str:
    for kind, pattern in _KINDS.items():
        if pattern.search(source if kind == "preference" else answer):
            return kind
    return "other words"


def normalise(text: str) -> str:
    """Returns a text in lower case with plain quotes, no hyphens or dashes, and single spaces."""
    return " ".join(text.translate(_QUOTES).split()).casefold()


def has_answer(text: str, answer: str) -> bool:
    """Whether a text, normalised, has the answer with the words around it."""
    return re.search(rf"(?<!\w){re.escape(answer)}", text) is not None


def _find_answer(texts: Sequence[str], answers: Sequence[str], source: str) -> str:
    """Returns the answer with its neighbours where it agrees most with the source's words; "" if half aren't near.

    Args:
        texts: The session's normalised turns.
        answers: Any of these is right.
        source: The quotation that the answer was taken from, often shortened or joined.
    """
    wanted = set(_WORD.findall(normalise(source)))
    best, best_overlap = "", _LEAST_OVERLAP
    for text in texts:
        for begin, end in _occurrences(text, answers):
            nearby = set(_WORD.findall(text[max(0, begin - _NEAR_CHARS) : end + _NEAR_CHARS]))
            overlap = len(wanted & nearby) / max(1, min(len(wanted), len(nearby)))
            if overlap > best_overlap:
                best, best_overlap = _with_neighbours(text, begin, end), overlap
    return best


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


def read_runs(folder: Path, form: Callable[[Any], str] = json.dumps) -> list[list[AnyMessage]]:
    """Returns the conversations of tau-bench, without system messages; `form` writes the results that are JSON."""
    runs = json.loads((folder / "tau-bench" / "gpt-4o-airline-first40.json").read_text(encoding="utf-8"))
    return [[message for said in run["traj"] for message in _to_messages(said, form)] for run in runs]


def _to_messages(said: Mapping[str, Any], form: Callable[[Any], str]) -> Iterator[AnyMessage]:
    text = said.get("content") or ""
    if said["role"] == "user":
        yield HumanMessage(text)
    elif said["role"] == "tool":
        if form is not json.dumps and text[:1] in ("{", "["):
            text = form(json.loads(text))
        yield ToolMessage(text, tool_call_id=said["tool_call_id"])
    elif said["role"] == "assistant":
        calls = [
            {"id": call["id"], "name": call["function"]["name"], "args": json.loads(call["function"]["arguments"])}
            for call in said.get("tool_calls") or []
        ]
        yield AIMessage(text, tool_calls=calls)


def cut_json(value: object) -> str:
    """Writes JSON of which a server sends the first 700 characters."""
    text = json.dumps(value)
    return note_cut(text, _CUT_CHARS, why="are shown", language="en") if len(text) > _CUT_CHARS else text


def key_lines(value: object) -> str:
    """Writes a line for each value behind its key, as many programs print their results."""
    return "\n".join(_key_lines(value, ""))


def _key_lines(value: Any, indent: str) -> Iterator[str]:
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        mark = f"{key}:" if isinstance(value, dict) else "-"
        if inner and isinstance(inner, dict | list):
            yield f"{indent}{mark}"
            yield from _key_lines(inner, f"{indent}  ")
        else:
            yield f"{indent}{mark} {inner}"


def read_marked(folder: Path) -> list[Marked]:
    """Returns every sentence of klue-ner with its entities; its file has a character and its tag a line."""
    blocks = (folder / "klue-ner" / "klue-ner-v1.1_dev.tsv").read_text(encoding="utf-8").split("\n\n")
    rows = ([line for line in block.split("\n") if line and not line.startswith("##")] for block in blocks)
    return [
        Marked("".join(line[0] for line in lines), tuple(_entities([line[1:].strip() for line in lines])))
        for lines in rows
        if lines
    ]


def _entities(tags: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    start = 0
    for index, tag in enumerate([*tags, "O"]):
        if index and tags[index - 1] != "O" and not tag.startswith("I-"):
            yield tags[index - 1][2:], start, index
        if tag.startswith("B-"):
            start = index


@contextmanager
def search_over(path: Path, sessions: Mapping[str, Sequence[str]]) -> Iterator[SearchStore]:
    """Yields the product's search over a new SQLite file of sessions: by id, what the user says in each turn."""
    with database_over(path, sessions) as database:
        yield SearchStore(database)


@contextmanager
def database_over(path: Path, sessions: Mapping[str, Sequence[str]]) -> Iterator[Database]:
    with closing(open_sqlite(path, busy_timeout_seconds=30)) as database:
        head = next(iter(export_lines(database)))
        import_lines(database, [head, *_export(sessions)], owner=_OWNER)
        yield database


def _export(sessions: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for session_id, texts in sessions.items():
        yield _row("session", session_id, created_at=_MOMENT, updated_at=_MOMENT, compression_rate=0.3,
                   strategy="interval", model="", turn_count=len(texts), title="", title_folded="")  # fmt: skip
        for number, text in enumerate(texts, start=1):
            message_id = f"{session_id}-{number}"
            yield _row("turn", session_id, number=number, attempt=1, status="finished", user_message_id=message_id,
                       model="", is_casual=False, stop_requested=False, error_code="", error_detail="",
                       started_at=_MOMENT, history_tokens=0, partial_text="")  # fmt: skip
            yield _row("message", session_id, position=number, message_id=message_id, turn=number, attempt=1,
                       role="human", chars=len(text), tokens=0, created_at=_MOMENT,
                       content=json.dumps(text, ensure_ascii=False))  # fmt: skip


def _row(table: str, session_id: str, **values: Any) -> str:
    return json.dumps({"table": table, "row": {"session_id": session_id, "owner": _OWNER, **values}})
