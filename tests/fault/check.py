"""What must hold after any fault: nothing acknowledged is lost, doubled or hidden, and the files are sound."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from langchain_core.messages.utils import convert_to_openai_messages

from graph.service import open_service
from graph.value.event import TurnFinished
from tests.fake.body import faults, summaries
from tests.fake.rows import read_rows
from tests.fault.child import CALLS, fault_settings, question
from tests.fault.location import damaged_files
from tests.fault.mark import Silent
from tests.fault.model import WorkingChat, working_models, working_tools

_ALL: Final = 1_000_000


@dataclass
class Ledger:
    """What users of one folder were told: by session, the turn of each acknowledged message, and answers shown.

    Attributes:
        wrong: What users were told that can't be right.
    """

    acknowledged: dict[str, dict[str, int]] = field(default_factory=dict)
    shown: dict[str, dict[int, str]] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def acknowledge(self, session_id: str, message_id: str, number: int) -> None:
        known = self.acknowledged.setdefault(session_id, {})
        if known.setdefault(message_id, number) != number:
            self.wrong.append(f"{message_id} was turn {known[message_id]} and is turn {number} now")

    def show(self, session_id: str, number: int, message_id: str) -> None:
        self.shown.setdefault(session_id, {})[number] = message_id


def check_folder(folder: Path, ledger: Ledger) -> list[str]:
    """Looks at the files themselves, then has one more turn in every session; returns all that is wrong."""
    wrong = ledger.wrong + [f"{name}: damaged" for name in damaged_files(folder)]
    calls = folder / CALLS
    made = Counter(calls.read_text(encoding="utf-8").split() if calls.exists() else ())
    wrong += [f"the call of {message_id} was made {times} times" for message_id, times in made.items() if times > 1]
    for session_id, messages in ledger.acknowledged.items():
        wrong += check_rows(folder, session_id, messages, ledger.shown.get(session_id, {}))
    return wrong + _check_next_turns(folder, ledger)


def check_rows(folder: Path, session_id: str, messages: Mapping[str, int], shown: Mapping[int, str]) -> list[str]:
    """Looks at the rows of a session, past all of the product's code."""

    def rows(query: str) -> list[Any]:
        return read_rows(settings, query, session_id)

    settings, wrong = fault_settings(folder), list[str]()
    said = Counter(row[0] for row in rows("SELECT message_id FROM message WHERE role = 'human' AND session_id = ?"))
    turns = rows("SELECT number, user_message_id FROM turn WHERE session_id = ? ORDER BY number")
    rows_by_position = rows("SELECT position, turn FROM message WHERE session_id = ? ORDER BY position")
    answers = dict(rows("SELECT message_id, turn FROM message WHERE role = 'ai' AND session_id = ?"))
    counted = rows("SELECT turn_count FROM session WHERE session_id = ?")
    by_number = dict(turns)
    wrong += [f"{session_id}: {message_id} lost" for message_id in messages if said[message_id] == 0]
    wrong += [f"{session_id}: {message_id} doubled" for message_id, times in said.items() if times > 1]
    wrong += [
        f"{session_id}: {name} is not turn {number}"
        for name, number in messages.items()
        if by_number.get(number) != name
    ]
    wrong += [
        f"{session_id}: answer of turn {number} lost" for number, name in shown.items() if answers.get(name) != number
    ]
    if len(set(by_number.values())) != len(turns):
        wrong.append(f"{session_id}: one message in two turns")
    if [number for number, _ in turns] != list(range(1, len(turns) + 1)) or counted != [(len(turns),)]:
        wrong.append(f"{session_id}: turn numbers with a gap")
    if [position for position, _ in rows_by_position] != list(range(1, len(rows_by_position) + 1)):
        wrong.append(f"{session_id}: positions with a gap")
    if rows_by_position != sorted(rows_by_position, key=lambda entry: entry[1]):
        wrong.append(f"{session_id}: turns out of order")
    return wrong


def _check_next_turns(folder: Path, ledger: Ledger) -> list[str]:
    wrong: list[str] = []
    marker = Silent()
    model = WorkingChat(marker, pause_seconds=0)
    opened = open_service(
        fault_settings(folder), models=working_models(marker, chat=model), tools=working_tools(marker)
    )
    with opened as service:
        for session_id, messages in ledger.acknowledged.items():
            number = service.turns.send(
                session_id, question("check-2"), message_id=f"check-{session_id}-2", wait_seconds=60
            )
            last = list(service.turns.follow(session_id, timeout_seconds=60))[-1]
            if not isinstance(last, TurnFinished):
                wrong.append(f"{session_id}: the next turn ended as {last}")
            turns = service.turns.transcript(session_id, last=_ALL).turns
            texts = {turn.number: turn.user_text for turn in turns}
            wrong += [
                f"{session_id}: {message_id} hidden"
                for message_id, turn in messages.items()
                if texts.get(turn) != question(message_id)
            ]
            wrong += [f"{session_id}: turn {turn.number} never ended" for turn in turns if turn.status == "running"]
            wrong += [
                f"{session_id}: the shown answer of turn {turn.number} is {turn.status}"
                for turn in turns
                if turn.number in ledger.shown.get(session_id, {}) and turn.status != "finished"
            ]
            wrong += [
                f"{session_id}: {fault}"
                for fault in check_input(convert_to_openai_messages(model.inputs[-1]), texts, number)
            ]
    return wrong


def check_input(sent: Sequence[Any], texts: Mapping[int, str], number: int) -> list[str]:
    """Every turn must be in the input once: by a summary, or word for word."""
    wrong = faults(sent)
    covered = [turn for first, last in summaries({"messages": sent}) for turn in range(first, last + 1)]
    raw = [message["content"] for message in sent if message["role"] == "user"]
    expected = [texts[turn] for turn in range(len(covered) + 1, number + 1)]
    if covered != list(range(1, len(covered) + 1)):
        wrong.append(f"summaries of {covered}")
    if raw != expected:
        wrong.append(f"{len(raw)} raw turns in place of {len(expected)}")
    return wrong
