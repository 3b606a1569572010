"""Builds the inputs of a session's calls again, from nothing but what the tables have."""

from __future__ import annotations

from dataclasses import replace

from langchain_core.messages import AnyMessage

from graph.core.model_input import ModelInput, stored_system
from graph.record import HistoryEntry, to_entry
from graph.store.call import ModelCall
from graph.store.stores import Stores
from graph.strategy.base import Strategy


def rebuilt(stores: Stores, call: ModelCall, strategy: Strategy) -> ModelInput:
    """The input of a call, from its list of blocks."""
    session_id = call.session_id
    system = stored_system(call.manifest[0][1], call.manifest[0][2])
    history: list[HistoryEntry] = []
    said: list[AnyMessage] = []
    for kind, block_id, version, _ in call.manifest:
        if kind == "context" and block_id == "front":
            system = replace(system, front=stores.blocks.get(session_id, "front", version))
        elif kind == "context" and block_id == "client":
            system = replace(system, client=stores.blocks.get(session_id, "client", version))
        elif kind == "context":
            system = replace(system, volatile=stores.blocks.get(session_id, "volatile", version))
        elif kind == "record":
            history.append(to_entry(stores.records.get(session_id, block_id)))
        elif kind == "message":
            said.append(stores.archive.get(session_id, block_id).message)
    return strategy.assemble(system, history, said)
