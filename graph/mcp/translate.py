"""Turns what a server lists and returns into values of ours: bounded, storable, and without secrets."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for
from mcp import types

from graph.attachment.image import MAX_IMAGES, read_image
from graph.core.text import HIDING, plain_text, plain_value
from graph.mcp.config import asks_first
from graph.value.error import AttachmentError
from graph.value.mcp import McpResult, ToolInfo
from prompt.system.framing import Language
from prompt.tool import mcp as words

MOST_TOOLS: Final = 500
_NAME_CHARS: Final = 64
_HASH_CHARS: Final = 8
_TITLE_CHARS: Final = 100
_DESCRIPTION_CHARS: Final = 1_024
_SCHEMA_CHARS: Final = 50_000
_SCHEMAS_CHARS: Final = 500_000
_READ_LINES: Final = 20
_LINE_CHARS: Final = 300
_NOT_OFFERED: Final = re.compile(r"[^a-zA-Z0-9_-]")
_ESCAPE: Final = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
_UNPRINTED: Final = re.compile(rf"(?:[\x00-\x1f\x7f-\x9f]|{HIDING.pattern})+")
_JSON_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|.)")
_PICTURES: Final = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}

Hide = Callable[[str], str]


def one_line(text: str, hide: Hide, *, most_chars: int = _LINE_CHARS) -> str:
    """Returns a text of a server as one line for people: no control sequences, no secrets, clipped."""
    shown = hide(plain_text(text))[: _READ_LINES * most_chars]
    line = " ".join(_UNPRINTED.sub(" ", _ESCAPE.sub("", shown)).split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1].rstrip()}…"


def tools_of(
    server: str, listed: Iterable[types.Tool], *, allow: Sequence[str], hide: Hide
) -> tuple[tuple[ToolInfo, ...], tuple[str, ...]]:
    """Returns a server's tools by name, and the names of those that can't be used: bad schema or name, or too many."""
    tools: dict[str, ToolInfo] = {}
    refused: list[str] = []
    room = _SCHEMAS_CHARS
    for tool in listed:
        text = _text_of_schema(tool.input_schema, hide)
        is_room = len(text) <= min(room, _SCHEMA_CHARS) and len(tools) < MOST_TOOLS
        schema = _read_schema(text) if is_room else None
        if schema is None or tool.name in tools or plain_text(tool.name) != tool.name or not tool.name.strip():
            refused.append(one_line(tool.name, hide, most_chars=_TITLE_CHARS))
            continue
        room -= len(text)
        mark = tool.annotations
        is_read_only = mark is not None and mark.read_only_hint is True
        told = HIDING.sub("", plain_text(tool.description or ""))
        description = _clipped(hide(told).strip(), _DESCRIPTION_CHARS)
        title = tool.title or (mark.title if mark else None) or tool.name
        tools[tool.name] = ToolInfo(
            server,
            tool.name,
            offered_name(server, tool.name),
            one_line(title, hide, most_chars=_TITLE_CHARS) or tool.name,
            description,
            schema,
            asks_first(server, tool.name, is_read_only=is_read_only, allow=allow),
            _hash([tool.name, description, schema, is_read_only]),
            is_read_only,
        )
    return tuple(sorted(tools.values(), key=lambda tool: tool.name)), tuple(refused)


def offered_name(server: str, tool: str) -> str:
    """Returns the name shown to the model: `server__tool`, with a hash of both where that alone might not be unique."""
    name = f"{server}__{tool}"
    clean = _NOT_OFFERED.sub("_", name)
    if clean == name and len(name) <= _NAME_CHARS and "__" not in f"{server}_" and not tool.startswith("_"):
        return name
    return f"{clean[: _NAME_CHARS - _HASH_CHARS - 1]}_{_hash([server, tool])[:_HASH_CHARS]}"


def _text_of_schema(schema: Mapping[str, Any], hide: Hide) -> str:
    """Returns the JSON schema of the arguments, whole and without secrets; "" if it isn't JSON."""
    try:
        return hide(
            json.dumps({"type": "object", "properties": {}} | plain_value(schema), ensure_ascii=False, allow_nan=False)
        )
    except (ValueError, RecursionError):
        return ""


