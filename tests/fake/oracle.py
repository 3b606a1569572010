"""Checks after every step that each live message is sent, in exactly one active record, or before the last reset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

from langchain_core.messages import AnyMessage, ToolMessage
from langchain_core.messages.utils import convert_to_openai_messages

from graph.server.newest import Newest
from graph.server.settings import Settings
from graph.store.stores import open_checkpoints
from prompt.tool.words import RECALL_WARNING
from tests.fake.body import content_of, faults
from tests.fake.chat import Chat

_LIVE: Final = """
    SELECT message.position, message.message_id, message.turn, message.role, message.content
    FROM message JOIN turn ON turn.session_id = message.session_id AND turn.number = message.turn
    WHERE (message.attempt = turn.attempt OR message.role = 'human') AND message.session_id = ?
    ORDER BY message.position
"""
_ACTIVE: Final = """
    SELECT from_position, to_position, summary FROM record JOIN session USING (session_id)
    WHERE status = 'COMPLETED' AND adopted_at IS NOT NULL AND superseded_by IS NULL
    AND from_position > context_from_position AND session_id = ? ORDER BY from_position
"""
_LABEL_CHARS: Final = 40


@dataclass(frozen=True)
class Truth:
    """Live messages and active records of one session, read without the product's code."""

    live: Sequence[tuple[int, str, int, str, str]]
    active: Sequence[tuple[int, int, str]]

    def is_covered(self, position: int) -> bool:
        return any(first <= position <= last for first, last, _ in self.active)


def read_truth(chat: Chat) -> Truth:
    live = [(*turn_key, _words_of(content)) for *turn_key, content in chat.rows(_LIVE, chat.session_id)]
    return Truth(live, chat.rows(_ACTIVE, chat.session_id))


def _words_of(content: str) -> str:
    """What a message says: its text alone, or one of its fields."""
    data = json.loads(content)
    return data if isinstance(data, str) else data.get("content", "")


def check_cover(truth: Truth, started: int) -> None:
    """No message stands in two active records, none of a later record before one of an earlier, and no hole is left."""
    ends = [end for first, last, _ in truth.active for end in (first, last)]
    assert ends == sorted(ends), truth.active
    assert len(set(ends[1:-1:2]) & set(ends[2::2])) == 0, truth.active
    counted = [(position, truth.is_covered(position)) for position, _, turn, _, _ in truth.live if turn > started]
    flags = [is_covered for _, is_covered in counted]
    assert flags == sorted(flags, reverse=True), f"a hole in the coverage: {counted} {truth.active}"


def check_state(chat: Chat) -> None:
    """What the service knows of the session, carried on by its turns, is what its tables say."""
    stores = chat.service._engine.stores.chat  # noqa: SLF001  # nobody but a test asks for both
    with stores.database.reading():  # of one moment: a title may come at any
        assert stores.state(chat.session_id) == replace(stores, _states=Newest(1)).state(chat.session_id)


def check_request(sent: Sequence[AnyMessage], question: str) -> None:
    """A provider accepts it, and it ends with the open turn."""
    messages = convert_to_openai_messages(list(sent))
    assert faults(messages) == []
    last = sent[-1]
    asked = [content_of(message) for message in messages if message["role"] == "user"]
    assert question in asked[-1], (question, asked[-1])
    assert isinstance(last, ToolMessage) or question in content_of(messages[-1])


def check_context(sent: Sequence[AnyMessage], *, front: str, volatile: str) -> None:
    """The front stands once in the system prompt, the block of the turn once before the user's words, and no other."""
    prompt, *said = (content_of(message) for message in convert_to_openai_messages(list(sent)))
    assert prompt.count("## 영구 컨텍스트") == bool(front)
    assert f"\n\n{front}\n" in f"{prompt}\n" or not front
    assert sum(text.count("## 휘발성 컨텍스트") for text in said) == bool(volatile)
    asked = [text for text, message in zip(said, sent[1:], strict=True) if message.type == "human"][-1]
    _, found, behind = asked.partition(f"{volatile}\n\n")
    between, mark, _ = behind.partition("[CURRENT MESSAGE]\n")
    # A model that takes no tools has the folded turns that match looked up in between.
    is_looked_up = between.startswith(tuple(RECALL_WARNING.values()))
    assert (found and mark and (not between or is_looked_up)) or not volatile


@dataclass(frozen=True)
class Span:
    """The turns required in the newest request of a turn.

    `started` is the last turn before a reset, 0 for none; `may_leave_out` if the model's window may lack room.
    """

    turn: int
    started: int
    window_turns: int | None
    may_leave_out: bool


def check_sent(truth: Truth, sent: Sequence[AnyMessage], span: Span) -> None:
    """The newest request of a turn has every live message of its span, raw or by its record; `truth` is of after it."""
    turn, window_turns = span.turn, span.window_turns
    ids = {str(message.id) for message in sent}
    told = "\n".join(content_of(message) for message in convert_to_openai_messages(list(sent)))
    first = span.started + 1 if window_turns is None else max(span.started + 1, turn - window_turns)
    if window_turns is not None and span.may_leave_out:
        first = max(first, min((number for _, message_id, number, *_ in truth.live if message_id in ids), default=turn))
    for position, message_id, number, role, words in truth.live:
        is_question = number == turn and role == "human"
        if not first <= number < turn and not is_question:
            continue
        is_raw = message_id in ids or (bool(words.strip()) and role != "tool" and words in told)
        if window_turns is None and truth.is_covered(position):
            assert message_id not in ids, f"{message_id} is sent beside its record"
        elif role != "tool" and words.strip():
            assert is_raw, f"position {position} of turn {number} is neither sent nor in a record: {words[:60]}"
    if window_turns is None:
        for _, _, summary in truth.active:
            assert summary.splitlines()[0][:_LABEL_CHARS] in told, f"a record isn't sent: {summary[:60]}"


def state_ids(settings: Settings, session_id: str) -> list[str]:
    """The ids of the messages that graph state holds."""
    with closing(open_checkpoints(settings)) as checkpoints, checkpoints.saver() as saver:
        stored = saver.get_tuple({"configurable": {"thread_id": session_id}})
    return [] if stored is None else [str(message.id) for message in stored.checkpoint["channel_values"]["messages"]]
