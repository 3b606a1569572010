"""Makes the job of a committed turn: what its worker and its nodes get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from langchain_core.messages import AnyMessage

from graph.client import ClientOptions
from graph.core.client_chain import OpenAnchor
from graph.core.context_block import ContextRequest
from graph.core.language import session_language
from graph.core.text import plain_value
from graph.node.context import TurnContext
from graph.service.access import SessionAccess
from graph.store.database import Lease
from graph.store.session import SessionRow
from graph.store.turn import TurnRow
from graph.view import TurnOptions
from graph.worker.archived_turn import answers_in, steps_in
from graph.worker.turn_log import TurnLog
from graph.worker.turn_meter import TurnMeter
from graph.worker.turn_runner import Job


def job_of(
    access: SessionAccess,
    lease: Lease,
    turn: TurnRow,
    session: SessionRow,
    options: TurnOptions,
    *,
    messages: Sequence[AnyMessage] = (),
    resumed: Sequence[AnyMessage] = (),
    anchor: OpenAnchor | None = None,
) -> Job:
    """Returns the job of a turn.

    Args:
        access: The service's own.
        lease: The session's lease, which the worker will release.
        turn: The turn as its row is now.
        session: The session with the settings of this turn.
        options: Those that the turn was asked for with.
        messages: What the archive has and graph state doesn't have yet.
        resumed: What the attempt has said so far, if it goes on behind what a program answered.
        anchor: What the program's request is recognised by; None for the page.
    """
    log = TurnLog(turn.number, turn.attempt, said="\n\n".join(answers_in(resumed)), steps=tuple(steps_in(resumed)))
    log.watch(TurnMeter(access.spending.metrics).hear)
    if access.titles is not None:
        log.watch(partial(access.titles.hear, session))
    projects = access.project_turns
    with access.stores.database.reading():
        opening = access.stores.archive.opening(lease.session_id)
        strategy = access.strategies.of(session.strategy)
        pins = access.stores.pinned(lease.session_id) if strategy.sends_records else ()
        asked = access.stores.archive.get(lease.session_id, turn.user_message_id).message
    context = TurnContext(
        lease=lease,
        owner=access.owner,
        row=turn,
        strategy=strategy,
        tell=log.append,
        stop=log.stop,
        give_up=access.runner.give_up,
        time_zone=options.time_zone,
        language=session_language(opening),
        project=None if projects is None else projects.access(access.owner, session.project_root),
        client=None if options.client is None else _cleaned(options.client),
        is_resumed=bool(resumed),
        tools_off=frozenset(session.tools_off),
        pins=pins,
    )
    request = ContextRequest(
        session_id=lease.session_id,
        owner=access.owner,
        root=session.project_root,
        has_memory=session.has_memory,
        language=context.language,
        turn=turn.number,
        message=asked,
        context=access.context_of(session, options.context, context.language),
    )
    return Job(log, context, tuple(messages), session.compression_rate, request, anchor)


def _cleaned(client: ClientOptions) -> ClientOptions:
    """Returns the options as every endpoint accepts them; the texts are cleaned where they are kept."""
    return replace(
        client,
        tools=tuple(plain_value(tool) for tool in client.tools),
        tool_choice=plain_value(client.tool_choice),
        sampling=plain_value(client.sampling),
    )