@lru_cache(maxsize=256)
def _read_schema(text: str) -> Mapping[str, Any] | None:
    """Returns a schema from its text, None if an endpoint might refuse it, and with it the whole request.

    Kept, because a large one takes a second.
    """
    try:
        schema: dict[str, Any] = json.loads(text)
        validator_for(schema).check_schema(schema)
    except (SchemaError, ValueError, RecursionError):
        return None
    return schema if schema["type"] == "object" else None


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


def _clipped(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else f"{text[: most_chars - 1].rstrip()}…"


def result_of(result: types.CallToolResult, *, language: Language, hide: Hide) -> McpResult:
    """Returns a result's text and pictures, scaled; what is neither, or one picture too many, is named in the text."""
    texts: list[str] = []
    images: list[str] = []
    tries = 0
    for part in result.content:
        text = _text_of(part)
        if text is None:
            name, kind, data = _data_of(part)
            tries += kind in _PICTURES
            if kind in _PICTURES and tries <= MAX_IMAGES and (image := _picture(data)):
                images.append(image)
                continue
            text = words.left_out(f"{name} {kind}".strip(), language)
        texts.append(text)
    if result.structured_content is not None and not _says(texts, result.structured_content):
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    text = hide(plain_text("\n\n".join(text for text in texts if text.strip())))
    return McpResult(text or ("" if images else words.EMPTY[language]), tuple(images), result.is_error is True)


def _text_of(part: types.ContentBlock) -> str | None:
    match part:
        case types.TextContent():
            return _with_letters(part.text)
        case types.ResourceLink():
            return str(part.uri)
        case types.EmbeddedResource(resource=types.TextResourceContents() as resource):
            return _with_letters(resource.text)
        case _:
            return None


def _with_letters(text: str) -> str:
    """Returns JSON with its letters as such: many servers escape all but ASCII, and nobody finds a word in that."""
    if "\\u" not in text:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _JSON_ESCAPE.sub(_letter, text)


def _letter(escape: re.Match[str]) -> str:
    if not escape[0].startswith("\\u"):
        return escape[0]
    letter = bytes.fromhex(escape[0].replace("\\u", "")).decode("utf-16-be", "ignore")
    return letter if len(letter) == 1 and letter.isprintable() and not letter.isascii() else escape[0]


def _data_of(part: types.ContentBlock) -> tuple[str, str, str]:
    """Returns the name, the kind and the Base64 of what isn't text."""
    match part:
        case types.ImageContent() | types.AudioContent():
            return "", part.mime_type.lower(), part.data
        case types.EmbeddedResource(resource=types.BlobResourceContents() as resource):
            return str(resource.uri), (resource.mime_type or "").lower(), resource.blob
        case _:
            return "", part.type, ""


def _picture(data: str) -> str:
    """Returns a picture as a data URL; "" if it isn't one that models take."""
    try:
        return read_image("", base64.b64decode(data, validate=True)).url
    except (AttachmentError, ValueError):
        return ""


def _says(texts: Sequence[str], value: object) -> bool:
    """Returns whether texts have all of a structured result: servers send both, for clients that know only one.

    Many wrap a text in an object with one key, or send a text for each item of a list.
    """
    values = [value, *value.values()] if isinstance(value, Mapping) and len(value) == 1 else [value]
    return any(
        any(_is_said(value, text) for text in texts)
        or (isinstance(value, list) and 0 < len(value) == len(texts) and all(map(_is_said, value, texts)))
        for value in values
    )


def _is_said(value: object, text: str) -> bool:
    try:
        return text == value or bool(json.loads(text) == value)
    except (ValueError, RecursionError):
        return False
