from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.model_error import UnreachableError
from graph.record import ArchivedMessage
from graph.tool.registry import ToolContext, build_tools
from graph.tool.tool_context import PastTurns
from prompt.system.framing import Language
from tests.fake.tool_call import NOW, ScriptedSearch, fail, run, tool_context

HANGUL = re.compile("[가-힣]")


@pytest.fixture
def context() -> Iterator[ToolContext]:
    with tool_context() as opened:
        yield opened


def past(*exchanges: tuple[str, str]) -> PastTurns:
    """Turns that are all found by any words."""

    def read(first: int, last: int) -> list[ArchivedMessage]:
        return [
            ArchivedMessage(2 * turn, turn, 1, message, len(message.text), 1, NOW)
            for turn in range(first, last + 1)
            for message in (HumanMessage(exchanges[turn - 1][0]), AIMessage(exchanges[turn - 1][1]))
        ]

    def find(_: str, __: int, limit: int) -> list[int]:
        return list(range(1, len(exchanges) + 1))[:limit]

    return PastTurns(len(exchanges) + 1, 4_000, find, read)


def descriptions(schema: object) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (value for key, value in schema.items() if key == "description" and isinstance(value, str))
        for value in schema.values():
            yield from descriptions(value)


def test_tools_are_described_in_the_language_of_the_session_alone(context: ToolContext) -> None:
    offered = replace(context, past=past(("a", "b")))
    for language in ("ko", "en"):
        schemas = [convert_to_openai_tool(tool) for tool in build_tools(replace(offered, language=language))]
        told = [text for schema in schemas for text in descriptions(schema)]
        assert len(told) == 11
        assert all(bool(HANGUL.search(text)) == (language == "ko") for text in told)
    english, korean = (
        [convert_to_openai_tool(tool)["function"] for tool in build_tools(replace(offered, language=language))]
        for language in ("en", "ko")
    )
    for ours, theirs in zip(english, korean, strict=True):
        assert ours["name"] == theirs["name"]
        assert ours["parameters"].get("required") == theirs["parameters"].get("required")
        assert list(ours["parameters"]["properties"]) == list(theirs["parameters"]["properties"])


@pytest.mark.parametrize("language", ["ko", "en"])
def test_results_are_worded_in_the_language_of_the_session_alone(context: ToolContext, language: Language) -> None:
    ours = replace(context, language=language, past=past(("one", "two"), ("three", "four")))
    nothing = replace(ours, past=replace(past(("one", "two")), find=lambda *_: []))
    found = ScriptedSearch([{"title": "A", "href": "https://a.b", "body": "text"}])
    told = [
        fail(ours, "get_current_time", timezone="Mars"),
        run(replace(ours, search=ScriptedSearch()), "web_search", query="q"),
        run(replace(ours, search=found), "web_search", query="q"),
        fail(replace(ours, search=ScriptedSearch(error=UnreachableError())), "web_search", query="q"),
        run(ours, "recall", query="one", turns="1"),
        run(nothing, "recall", query="one"),
        run(replace(ours, past=replace(past(), open_turn=1)), "recall", query="one"),
        fail(ours, "recall"),
        fail(ours, "recall", turns="9"),
        run(ours, "get_current_time"),
    ]
    for text in told:
        assert bool(HANGUL.search(text)) == (language == "ko"), text
    assert language == "en" or not any(re.search(r"[a-z]+ [a-z]+ [a-z]+", text) for text in told)
