"""The node that runs the tool calls of the last answer, but for those that a program runs itself."""

from __future__ import annotations

import contextvars
import json
import logging
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, Final, NamedTuple, cast

from langchain_core.messages import AIMessage, ToolCall, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from graph.core.attached import content_of, reference_of
from graph.core.made import repeats
from graph.core.text import plain_text
from graph.core.turn import MARK, RECALL_TOOL
from graph.node.model_call import tools_of
from graph.node.state import ChatState, NodeDeps, TurnContext, archive_messages
from graph.tool.recall import opened_turns
from graph.tool.registry import allowance_of
from graph.value.error import TurnStoppedSignal
from graph.value.event import ToolFinished, ToolProgress, ToolStarted
from graph.value.mcp import ToolInfo
from prompt.system.framing import note_cut
from prompt.tool import words

_LOG = logging.getLogger(__name__)
_POLL_SECONDS: Final = 0.05
_END_SECONDS: Final = 0.5
_MAX_THREADS: Final = 16
_PROGRESS_CHARS: Final = 200


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
        # Before anything runs: the node begins again when the user has given his word, and this returns at once.
        servers = {tool.offered: tool for tool in turn.mcp_tools}
        named = [(str(call["id"]), call) for call in calls if call["name"] in servers and call["id"] not in unreadable]
        asked = {
            call_id: _asked(call, servers[call["name"]], is_repeated=is_repeated)
            for call_id, call in named
            if (is_repeated := repeats(state["messages"], call))  # that is asked whatever is allowed
            or _needs_word(servers[call["name"]], turn, deps)
        }
        if asked and turn.client is None:
            interrupt({"calls": [*asked.values()]})
        # In a program's turn nobody can be asked.
        declined = {call_id for call_id, _ in named if not turn.words.get(call_id, call_id not in asked)}
        tools: dict[str, BaseTool | ToolInfo] = {tool.name: tool for tool in tools_of(deps, turn)}
        tools |= {tool.offered: tool for tool in turn.mcp_tools}
        results = _run_all(calls, unreadable, declined, tools, turn, deps)
        # Also on Stop: what has been done must not look undone, or it is done again.
        archive_messages(deps, turn, results.messages, whole_texts=results.whole_texts, images=results.images)
        if turn.stop.is_set():
            raise TurnStoppedSignal
        return {"messages": results.messages, "tool_rounds": state["tool_rounds"] + 1}


def _needs_word(tool: ToolInfo, turn: TurnContext, deps: NodeDeps) -> bool:
    """Returns whether a call is only made if the user allows it, which nobody can in a program's turn."""
    is_allowed = turn.client is None and allowance_of(tool) in turn.mcp_allowed
    return deps.mcp.asks(tool) and not is_allowed


def _asked(call: ToolCall, tool: ToolInfo, *, is_repeated: bool) -> dict[str, str]:
    about = {"id": str(call["id"]), "server": tool.server, "tool": tool.name, "title": tool.title}
    return {**about, "repeats": "yes"} if is_repeated else about


class _Outcome(NamedTuple):
    text: str
    is_error: bool = False
    images: tuple[str, ...] = ()
    is_stopped: bool = False


class _Results(NamedTuple):
    """The results of an answer's calls, in their order; the whole texts of cut ones by message id, images by reference.

    On Stop only those of calls that have ended by themselves.
    """

    messages: list[ToolMessage]
    whole_texts: dict[str, str]
    images: dict[str, str]


