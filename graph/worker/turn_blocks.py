"""Has a turn's context blocks composed, and keeps them as they are sent."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.tools import BaseTool

from graph.core.context_block import BlockKind, ContextBlock, ContextRequest, ContextSource, cut_block
from graph.core.divider import undivided
from graph.error import TurnfoldError
from graph.model.factory import ChatModels
from graph.node.context import TurnContext
from graph.store.context_block import ContextBlockStore

_LOG = logging.getLogger(__name__)
# Of the largest whole input: together they leave half of it for all else.
_LARGEST_SHARES: Final[dict[BlockKind, int]] = {"front": 3, "volatile": 6}


class TurnBlocks:
    """Composes the blocks of each turn once; all calls of the turn are sent the same ones.

    Args:
        source: Composes the texts; None if no session has blocks.
        blocks: Where they are kept.
        models: Tell how much a model can be sent.
        tools: Returns the tools of a turn.
    """

    def __init__(
        self,
        source: ContextSource | None,
        blocks: ContextBlockStore,
        models: ChatModels,
        tools: Callable[[TurnContext], Sequence[BaseTool]],
    ) -> None:
        self._source = source
        self._blocks = blocks
        self._models = models
        self._tools = tools

    def added_to(self, turn: TurnContext, request: ContextRequest) -> TurnContext:
        """Returns the turn with its blocks; as it was if the session has no project and the request no context.

        What can't be composed doesn't keep the turn from being answered: it then has the front of the turn before.

        Raises:
            StoreError: A block couldn't be kept.
            ModelError: The model depends on the endpoint's list, and the endpoint failed.
        """
        if self._source is None or not (request.root or request.context):
            return turn
        session_id = turn.lease.session_id
        newest = self._blocks.newest(session_id, "front")
        tools = {tool.name: tool.description for tool in self._tools(turn)}
        request = replace(request, front=newest.text if newest else "", tools=tools)
        try:
            front, volatile = self._source(request)
        except TurnfoldError as error:
            _LOG.warning("context of session=%s turn=%d not composed: %s", session_id, request.turn, error.code)
            front, volatile = request.front, ""
        return replace(turn, front=self._kept(turn, "front", front), volatile=self._kept(turn, "volatile", volatile))

    def _kept(self, turn: TurnContext, kind: BlockKind, text: str) -> ContextBlock | None:
        most_tokens = self._models.input_tokens(turn.row.model) // _LARGEST_SHARES[kind]
        text = cut_block(undivided(text.strip()), most_tokens, turn.language)
        return self._blocks.keep(turn.lease, kind, text, owner=turn.owner)
