"""Keeps the cost row of a model call that a tool made; knows nothing of the tool."""

from __future__ import annotations

import logging
import secrets

from graph.core.model_input import InputItem, ModelInput
from graph.core.token import message_tokens
from graph.error import StoreError
from graph.node.context import NodeDeps, TurnContext
from graph.store.call import ModelCall
from graph.tool.base import SideCall

_LOG = logging.getLogger(__name__)


def keep_side_call(deps: NodeDeps, turn: TurnContext, side: SideCall) -> None:
    """Keeps what was sent and what it cost. What the tool has found out counts more than a row that can't be kept."""
    prompt, given = side.messages
    items = (
        InputItem("system", "reasoning", 1, message_tokens(prompt)),
        InputItem("call", side.call_id, 1, message_tokens(given)),
    )
    sent = ModelInput(side.messages, items)
    row = ModelCall(
        id=f"call-{secrets.token_urlsafe(9)}",
        session_id=turn.lease.session_id,
        turn=turn.turn,
        attempt=turn.attempt,
        kind="reasoning",
        model=turn.model,
        manifest=tuple((item.kind, item.id, item.version, item.tokens) for item in items),
        input_hash=sent.digest(),
        sent_tokens=sent.sent_tokens,
        full_tokens=sent.sent_tokens,
        usage_input_tokens=side.usage.input_tokens if side.usage else None,
        usage_output_tokens=side.usage.output_tokens if side.usage else None,
        usage_cached_tokens=side.usage.cached_tokens if side.usage else None,
        seconds=side.seconds,
        error_code=side.error_code,
        created_at=deps.clock(),
    )
    try:
        deps.stores.calls.add(turn.lease, row, owner=turn.owner)
    except StoreError as error:
        _LOG.warning("a tool's call in session=%s turn=%d was not kept: %s", row.session_id, row.turn, error.code)