def _run_all(
    calls: Sequence[ToolCall],
    unreadable: Collection[object],
    declined: Collection[str],
    tools: Mapping[str, BaseTool | ToolInfo],
    turn: TurnContext,
    deps: NodeDeps,
) -> _Results:
    """Runs at most sixteen calls at once, ours under one deadline; not those that the user has `declined`."""
    language = turn.language
    began = time.monotonic()
    pool = ThreadPoolExecutor(max_workers=_MAX_THREADS, thread_name_prefix="tool")
    try:
        futures: dict[Future[_Outcome], ToolCall] = {}
        own: set[Future[_Outcome]] = set()
        for call in calls:
            arguments, tool = json.dumps(call["args"], ensure_ascii=False), tools.get(call["name"])
            turn.emit(ToolStarted(str(call["id"]), call["name"], arguments, *_origin(tool)))
            run = contextvars.copy_context().run
            if call["id"] in unreadable:
                future = pool.submit(lambda: _Outcome(words.UNREADABLE[language], is_error=True))
            elif str(call["id"]) in declined:
                future = pool.submit(lambda: _Outcome(words.DECLINED[language], is_error=True))
            else:
                future = pool.submit(run, partial(_run_one, call, tools, turn, deps))
            futures[future] = call
            if not isinstance(tool, ToolInfo):
                own.add(future)
        done = _await(futures, own, turn, deps.settings.tool_deadline_seconds)
    finally:
        # A call past its deadline can't be cancelled: its thread runs on, and its result is ignored.
        pool.shutdown(wait=False, cancel_futures=True)
    results: list[ToolMessage] = []
    whole_texts: dict[str, str] = {}
    images: dict[str, str] = {}
    for future, call in futures.items():
        outcome = future.result() if future in done else _Outcome(words.TOO_LONG[language], is_error=True)
        if turn.stop.is_set() and (future not in done or outcome.is_stopped):
            continue
        text, most_chars = plain_text(outcome.text), deps.settings.tool_result_chars
        message_id = f"tool-{uuid.uuid4().hex}"
        if len(text) > most_chars:
            if call["name"] != RECALL_TOOL:
                whole_texts[message_id] = text
            text = note_cut(text, most_chars, why="are shown", language=language)
        references = tuple(map(reference_of, outcome.images))
        images |= dict(zip(references, outcome.images, strict=True))
        seconds = done.get(future, time.monotonic()) - began
        turns = opened_turns(call["name"], text)
        turn.emit(
            ToolFinished(str(call["id"]), call["name"], text, outcome.is_error, seconds, turns, images=references)
        )
        server, title = _origin(tools.get(call["name"]))
        origin = {"server": server, "title": title} if server else {}
        results.append(
            ToolMessage(
                content_of(text, references),
                tool_call_id=str(call["id"]),
                name=call["name"],
                id=message_id,
                status="error" if outcome.is_error else "success",
                additional_kwargs={MARK: {"seconds": round(seconds, 3), **origin}},
            )
        )
    return _Results(results, whole_texts, images)


def _origin(tool: BaseTool | ToolInfo | None) -> tuple[str, str]:
    """Returns the server and the title of an MCP tool, "" for others."""
    return (tool.server, tool.title) if isinstance(tool, ToolInfo) else ("", "")


def _await(
    futures: Collection[Future[_Outcome]], own: Collection[Future[_Outcome]], turn: TurnContext, deadline_seconds: float
) -> dict[Future[_Outcome], float]:
    """Waits until all calls are done, Stop, or the deadline of our `own` ones; those of servers have their own.

    Returns the finished ones with the time they ended.
    """
    until = time.monotonic() + deadline_seconds
    done: dict[Future[_Outcome], float] = {}
    open_calls = set(futures)
    while open_calls:
        if time.monotonic() >= until:
            open_calls.difference_update(own)
        if turn.stop.is_set():
            # A tool's own model call ends by this stop too; its row is written while the turn has the lease.
            ended, _ = wait(open_calls, timeout=_END_SECONDS)
            return done | dict.fromkeys(ended, time.monotonic())
        finished, open_calls = wait(open_calls, timeout=_POLL_SECONDS, return_when=FIRST_COMPLETED)
        done |= dict.fromkeys(finished, time.monotonic())
    return done


def _run_one(call: ToolCall, tools: Mapping[str, BaseTool | ToolInfo], turn: TurnContext, deps: NodeDeps) -> _Outcome:
    language, tool = turn.language, tools.get(call["name"])
    if tool is None:
        return _Outcome(words.no_tool(call["name"], tools, language), is_error=True)
    try:
        if isinstance(tool, ToolInfo):
            return _call_server(call, tool, turn, deps)
        result = tool.invoke(call)
    except TurnStoppedSignal:
        return _Outcome(words.STOPPED[language], is_error=True, is_stopped=True)
    except BaseException as error:  # noqa: BLE001 - the edge of a worker: whatever a tool raises becomes its result, even an exit or a cancellation
        _LOG.warning("tool %s failed: %s", call["name"], type(error).__name__)
        return _Outcome(words.failed(error, language), is_error=True)
    if isinstance(result, ToolMessage):
        return _Outcome(result.text, result.status == "error")
    return _Outcome(str(result))


def _call_server(call: ToolCall, tool: ToolInfo, turn: TurnContext, deps: NodeDeps) -> _Outcome:
    result = deps.mcp.call(
        tool,
        call["args"],
        stop=turn.stop,
        on_progress=lambda text: turn.emit(ToolProgress(str(call["id"]), text[:_PROGRESS_CHARS])),
        language=turn.language,
    )
    return _Outcome(result.text, result.is_error, result.images)
