"""The list of tools offered to models; a new tool is a file in this package and a line here."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import Any, Final, NoReturn

from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.core.model_input import schema_id
from graph.core.turn import FILE_TOOL, NOTE_TOOLS, RECALL_TOOL
from graph.model.caller import ModelCaller
from graph.offline.chat_model import OfflineChat
from graph.tool.current_time import build_current_time, build_reasoning
from graph.tool.look_in_file import build_look_in_file
from graph.tool.project_note import build_project_notes, build_read_rule
from graph.tool.recall import build_recall
from graph.tool.tool_context import PastTurns, ProjectAccess, ToolContext
from graph.tool.web_search import build_web_search
from graph.value.mcp import ToolInfo
from prompt.system.framing import Language

__all__ = ["TOOL_NAMES", "ToolContext", "build_tools"]

# All tools; the tools of a turn depend on its strategy and its project.
TOOL_NAMES: Final = NOTE_TOOLS | {"get_current_time", "web_search", "reasoning", RECALL_TOOL, FILE_TOOL, "read_rule"}


def build_tools(context: ToolContext) -> list[BaseTool]:
    """Returns the tools of one run; order and schemas never change in a session: a provider caches them.

    A first long file adds the last tool, once.
    """
    tools = [build_current_time(context), build_web_search(context), build_reasoning(context)]
    if context.past is not None:
        tools.append(build_recall(context.past, context.language))
    if context.project is not None:
        tools += build_project_notes(context.project.memory, context.user_words, context.language)
        tools.append(build_read_rule(context.project.find_rule, context.language))
    if context.files is not None:
        tools.append(build_look_in_file(context.files, context.result_chars, context.language))
    return tools


Schemas = Sequence[dict[str, Any]]


def schemas_of(tools: Sequence[BaseTool]) -> list[dict[str, Any]]:
    return [convert_to_openai_tool(tool) for tool in tools]


def schema_text(schemas: Schemas) -> str:
    """Returns the JSON of schemas, the basis of their id and token estimate; "" for none."""
    return json.dumps(schemas, ensure_ascii=False) if schemas else ""


def mcp_schema(tool: ToolInfo) -> dict[str, Any]:
    """Returns the schema of a server's tool as it is sent: byte for byte what its server said when it was chosen."""
    function = {"name": tool.offered, "description": tool.description, "parameters": dict(tool.schema)}
    return {"type": "function", "function": function}


def mcp_text(tools: Sequence[ToolInfo]) -> str:
    """Returns tools of servers as a block of their chat keeps them; "" for none."""
    return json.dumps([tool._asdict() for tool in tools], ensure_ascii=False) if tools else ""


def allowance_of(tool: ToolInfo) -> str:
    """Returns what a chat keeps of "always": it ends with the tool as it was when the user said so."""
    return f"{tool.offered} {tool.fingerprint}"


def read_mcp(text: str) -> tuple[ToolInfo, ...]:
    """Returns the tools that `mcp_text` wrote; none of a text that another program wrote."""
    try:
        return mcp_tools(json.loads(text or "[]"))
    except (ValueError, TypeError):
        return ()


def mcp_tools(stored: Iterable[Mapping[str, Any]]) -> tuple[ToolInfo, ...]:
    """Returns tools from their fields, in the order in which they are sent."""
    return tuple(sorted((ToolInfo(**tool) for tool in stored), key=lambda tool: (tool.server, tool.name)))


class KnownTools:
    """The tools of this version of the server. Their schemas aren't stored; each call keeps only the id of its own."""

    def __init__(
        self, build: Callable[[ToolContext], list[BaseTool]], caller: ModelCaller, clock: Callable[[], datetime]
    ) -> None:
        self._build = build
        self._caller = caller
        self._clock = clock
        self.offered = lru_cache(self._offered)

    def find(self, wanted: str, language: Language, *, off: Collection[str], chosen: Sequence[str] = ()) -> Schemas:
        """Returns the schemas by id; () if they are of a different version or include a client's tools.

        `chosen` are the blocks of MCP tools that the session has had.
        """
        added = [[], *([*map(mcp_schema, read_mcp(text))] for text in chosen)]
        for has_past, has_project, has_files in product((True, False), repeat=3):
            _, offered = self.offered(language, has_past=has_past, has_project=has_project, has_files=has_files)
            left = [schema for schema in offered if schema["function"]["name"] not in off]
            for schemas in ([*own, *more] for more in added for own in (offered, left)):
                if schemas and schema_id(schema_text(schemas)) == wanted:
                    return schemas
        return ()

    def _offered(
        self, language: Language, *, has_past: bool, has_project: bool, has_files: bool = False
    ) -> tuple[list[BaseTool], Schemas]:
        """Returns the tools of such a session, which can't be run, and their schemas."""
        context = ToolContext(
            caller=self._caller,
            model=OfflineChat(),
            stop=threading.Event(),
            time_zone="",
            clock=self._clock,
            deadline_seconds=1,
            language=language,
            past=PastTurns(1, 1, find=_never, read=_never) if has_past else None,
            project=ProjectAccess(memory=_never, find_rule=_never) if has_project else None,
            files=_never if has_files else None,
        )
        tools = self._build(context)
        return tools, schemas_of(tools)


def _never(*_: object) -> NoReturn:
    raise AssertionError  # tools that are only offered are never called
