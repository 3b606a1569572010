"""Rebuilds what the calls of a turn were sent, from the tables alone, and checks it by the stored hash."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph.core.attached import references_in, shortened_url, with_images
from graph.core.ledger import LEDGER
from graph.core.manifest import Block
from graph.core.model_input import CONTEXT, CUT, SHORTENED, TOOLS, ModelInput, SystemPart, same_blocks, stored_system
from graph.core.open_question import without_answered
from graph.core.pin import PIN, ContextBlock, Pin, cut_at, pin_of, read_name
from graph.core.turn import EMBEDDED_MODEL, labelled, text_of
from graph.model.factory import ChatModels, request_body
from graph.model.tool_choice import NO_TOOL
from graph.service.access import SessionAccess
from graph.store.call import ModelCall
from graph.store.session import SessionRow
from graph.store.stores import ChatStores
from graph.strategy.base import Strategy
from graph.strategy.shrink import shorten_verbatim
from graph.strategy.strategies import Strategies
from graph.tool.registry import KnownTools, Schemas
from graph.value.error import NotFoundError
from graph.value.record import ArchivedMessage, HistoryEntry, LedgerLine, to_entry
from graph.value.view import BlockRole, CallInput, HistoryTurn, InputBlock, SentRequest, ToolSchema
from prompt.system.chat import rounds_note
from prompt.system.framing import CONTINUED, SPEAKER, Language, note_cut
from prompt.tool import words

_ROLES: Final[dict[str, BlockRole]] = {"human": "user", "ai": "assistant", "tool": "tool"}
# Begins the id of the fixed message that stands for the folded beginning of a turn; no table has it.
CONTINUED_ID: Final = "continued-"
# None for what no table has.
Part = SystemPart | ContextBlock | HistoryEntry | LedgerLine | Pin | ArchivedMessage | None
_ALL_TOKENS: Final = 1 << 30


@dataclass(frozen=True)
class Rebuilt:
    """The input of a call, rebuilt from the tables.

    Attributes:
        parts: Stored data of each block; () for a tool call.
        messages: None if too little is stored.
        is_verified: Whether the messages have the recorded hash.
        is_last_round: Whether an answer without tools was demanded.
    """

    parts: Sequence[Part]
    messages: tuple[AnyMessage, ...] | None
    is_verified: bool
    is_last_round: bool = False

    @property
    def language(self) -> Language:
        """The language of the labels, headings and notes."""
        head = self.parts[0] if self.parts else None
        return head.language if isinstance(head, SystemPart) else "ko"


class Inputs:
    """The inputs of model calls of one owner's sessions, rebuilt from the tables.

    Every method raises `NotFoundError` for an unknown session or turn.
    """

    def __init__(
        self, access: SessionAccess, *, models: ChatModels, strategies: Strategies, known_tools: KnownTools
    ) -> None:
        self._access = access
        self._stores = access.stores
        self._models = models
        self._strategies = strategies
        self._known_tools = known_tools

    def called_turns(self, session_id: str) -> tuple[int, ...]:
        """Returns the turns with model calls, in order."""
        self._access.own(session_id)
        return self._stores.calls.turns(session_id)

    def of_turn(self, session_id: str, turn: int) -> tuple[CallInput, ...]:
        """Returns each call of a turn, of all attempts: its input block by block, and its cost."""
        session = self._access.own(session_id)
        self._stores.turns.get(session_id, turn)
        calls = self._stores.calls.of_turn(session_id, turn)
        _, left_tokens = self._history_begin(session_id, turn)
        return tuple(self._call_input(session, call, left_tokens) for call in calls)

    def history(self, session_id: str, turn: int, *, last: int) -> tuple[HistoryTurn, ...]:
        """Returns the history since the last reset up to a turn, or the newest `last` turns of it, oldest first."""
        self._access.own(session_id)
        self._stores.turns.get(session_id, turn)
        begin, _ = self._history_begin(session_id, turn)
        archived = self._stores.archive.live_turns(session_id, max(begin, turn - last + 1), turn)
        return tuple(
            _turn(number, list(entries)) for number, entries in groupby(archived, key=lambda entry: entry.turn)
        )

    def _history_begin(self, session_id: str, turn: int) -> tuple[int, int]:
        """Returns the first turn after the last reset before `turn`, and our token estimate for all before it."""
        begin = max((after for after in self._stores.resets.turns(session_id) if after < turn), default=0) + 1
        return begin, self._stores.turns.get(session_id, begin).history_tokens if begin > 1 else 0

    def request(self, session_id: str, turn: int, *, attempt: int, ordinal: int) -> SentRequest:
        """Returns the request body of a call.

        Messages come from the tables, checked by their hash; everything else from today's configuration.

        Raises:
            NotFoundError: There is no such call.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        session, models = self._access.own(session_id), self._models
        row = self._stores.turns.get(session_id, turn)
        calls = self._stores.calls.of_turn(session_id, turn)
        call = next((call for call in calls if (call.attempt, call.ordinal) == (attempt, ordinal)), None)
        if call is None:
            raise NotFoundError
        rebuilt, name = self._rebuild(session, call), models.known_name(call.model)
        offered = [block[1] for block in call.manifest if block[0] == TOOLS]
        tools = self._schemas(session, offered[0], rebuilt.language) if offered else ()
        body = None
        if rebuilt.messages is not None:
            images = self._stores.images.get(session_id, references_in(rebuilt.messages))
            shown = {reference: shortened_url(url) for reference, url in images.items()}
            is_forbidden = (rebuilt.is_last_round or row.is_casual) and not models.tool_choice.is_refused_by(name)
            made = request_body(
                models.chat(name),
                name,
                with_images(rebuilt.messages, shown),
                tools,
                tool_choice=NO_TOOL if is_forbidden else None,
            )
            body = json.dumps(made, ensure_ascii=False, indent=2)
        return SentRequest(
            body,
            rebuilt.is_verified,
            lacks_tools=bool(offered) and not tools,
            is_of_program=bool(row.client),
            is_embedded=name == EMBEDDED_MODEL,
        )

    def _call_input(self, session: SessionRow, call: ModelCall, left_tokens: int) -> CallInput:
        rebuilt = self._rebuild(session, call)
        if call.kind == "reasoning":
            texts = [message.text for message in rebuilt.messages] if rebuilt.messages else [None] * len(call.manifest)
            blocks = [
                InputBlock(*block[:3], "", block[3], text) for block, text in zip(call.manifest, texts, strict=True)
            ]
        else:
            blocks = [
                replace(
                    _input_block(block, part, rebuilt.language), tools=self._tools(session, block, rebuilt.language)
                )
                for block, part in zip(call.manifest, rebuilt.parts, strict=True)
            ]
            before = self._stores.calls.before(call)
            # Another model has a cache of its own.
            retained = same_blocks(before.manifest if before and before.model == call.model else (), call.manifest)
            blocks = [replace(block, is_cacheable=is_shared) for block, is_shared in zip(blocks, retained, strict=True)]
        return CallInput(
            attempt=call.attempt,
            ordinal=call.ordinal,
            kind=call.kind,
            model=call.model,
            is_verified=rebuilt.is_verified,
            sent_tokens=call.sent_tokens,
            full_tokens=call.full_tokens - left_tokens * (call.kind == "answer"),
            usage_input_tokens=call.usage_input_tokens,
            usage_output_tokens=call.usage_output_tokens,
            usage_cached_tokens=call.usage_cached_tokens,
            seconds=call.seconds,
            error_code=call.error_code,
            created_at=call.created_at,
            blocks=tuple(blocks),
        )

    def _tools(self, session: SessionRow, block: Block, language: Language) -> tuple[ToolSchema, ...]:
        """Returns the tools of their block; () for other blocks."""
        kind, name, _, _ = block
        schemas = self._schemas(session, name, language) if kind == TOOLS else ()
        functions = (schema["function"] for schema in schemas)
        return tuple(ToolSchema(tool["name"], json.dumps(tool, ensure_ascii=False, indent=2)) for tool in functions)

    def _schemas(self, session: SessionRow, name: str, language: Language) -> Schemas:
        chosen = self._stores.blocks.versions(session.session_id, "mcp")
        return self._known_tools.find(name, language, off=session.tools_off, chosen=chosen)

    def _rebuild(self, session: SessionRow, call: ModelCall) -> Rebuilt:
        """Builds what a call of this session was sent again."""
        if call.kind == "reasoning":
            asked = _asked_by_tool(self._stores, call)
            if asked is None:
                return Rebuilt((), None, is_verified=False)
            return Rebuilt((), asked.messages, is_verified=asked.digest() == call.input_hash)
        # A session's strategy may have changed since; the hash tells which one it was.
        strategies = dict.fromkeys((self._strategies.of(session.strategy), *self._strategies.by_name.values()))
        return _as_sent(call, _parts(self._stores, call), strategies)


