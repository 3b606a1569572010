from __future__ import annotations

import base64
import json
import re

import pytest
from mcp import types

from graph.attachment import MAX_IMAGES
from graph.mcp.translate import MOST_TOOLS, Listing, offered_name, result_of
from graph.value.mcp import McpResult, ToolInfo
from tests.fake.picture import bomb, opened, picture

ROWS = [{"id": 1, "name": "Mina"}, {"id": 2, "name": "Jun"}]


def sent(content: list[types.ContentBlock], **more: object) -> dict[str, object]:
    parts = [part.model_dump(by_alias=True, mode="json", exclude_none=True) for part in content]
    return {"content": parts, **more}


def listed(schema: object, name: str = "tool", **fields: object) -> dict[str, object]:
    return {"name": name, "inputSchema": schema, **fields}


def listing(*tools: dict[str, object]) -> Listing:
    found = Listing("files", allow=(), hide=lambda text: text.replace("hush", "•••"))
    found.take([*tools])
    return found


def usable(*tools: dict[str, object]) -> tuple[list[str], list[str]]:
    found = listing(*tools)
    return [tool.name for tool in found.tools], [tool.name for tool in found.unusable]


def only(tool: dict[str, object]) -> ToolInfo:
    (found,) = listing(tool).tools
    return found


def text_of(texts: list[str], structured: object) -> str:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text) for text in texts]
    return result_of(sent(content, structuredContent=structured), language="en", hide=lambda text: text).text


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
        ([json.dumps(row) for row in reversed(ROWS)], {"result": ROWS}),
        (["Mina"], {"name": "Mina", "id": 1}),
        (["Nothing."], {"result": []}),
        ([], {"content": "only here"}),
    ],
)
def test_what_no_text_says_stands_behind_them(texts: list[str], structured: object) -> None:
    assert text_of(texts, structured) == "\n\n".join([*texts, json.dumps(structured)])


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (r'{"city": "\uc11c\uc6b8 \ud83d\ude00", "at": 1}', '{"city": "서울 😀", "at": 1}'),
        (r'["caf\u00e9", "a\\u00e9", "\u0022", "\u0009", "\u202e", "\ud83d"]', None),
        (r"See \uc11c.", None),
    ],
)
def test_letters_that_json_escapes_are_read_as_letters(text: str, read: str | None) -> None:
    expected = read or text.replace(r"caf\u00e9", "café")
    assert text_of([text], None) == expected
    assert read is None or json.loads(text) == json.loads(expected)


def image(data: bytes, kind: str = "image/png") -> types.ImageContent:
    return types.ImageContent(type="image", data=base64.b64encode(data).decode(), mime_type=kind)


def result(*content: types.ContentBlock) -> McpResult:
    return result_of(sent(list(content)), language="ko", hide=lambda text: text)


def test_pictures_are_scaled_and_what_is_none_is_named() -> None:
    large = result(image(picture("JPEG", (4_000, 1_000), told={}), "image/jpg"))
    assert (large.text, [opened(url).size for url in large.images]) == ("", [(2_048, 512)])
    for part in (
        image(bomb(60_000)),
        image(b"\x89PNG\r\n\x1a\n and no more"),
        image(b"<svg/>", "image/svg+xml"),
        types.ImageContent(type="image", data="no Base64!", mime_type="image/png"),
        types.AudioContent(type="audio", data="", mime_type="audio/wav"),
    ):
        assert result(part) == McpResult(f"[표시할 수 없는 내용: {part.mime_type}]")
    report = types.BlobResourceContents(uri="file:///a/report.pdf", mime_type="application/pdf", blob="JVBERi0=")
    embedded = types.EmbeddedResource(type="resource", resource=report)
    assert result(embedded).text == "[표시할 수 없는 내용: file:///a/report.pdf application/pdf]"
    drawn = types.BlobResourceContents(uri="a:b", mime_type="image/gif", blob=image(picture("GIF")).data)
    assert len(result(types.EmbeddedResource(type="resource", resource=drawn)).images) == 1


