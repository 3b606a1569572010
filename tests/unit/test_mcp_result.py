from __future__ import annotations

import json

import pytest
from mcp import types

from graph.mcp.translate import result_of

ROWS = [{"id": 1, "name": "Mina"}, {"id": 2, "name": "Jun"}]


def text_of(texts: list[str], structured: object) -> str:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text) for text in texts]
    result = types.CallToolResult(content=content, structured_content=structured)
    return result_of(result, language="en", hide=lambda text: text).text


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["line 1\nline 2"], {"content": "line 1\nline 2"}),
        ([json.dumps({"id": 1, "name": "Mina"}, indent=2)], {"id": 1, "name": "Mina"}),
        ([json.dumps(row) for row in ROWS], {"result": ROWS}),
        ([json.dumps(ROWS)], {"result": ROWS}),
        (["5"], {"result": 5}),
    ],
    ids=["a text", "an object", "an item each", "a list", "a number"],
)
def test_what_a_text_says_is_not_said_again(texts: list[str], structured: object) -> None:
    assert text_of(texts, structured) == "\n\n".join(texts)


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["Found 2 rows."], {"result": ROWS}),
        ([json.dumps(ROWS[0])], {"result": ROWS}),
        (["Mina"], {"name": "Mina", "id": 1}),
        (["Nothing."], {"result": []}),
        ([], {"content": "only here"}),
    ],
)
def test_what_no_text_says_stands_behind_them(texts: list[str], structured: object) -> None:
    assert text_of(texts, structured) == "\n\n".join([*texts, json.dumps(structured)])
