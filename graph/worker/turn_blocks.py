"""Composes a turn's context blocks, and stores them as sent."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace

from langchain_core.tools import BaseTool

from graph.core.attached import own_words
from graph.core.ledger import ledger_tokens
from graph.core.model_input import CONTEXT
from graph.core.pin import (
    LARGEST_SHARES,
    BlockKind,
    ContextBlock,
    ContextRequest,
    ContextSource,
    Said,
    budget_tokens,
    fitting,
)
from graph.core.text import plain_text
from graph.core.turn import goes_on, headed, undivided, words_of
from graph.model.factory import ChatModels
from graph.node.state import TurnContext
from graph.recognise.client_turns import turns_of
from graph.store.call import CallStore
from graph.store.project import ContextBlockStore
from graph.strategy.base import room_within
from graph.value.error import TurnfoldError
from prompt.system.framing import CLIENT_HEADING
from prompt.tool.words import recalled_numbers

_LOG = logging.getLogger(__name__)


class TurnBlocks:
    """Composes the blocks of each turn once, and cuts our own blocks and pins to the model's limits.

    All calls of the turn are sent the same blocks, unless the guard has to cut them further; it never cuts what the
    turn's program sent.
    """

    def __init__(
        self,
        source: ContextSource,
        blocks: ContextBlockStore,
        calls: CallStore,
        models: ChatModels,
        tools: Callable[[TurnContext], Sequence[BaseTool]],
        look_up: Callable[[TurnContext, str], str],
    ) -> None:
        self._source = source
        self._blocks = blocks
        self._calls = calls
        self._models = models
        self._tools = tools
        self._look_up = look_up

    def added_to(self, turn: TurnContext, request: ContextRequest) -> TurnContext:
        """Returns the turn with its pins and blocks.

        A resumed turn has the blocks of its start, except for the program's instructions. If composing fails, the turn
        is answered with the prefix block of the turn before.

        Raises:
            StoreError: A block couldn't be stored.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        source = self._source if request.root or request.context else None
        session_id, known = turn.lease.session_id, turn.state.blocks
        input_tokens = self._models.input_tokens(turn.row.model)
        pins = fitting(turn.pins, budget_tokens(input_tokens), turn.language)
        turn = replace(turn, pins=pins, ledger_tokens=ledger_tokens(input_tokens))
        turn = replace(turn, client_block=self._client_block(turn))
        turn = replace(turn, before=self._before(turn), own=self._own(turn, request.own))
        if turn.is_resumed:
            front = None if source is None else self._within(turn, known.get("front"))
            return replace(turn, front=front, volatile=_fixed(self._blocks.newest(session_id, "volatile")))
        found = self._look_up(turn, own_words(words_of(request.message)))
        turn = replace(turn, looked_up=recalled_numbers(found))
        if source is None:
            # An empty block is stored, too, so that the newest is this turn's when the turn is resumed.
            return replace(turn, volatile=self._passing(turn, "", found)) if turn.client or found else turn
        newest = known.get("front")
        tools = {tool.name: tool.description for tool in self._tools(turn)}
        request = replace(request, front=newest.text if newest else "", tools=tools)
        try:
            standing, passing = source(request)
        except TurnfoldError as error:
            _LOG.warning("context of session=%s turn=%d not composed: %s", session_id, request.turn, error.code)
            standing, passing = request.front, ""
        retained = self._keep(turn, "front", undivided(standing.strip()))
        front = self._within(turn, retained)
        return replace(turn, front=front, volatile=self._passing(turn, undivided(passing.strip()), found))

    def _own(self, turn: TurnContext, text: str) -> ContextBlock | None:
        """Returns the block of the user's own instructions, as they are since the turn began."""
        if turn.is_resumed:
            return self._within(turn, turn.state.blocks.get("own"))
        return self._within(turn, self._keep(turn, "own", text))

    def _before(self, turn: TurnContext) -> ContextBlock | None:
        """Returns what the program sent before the question, also when the same question is answered again."""
        asked = turn.row.user_message_id
        preamble = turn.client.preamble if turn.client else ()
        if turns := turns_of(preamble, id_prefix=f"before-{uuid.uuid4().hex}", language=turn.language):
            said = Said(asked, tuple(message for said in turns for message in said if not goes_on(message)))
            return self._blocks.keep(turn.lease, "before", said.text, owner=turn.owner)
        if not turn.is_resumed and turn.row.attempt == 1:
            return None
        newest = self._blocks.newest(turn.lease.session_id, "before")
        return newest if newest is not None and newest.said.asked == asked else None

    def _client_block(self, turn: TurnContext) -> ContextBlock | None:
        """Returns the block of the program's instructions; a turn without any uses the session's newest."""
        newest = turn.state.blocks.get("client")
        if turn.client is None or turn.client.system is None:
            return newest
        system = turn.client.system.strip()
        text = headed(CLIENT_HEADING[turn.language], system) if system else ""
        if text == (newest.text if newest else ""):
            return _fixed(newest)
        sent = self._calls.last_manifest(turn.lease.session_id)
        lost_tokens = sum(tokens for kind, name, _, tokens in sent if not _stands_before(kind, name))
        return _fixed(self._keep(turn, "client", text, lost_tokens=lost_tokens))

    def _keep(self, turn: TurnContext, kind: BlockKind, text: str, *, lost_tokens: int = 0) -> ContextBlock | None:
        """Stores a block that stays from turn to turn, if it has changed."""
        known = turn.state.blocks.get(kind)
        if plain_text(text) == (known.text if known else ""):
            return known
        return self._blocks.keep(turn.lease, kind, text, owner=turn.owner, lost_tokens=lost_tokens)

    def _passing(self, turn: TurnContext, text: str, found: str) -> ContextBlock | None:
        """Stores the turn's own block as sent: a later turn of a larger model has no use for the rest."""
        sent: ContextBlock | None = ContextBlock("volatile", 0, "\n\n".join(filter(None, (text, found))))
        if turn.client is None:
            sent = self._within(turn, sent)
        retained = self._blocks.keep(turn.lease, "volatile", sent.text if sent else "", owner=turn.owner)
        return retained and replace(retained, fixed_lines=len(text.splitlines()) if turn.client else 0)

    def _within(self, turn: TurnContext, block: ContextBlock | None) -> ContextBlock | None:
        """Cuts a block of ours to its share of the input limit of the turn's model."""
        if block is None:
            return None
        # In quarters, so that each call's usage doesn't move the cut, which would lose the cached prefix.
        correction = round(4 * turn.state.calls.ratio) / 4
        room_tokens = room_within(int(self._models.input_tokens(turn.row.model) / correction))
        return block.within(room_tokens // LARGEST_SHARES[block.kind], turn.language)


def _fixed(block: ContextBlock | None) -> ContextBlock | None:
    """Returns a block of which nothing may be cut."""
    return block and replace(block, fixed_lines=len(block.text.splitlines()))


def _stands_before(kind: str, name: str) -> bool:
    """True if a block precedes the program's instructions in the input; tools do wherever they are rendered."""
    return kind in ("system", "tools") or (kind == CONTEXT and name.partition("/")[0] in {"own", "front"})