def test_a_result_has_as_many_pictures_as_a_message() -> None:
    many = result(*[image(picture("PNG"))] * (MAX_IMAGES + 2))
    assert len(many.images) == MAX_IMAGES
    assert many.text.count("image/png") == 2


def test_pictures_that_cant_be_read_count_too() -> None:
    shown = result(*[image(b"no picture")] * MAX_IMAGES, image(picture("PNG")))
    assert (shown.images, shown.text.count("image/png")) == ((), MAX_IMAGES + 1)


@pytest.mark.parametrize(
    ("raw", "read"),
    [
        ({"content": [{"type": "text", "text": "ok"}], "isError": None}, McpResult("ok")),
        ({"structuredContent": {"rows": 3}}, McpResult('{"rows": 3}')),
        ({"structuredContent": [1, 2], "content": None}, McpResult("[1, 2]")),
        ({"structuredContent": 7, "content": []}, McpResult("7")),
        ({"content": [{"type": "text", "text": "no"}], "isError": True, "_meta": None}, McpResult("no", is_error=True)),
        ({"content": [{"type": "text", "text": "ok", "annotations": None, "_meta": None}]}, McpResult("ok")),
        ({"content": [{"type": "resource_link", "uri": "a:b", "name": None}]}, McpResult("a:b")),
        ({"content": [{"type": "resource", "resource": {"text": "words"}}]}, McpResult("words")),
        ({"content": [{"type": "text", "text": 1}]}, McpResult("[Content that can't be shown: text]")),
        ({"content": [{"type": "image", "data": "x"}]}, McpResult("[Content that can't be shown: ]")),
        ({"content": [{"type": "video", "data": "x"}]}, McpResult("[Content that can't be shown: video]")),
        ({"content": [{}]}, McpResult("[Content that can't be shown: ]")),
        ({}, McpResult("(The tool ended without a result.)")),
    ],
)
def test_what_servers_leave_out_or_send_as_null_is_not_sent(raw: dict[str, object], read: McpResult) -> None:
    assert result_of(raw, language="en", hide=str) == read


@pytest.mark.parametrize("content", ["none", {"type": "text"}, ["a text"], 7])
def test_content_that_is_no_list_of_parts_cant_be_read(content: object) -> None:
    with pytest.raises(ValueError, match="content"):
        result_of({"content": content, "structuredContent": 7}, language="en", hide=str)


def test_a_result_without_content_says_so() -> None:
    assert result() == result(types.TextContent(type="text", text=" \n")) == McpResult("(도구가 내용 없이 끝났습니다.)")


def nested(depth: int) -> dict[str, object]:
    return {"type": "object", "properties": {"a": nested(depth - 1)}} if depth else {"type": "string"}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": "object", "properties": {"a": {"type": "strin"}}},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "required": "a"},
        {"type": "object", "x": float("nan")},
        {"type": "object", "description": "x" * 1_000_000},
        nested(400),
    ],
)
def test_a_broken_schema_makes_its_tool_unusable_alone(schema: dict[str, object]) -> None:
    good = listed({"type": "object"}, "good")
    assert usable(listed(schema, "bad"), good) == (["good"], ["bad"])


@pytest.mark.parametrize(
    ("tool", "reason", "about"),
    [
        (listed({"type": "object"}, "a\u200bb"), "name", ""),
        (listed({"type": "object"}, "a\u00a0b"), "name", ""),
        (listed({"type": "object"}, "a" * 129), "name", ""),
        (listed({"type": "object"}, "good"), "twice", ""),
        (listed({"properties": {"a": {"type": "strin"}}}), "schema", "properties.a.type"),
        (listed({"properties": {"hush": {"items": 1}}}), "schema", "properties.•••.items"),
        (listed(None), "schema", "inputSchema"),
        ({"name": "tool"}, "schema", "inputSchema"),
        (listed({"properties": {"$filter": {}}}), "parameter", "$filter"),
        (listed({"description": "x" * 60_000}), "large", ""),
    ],
)
def test_each_tool_that_cant_be_used_has_its_reason(tool: dict[str, object], reason: str, about: str) -> None:
    found = listing(listed({"type": "object"}, "good"), tool)
    assert [each.name for each in found.tools] == ["good"]
    assert [(each.reason, each.about) for each in found.unusable] == [(reason, about)]