def _as_sent(call: ModelCall, parts: Sequence[Part], strategies: Iterable[Strategy]) -> Rebuilt:
    """Rebuilds the input with each strategy until one matches the stored hash; else returns the first of them."""
    head = parts[0] if parts else None
    if not isinstance(head, SystemPart):
        return Rebuilt(parts, None, is_verified=False)
    system, history, messages = _sorted(head, parts[1:])
    ends_in_result = bool(messages) and isinstance(messages[-1], ToolMessage)
    guessed: tuple[AnyMessage, ...] | None = None
    for strategy in strategies:
        for note in ("", rounds_note(system.language)) if ends_in_result else ("",):
            sent = strategy.assemble(replace(system, note=note), history, messages)
            if sent.digest() == call.input_hash:
                return Rebuilt(parts, sent.messages, is_verified=True, is_last_round=bool(note))
            guessed = guessed or sent.messages
    return Rebuilt(parts, guessed, is_verified=False)


def _parts(stores: ChatStores, call: ModelCall) -> list[Part]:
    """Returns the stored data of each block of a call, system prompt first; () if an import couldn't read it."""
    if not call.manifest:
        return []
    _, name, version, _ = call.manifest[0]
    try:
        system: SystemPart | None = stored_system(name, version)
    except KeyError:  # of a version that was never released
        system = None
    language = system.language if system else "ko"
    has_ledger = any(block[0] == LEDGER for block in call.manifest)
    lines = {line.id: line for line in stores.records.ledger_lines(call.session_id)} if has_ledger else {}
    parts = [
        lines.get(block[1]) if block[0] == LEDGER else _part(stores, call.session_id, block, language)
        for block in call.manifest[1:]
    ]
    records = iter(without_answered([part for part in parts if isinstance(part, dict)], language))
    return [system, *(next(records) if isinstance(part, dict) else part for part in parts)]


