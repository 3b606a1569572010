"""Has a turn's context blocks composed, and keeps them as they are sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.tools import BaseTool

from graph.core.context_block import BlockKind, ContextBlock, ContextRequest, ContextSource, cut_block
from graph.core.divider import headed, undivided
from graph.core.lead import lead_block
from graph.core.model_input import CONTEXT
from graph.error import TurnfoldError
from graph.model.factory import ChatModels
from graph.node.context import TurnContext
from graph.store.call import CallStore
from graph.store.context_block import ContextBlockStore
from prompt.system.framing import CLIENT_HEADING

_LOG = logging.getLogger(__name__)
# Of the largest whole input: together they leave a quarter of it for all else, and half without a program's.
_LARGEST_SHARES: Final[dict[BlockKind, int]] = {"front": 3, "client": 4, "volatile": 6}


class TurnBlocks:
    """Composes the blocks of each turn once; all calls of the turn are sent the same ones.

    Args:
        source: Composes the texts.
        blocks: Where they are kept.
        calls: Tell what was sent before.
        models: Tell how much a model can be sent.
        tools: Returns the tools of a turn.
    """

    def __init__(
        self,
        source: ContextSource,
        blocks: ContextBlockStore,
        calls: CallStore,
        models: ChatModels,
        tools: Callable[[TurnContext], Sequence[BaseTool]],
    ) -> None:
        self._source = source
        self._blocks = blocks
        self._calls = calls
        self._models = models
        self._tools = tools

    def added_to(self, turn: TurnContext, request: ContextRequest) -> TurnContext:
        """Returns the turn with its blocks; as it was without a project, a context of the request and a program.

        A turn that goes on behind what its program answered has the blocks that it began with, but for the program's
        instructions. What can't be composed doesn't keep the turn from being answered: it then has the front of the
        turn before.

        Raises:
            StoreError: A block couldn't be kept.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        source = self._source if request.root or request.context else None
        session_id = turn.lease.session_id
        turn = replace(turn, client_block=self._client_block(turn))
        if turn.is_resumed:
            front = None if source is None else self._blocks.newest(session_id, "front")
            return replace(turn, front=front, volatile=self._blocks.newest(session_id, "volatile"))
        lead = lead_block(turn.client.lead, turn.language) if turn.client else ""
        if source is None:
            # An empty one is kept as well, so that the newest is this turn's when it goes on.
            return replace(turn, volatile=self._kept(turn, "volatile", lead)) if turn.client else turn
        newest = self._blocks.newest(session_id, "front")
        tools = {tool.name: tool.description for tool in self._tools(turn)}
        request = replace(request, front=newest.text if newest else "", tools=tools)
        try:
            standing, passing = source(request)
        except TurnfoldError as error:
            _LOG.warning("context of session=%s turn=%d not composed: %s", session_id, request.turn, error.code)
            standing, passing = request.front, ""
        front = self._kept(turn, "front", undivided(standing.strip()))
        passing = "\n\n".join(part for part in (undivided(passing.strip()), lead) if part)
        return replace(turn, front=front, volatile=self._kept(turn, "volatile", passing))

    def _client_block(self, turn: TurnContext) -> ContextBlock | None:
        """Returns the block of the program's instructions; a turn that says none has the newest of any program."""
        if turn.client is None or turn.client.system is None:
            return self._blocks.newest(turn.lease.session_id, "client")
        session_id, system = turn.lease.session_id, turn.client.system.strip()
        text = self._fitted(turn, "client", headed(CLIENT_HEADING[turn.language], system) if system else "")
        newest = self._blocks.newest(session_id, "client")
        if text == (newest.text if newest else ""):
            return newest
        sent = self._calls.last_manifest(session_id)
        lost_tokens = sum(tokens for kind, name, _, tokens in sent if not _stands_before(kind, name))
        return self._blocks.keep(turn.lease, "client", text, owner=turn.owner, lost_tokens=lost_tokens)

    def _kept(self, turn: TurnContext, kind: BlockKind, text: str) -> ContextBlock | None:
        return self._blocks.keep(turn.lease, kind, self._fitted(turn, kind, text), owner=turn.owner)

    def _fitted(self, turn: TurnContext, kind: BlockKind, text: str) -> str:
        most_tokens = self._models.input_tokens(turn.row.model) // _LARGEST_SHARES[kind]
        return cut_block(text, most_tokens, turn.language)


def _stands_before(kind: str, name: str) -> bool:
    """Whether a block of an input stands before the program's instructions; tools do wherever they are rendered."""
    return kind in ("system", "tools") or (kind == CONTEXT and name == "front")
