"""The node that runs the tool calls of the last answer, but for those that a program runs itself."""

from __future__ import annotations

import contextvars
import json
import logging
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime

from graph.core.text import plain_text
from graph.core.turn import MARK
from graph.node.model_call import tools_of
from graph.node.state import ChatState, NodeDeps, TurnContext, archive_messages
from graph.tool.recall import opened_turns
from graph.value.error import TurnStoppedSignal
from graph.value.event import ToolFinished, ToolStarted
from prompt.system.framing import Language, note_cut
from prompt.tool import words

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 0.5
_MAX_THREADS: Final = 16


class ToolNode:
    """Runs the calls of the last answer side by side and archives their results in order."""

    def __init__(self, deps: NodeDeps) -> None:
        self._deps = deps

    def __call__(self, state: ChatState, *, runtime: Runtime[TurnContext]) -> dict[str, Any]:
        turn, deps = runtime.context, self._deps
        answer = cast("AIMessage", state["messages"][-1])  # only an answer with calls leads here
        # What can't be read is answered here, as the program couldn't read it either.
        unreadable = set(answer.additional_kwargs.get(MARK, {}).get("unreadable_calls", ()))
        calls = [
            call for call in answer.tool_calls if call["name"] not in turn.client_tools or call["id"] in unreadable
        ]
        if not calls:
            return {}
        tools = {tool.name: tool for tool in tools_of(deps, turn)}
        results = _run_all(calls, unreadable, tools, turn, deps)
        archive_messages(deps, turn, results)
        return {"messages": results, "tool_rounds": state["tool_rounds"] + 1}


def _run_all(
    calls: Sequence[ToolCall],
    unreadable: Collection[object],
    tools: Mapping[str, BaseTool],
    turn: TurnContext,
    deps: NodeDeps,
) -> list[ToolMessage]:
    """Runs at most sixteen calls at once, under one deadline; returns the results in the order of the calls.

    Raises `TurnStoppedSignal` on Stop.
    """
    language = turn.language
    began = time.monotonic()
    pool = ThreadPoolExecutor(max_workers=_MAX_THREADS, thread_name_prefix="tool")
    try:
        futures: dict[Future[tuple[str, bool]], ToolCall] = {}
        for call in calls:
            arguments = json.dumps(call["args"], ensure_ascii=False)
            turn.emit(ToolStarted(str(call["id"]), call["name"], arguments))
            run = contextvars.copy_context().run
            futures[pool.submit(run, _run_one, call, tools, language, call["id"] in unreadable)] = call
        done = _await(futures, turn, deps.settings.tool_deadline_seconds)
    finally:
        # A call past its deadline can't be cancelled: its thread runs on, and its result is ignored.
        pool.shutdown(wait=False, cancel_futures=True)
    results = []
    for future, call in futures.items():
        text, is_error = future.result() if future in done else (words.TOO_LONG[language], True)
        text, most_chars = plain_text(text), deps.settings.tool_result_chars
        if len(text) > most_chars:
            text = note_cut(text, most_chars, why="are shown", language=language)
        seconds = done.get(future, time.monotonic()) - began
        turns = opened_turns(call["name"], text)
        turn.emit(ToolFinished(str(call["id"]), call["name"], text, is_error, seconds, turns))
        results.append(
            ToolMessage(
                text,
                tool_call_id=str(call["id"]),
                name=call["name"],
                id=f"tool-{uuid.uuid4().hex}",
                status="error" if is_error else "success",
                additional_kwargs={MARK: {"seconds": round(seconds, 3)}},
            )
        )
    return results


def _await(
    futures: Mapping[Future[tuple[str, bool]], ToolCall], turn: TurnContext, deadline_seconds: float
) -> dict[Future[tuple[str, bool]], float]:
    """Waits until all calls are done or the deadline passes; returns the finished ones with the time they ended."""
    until = time.monotonic() + deadline_seconds
    done: dict[Future[tuple[str, bool]], float] = {}
    open_calls = set(futures)
    while open_calls and time.monotonic() < until:
        if turn.stop.is_set():
            # A tool's own model call ends by this stop too; its row is written while the turn has the lease.
            wait(open_calls, timeout=_END_SECONDS)
            raise TurnStoppedSignal
        finished, open_calls = wait(open_calls, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        done |= dict.fromkeys(finished, time.monotonic())
    if turn.stop.is_set():
        raise TurnStoppedSignal  # the same stop may end a tool just before it is seen here
    return done


def _run_one(
    call: ToolCall,
    tools: Mapping[str, BaseTool],
    language: Language,
    is_unreadable: bool,  # noqa: FBT001 - passed by pool.submit
) -> tuple[str, bool]:
    if is_unreadable:
        return words.UNREADABLE[language], True
    tool = tools.get(call["name"])
    if tool is None:
        return words.no_tool(call["name"], tools, language), True
    try:
        result = tool.invoke(call)
    except TurnStoppedSignal:
        return words.STOPPED[language], True
    except BaseException as error:  # noqa: BLE001 - the edge of a worker: whatever a tool raises becomes its result, even an exit or a cancellation
        _LOG.warning("tool %s failed: %s", call["name"], type(error).__name__)
        return words.failed(error, language), True
    if isinstance(result, ToolMessage):
        return result.text, result.status == "error"
    return str(result), False