@pytest.mark.parametrize("page", [None, "tools", {}, [1], [{"inputSchema": {}}], [{"name": 7}]])
def test_a_list_that_isnt_one_breaks_the_protocol(page: object) -> None:
    with pytest.raises(ValueError, match=r"^tools"):
        Listing("files", allow=(), hide=str).take(page)


@pytest.mark.parametrize(
    "mark", [None, {}, {"readOnlyHint": None}, {"readOnlyHint": "true"}, {"destructiveHint": False}]
)
def test_a_tool_that_isnt_marked_read_only_asks(mark: object) -> None:
    tool = only(listed({"type": "object"}, annotations=mark))
    assert (tool.is_read_only, tool.asks) == (False, True)


def test_schemas_have_a_bound_together() -> None:
    large: dict[str, object] = {"type": "object", "description": "x" * 40_000}
    names, refused = usable(*(listed(large, f"tool-{number:02}") for number in range(20)))
    assert (len(names), len(refused)) == (12, 8)


def test_tools_over_the_bound_are_named() -> None:
    names = [f"tool_{number:03}" for number in range(MOST_TOOLS + 1)]
    found, refused = usable(*(listed({"type": "object"}, name) for name in names))
    assert (found, refused) == (names[:-1], [names[-1]])


def test_a_name_is_usable_once_and_if_it_can_be_stored() -> None:
    plain: dict[str, object] = {"type": "object"}
    assert usable(*(listed(plain, name) for name in ("a", "a", " ", "nul\x00"))) == (["a"], ["a", "", "nul�"])


def test_what_a_server_says_of_a_tool_is_shown_in_one_line_without_secrets() -> None:
    hidden = "\u202e\U000e0061\ufe0f\U000e0100\u200b"
    schema: dict[str, object] = {"properties": {"a": {"description": f"hu{hidden}sh{hidden}", "title": hidden}}}
    description = f"hush\x00\n{hidden}" + "d" * 2_000
    tool = listed(schema, description=description, title="A \x1b[31mred\x1b[0m\n\u202etitle, hush")
    found = only(tool)
    assert found.title == "A red title, •••"
    assert found.description == "•••�\n" + "d" * 1_018 + "…"
    assert found.schema == {"type": "object", "properties": {"a": {"description": "•••", "title": ""}}}


def test_a_fingerprint_is_of_all_that_is_told_and_of_the_mark() -> None:
    reads = {"readOnlyHint": True}
    changed = [
        listed({"type": "object"}, description="Reads."),
        listed({"type": "object"}, description="Reads!"),
        listed({"type": "object", "properties": {"a": {}}}, description="Reads."),
        listed({"type": "object"}, description="Reads.", annotations=reads),
        listed({"type": "object"}, "other", description="Reads."),
    ]
    prints = [only(tool).fingerprint for tool in (*changed, changed[0])]
    assert len(set(prints)) == len(changed)
    assert prints[0] == prints[-1]


def test_each_offered_name_is_unique_and_of_plain_characters() -> None:
    pairs = [
        (server, tool)
        for server in ("a", "a_", "a__b", "파일", "한글", "s" * 64)
        for tool in ("b", "_b", "b__c", "b c", "b.c", "읽기", "쓰기", "t" * 64, "t" * 65)
    ]
    names = {offered_name(*pair) for pair in pairs}
    assert len(names) == len(pairs)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names)
    assert offered_name("files", "read_file") == "files__read_file"