def _part(stores: ChatStores, session_id: str, block: Block, language: Language) -> Part:
    kind, name, version, _ = block
    try:
        if kind == CONTEXT:
            return _context_block(stores, session_id, block, language)
        if kind == PIN:
            return pin_of(stores.archive.get(session_id, name))
        if kind in ("record", SHORTENED):
            entry = to_entry(stores.records.get(session_id, name))
            return shorten_verbatim([entry], language)[0] if kind == SHORTENED else entry
        if kind in ("message", CUT) and not name.startswith(CONTINUED_ID):
            archived = stores.archive.get(session_id, name)
            if kind == CUT:
                shorter = note_cut(text_of(archived.message), version, why="fit the window", language=language)
                archived = replace(archived, message=archived.message.model_copy(update={"content": shorter}))
            return archived
    except (NotFoundError, KeyError, ValueError):  # deleted or changed by hand, or of a later version
        pass
    return None


def _context_block(stores: ChatStores, session_id: str, block: Block, language: Language) -> ContextBlock:
    kind, sent_lines = read_name(block[1])
    whole = stores.blocks.get(session_id, kind, block[2])
    if kind == "before":
        _ = whole.said  # raises `ValueError` if an import has something else there
    if sent_lines is None:
        return whole
    return replace(whole, text=cut_at(whole.text, sent_lines, language), sent_lines=sent_lines)


