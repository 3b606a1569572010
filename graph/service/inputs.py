"""Builds what the calls of a turn were sent again, from the tables alone, and checks it by the stored hash."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, get_args

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.context_block import BlockKind, ContextBlock
from graph.core.manifest import Block
from graph.core.model_input import CONTEXT, CUT, SHORTENED, ModelInput, SystemPart, stored_system
from graph.core.turn import text_of
from graph.error import NotFoundError
from graph.input_view import BlockRole, CallInput, InputBlock
from graph.record import HistoryEntry, to_entry
from graph.service.access import SessionAccess
from graph.store.call import ModelCall
from graph.store.stores import Stores
from graph.strategy.base import Strategy
from graph.strategy.shrink import shorten_verbatim
from prompt.system.chat import rounds_note
from prompt.system.framing import CONTINUED, Language, note_cut
from prompt.tool import reasoning

_ROLES: Final[dict[str, BlockRole]] = {"human": "user", "ai": "assistant", "tool": "tool"}
_BLOCK_KINDS: Final[dict[str, BlockKind]] = {kind: kind for kind in get_args(BlockKind)}
_CONTINUED: Final = "continued-"
# None for what no table has.
_Part = SystemPart | ContextBlock | HistoryEntry | AnyMessage | None


def read_inputs(access: SessionAccess, session_id: str, turn: int) -> tuple[CallInput, ...]:
    """Returns what each call of a turn was sent, earlier attempts and the calls of tools included.

    Raises:
        NotFoundError: There is no such session or turn.
        DatabaseError: The list of what was sent can't be read.
    """
    session = access.own(session_id)
    access.stores.turns.get(session_id, turn)
    # A session's strategy may have changed since; the hash tells which one it was.
    strategies = dict.fromkeys((access.strategies.of(session.strategy), *access.strategies.by_name.values()))
    calls = access.stores.calls.of_turn(session_id, turn)
    return tuple(_read(access.stores, call, tuple(strategies)) for call in calls)


def _read(stores: Stores, call: ModelCall, strategies: Sequence[Strategy]) -> CallInput:
    if call.kind == "reasoning":
        asked = _asked_by_tool(stores, call)
        is_verified = asked is not None and asked.digest() == call.input_hash
        texts = [None, None] if asked is None else [message.text for message in asked.messages]
        blocks = [InputBlock(*block[:3], "", block[3], text) for block, text in zip(call.manifest, texts, strict=True)]
    else:
        parts = _parts(stores, call)
        is_verified = _is_as_sent(call, parts, strategies)
        language = parts[0].language if isinstance(parts[0], SystemPart) else "ko"
        blocks = [_block(block, part, language) for block, part in zip(call.manifest, parts, strict=True)]
    return CallInput(
        attempt=call.attempt,
        ordinal=call.ordinal,
        kind=call.kind,
        model=call.model,
        is_verified=is_verified,
        sent_tokens=call.sent_tokens,
        full_tokens=call.full_tokens,
        usage_input_tokens=call.usage_input_tokens,
        usage_output_tokens=call.usage_output_tokens,
        usage_cached_tokens=call.usage_cached_tokens,
        seconds=call.seconds,
        error_code=call.error_code,
        created_at=call.created_at,
        blocks=tuple(blocks),
    )


def _is_as_sent(call: ModelCall, parts: Sequence[_Part], strategies: Iterable[Strategy]) -> bool:
    """Whether one of the strategies assembles the bytes that were sent of these parts."""
    head = parts[0]
    if not isinstance(head, SystemPart):
        return False
    system, history, said = _sorted(head, parts[1:])
    ends_in_result = bool(said) and isinstance(said[-1], ToolMessage)
    for strategy in strategies:
        for note in ("", rounds_note(system.language)) if ends_in_result else ("",):
            if strategy.assemble(replace(system, note=note), history, said).digest() == call.input_hash:
                return True
    return False


def _parts(stores: Stores, call: ModelCall) -> list[_Part]:
    """Returns what the tables have for each block of a call's list, which begins with the system prompt."""
    _, name, version, _ = call.manifest[0]
    try:
        system: SystemPart | None = stored_system(name, version)
    except KeyError:  # of a version that was never released
        system = None
    language = system.language if system else "ko"
    return [system, *(_part(stores, call.session_id, block, language) for block in call.manifest[1:])]


def _part(stores: Stores, session_id: str, block: Block, language: Language) -> _Part:
    kind, name, version, _ = block
    try:
        if kind == CONTEXT:
            return stores.blocks.get(session_id, _BLOCK_KINDS[name], version)
        if kind in ("record", SHORTENED):
            entry = to_entry(stores.records.get(session_id, name))
            return shorten_verbatim([entry], language)[0] if kind == SHORTENED else entry
        if kind in ("message", CUT) and not name.startswith(_CONTINUED):
            message = stores.archive.get(session_id, name).message
            if kind == CUT:
                shorter = note_cut(text_of(message), version, why="fit the window", language=language)
                message = message.model_copy(update={"content": shorter})
            return message
    except (NotFoundError, KeyError):  # deleted by hand, or of a later version
        pass
    return None


def _sorted(system: SystemPart, parts: Sequence[_Part]) -> tuple[SystemPart, list[HistoryEntry], list[AnyMessage]]:
    """Returns what a strategy assembles an input of."""
    history: list[HistoryEntry] = []
    said: list[AnyMessage] = []
    for part in parts:
        match part:
            case ContextBlock(kind="front"):
                system = replace(system, front=part)
            case ContextBlock(kind="client"):
                system = replace(system, client=part)
            case ContextBlock():
                system = replace(system, volatile=part)
            case dict():
                history.append(part)
            case HumanMessage() | AIMessage() | ToolMessage():
                said.append(part)
    return system, history, said


def _block(block: Block, part: _Part, language: Language) -> InputBlock:
    """Returns a block with its words: those of a record without its label, as the strategies differ there."""
    kind, name, version, tokens = block
    role: BlockRole = ""
    text: str | None = None
    if isinstance(part, SystemPart | ContextBlock):
        text = part.text
    elif isinstance(part, dict):
        text = part["summary"]
    elif part is not None:
        role, text = _ROLES.get(part.type, ""), _words(part)
    elif name.startswith(_CONTINUED):
        role, text = "user", CONTINUED[language]
    return InputBlock(kind, name, version, role, tokens, text)


def _words(message: AnyMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [f"(tool call: {call['name']} {json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    return "\n".join(line for line in (text_of(message), *called) if line)


def _asked_by_tool(stores: Stores, call: ModelCall) -> ModelInput | None:
    """Returns what the tool `reasoning` asked; None if the call that it did so for isn't archived."""
    call_id = call.manifest[-1][1]
    said = stores.archive.all_of_turn(call.session_id, call.turn)
    answers = [entry.message for entry in said if isinstance(entry.message, AIMessage)]
    asked = next((made for answer in answers for made in answer.tool_calls if made["id"] == call_id), None)
    if asked is None:
        return None
    prompt = reasoning.get_prompt(str(asked["args"].get("material")), str(asked["args"].get("question")))
    return ModelInput((SystemMessage(reasoning.SYSTEM), HumanMessage(prompt)), ())