def _sorted(system: SystemPart, parts: Sequence[Part]) -> tuple[SystemPart, list[HistoryEntry], list[AnyMessage]]:
    """Returns what a strategy assembles an input of."""
    history: list[HistoryEntry] = []
    messages: list[AnyMessage] = []
    for part in parts:
        match part:
            case ContextBlock():
                system = system.with_block(part)
            case dict():
                # The lines that were sent are parts of their own.
                history.append({**part, "ledger": []})
            case LedgerLine():
                system = replace(system, ledger=(*system.ledger, part), ledger_tokens=_ALL_TOKENS)
            case Pin():
                system = replace(system, pins=(*system.pins, part))
            case ArchivedMessage():
                messages.append(part.message)
    return system, history, messages


def _asked_by_tool(stores: ChatStores, call: ModelCall) -> ModelInput | None:
    """Returns what the tool `reasoning` asked; None if the call that it did so for isn't archived."""
    if [block[0] for block in call.manifest] != ["system", "call"]:
        return None  # of an import
    call_id = call.manifest[-1][1]
    entries = stores.archive.all_of_turn(call.session_id, call.turn)
    answers = [entry.message for entry in entries if isinstance(entry.message, AIMessage)]
    asked = next((made for answer in answers for made in answer.tool_calls if made["id"] == call_id), None)
    if asked is None:
        return None
    prompt = words.get_prompt(str(asked["args"].get("material")), str(asked["args"].get("question")))
    return ModelInput((SystemMessage(words.SYSTEM), HumanMessage(prompt)), ())


def _input_block(block: Block, part: Part, language: Language) -> InputBlock:
    """Returns a block with its text; a record's is without its label, which differs between strategies."""
    kind, name, version, tokens = block
    match part:
        case SystemPart() | ContextBlock():
            known = name if isinstance(part, SystemPart) else part.kind
            text = _said_text(part, language) if known == "before" and isinstance(part, ContextBlock) else part.text
            return InputBlock(kind, known, version, "", tokens, text)
        case dict():
            return InputBlock(kind, name, version, "", tokens, part["summary"], tuple(part["turns"]))
        case LedgerLine() | Pin():
            role = "user" if isinstance(part, LedgerLine) else _ROLES[part.role]
            return InputBlock(kind, name, version, role, tokens, part.text, (part.turn,))
        case ArchivedMessage():
            return _message_block(block, part)
    if name.startswith(CONTINUED_ID):
        return InputBlock(kind, name, version, "user", tokens, CONTINUED[language])
    return InputBlock(kind, name, version, "", tokens, None)


def _said_text(block: ContextBlock, language: Language) -> str:
    return "\n".join(
        labelled(f"{SPEAKER[language][message.type]}: ", _words(message)) for message in block.said.messages
    )


def _message_block(block: Block, entry: ArchivedMessage) -> InputBlock:
    """Returns the block of a message."""
    kind, name, version, tokens = block
    role = _ROLES.get(entry.message.type, "")
    return InputBlock(kind, name, version, role, tokens, _words(entry.message), (entry.turn,))


def _words(message: AnyMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [f"(tool call: {call['name']} {json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    return "\n".join(line for line in (text_of(message), *called) if line)


def _turn(number: int, entries: Sequence[ArchivedMessage]) -> HistoryTurn:
    blocks = [_message_block(("message", str(entry.message.id), 1, entry.tokens), entry) for entry in entries]
    return HistoryTurn(number, sum(entry.tokens for entry in entries), tuple(blocks))
