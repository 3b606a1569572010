"""Turns what a server lists and returns into values of ours: bounded, storable, and without secrets."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from graph.attachment.image import MAX_IMAGES, read_image
from graph.core.text import HIDING, plain_text, plain_value
from graph.mcp.config import asks_first
from graph.mcp.schema import UnusableError, strict_schema
from graph.value.error import AttachmentError
from graph.value.mcp import McpResult, ToolInfo, UnusableTool
from prompt.system.framing import Language
from prompt.tool import mcp as words

MOST_TOOLS: Final = 500
_NAME_CHARS: Final = 64
_TOOL_NAME_CHARS: Final = 128
_HASH_CHARS: Final = 8
_TITLE_CHARS: Final = 100
_DESCRIPTION_CHARS: Final = 1_024
_SCHEMA_CHARS: Final = 50_000
_SCHEMAS_CHARS: Final = 500_000
_READ_LINES: Final = 20
_LINE_CHARS: Final = 300
_NOT_OFFERED: Final = re.compile(r"[^a-zA-Z0-9_-]")
_ESCAPE: Final = re.compile(r"\x1b(\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|.)")
_UNPRINTED: Final = re.compile(rf"(?:[\x00-\x1f]|{HIDING.pattern})+")
_JSON_ESCAPE: Final = re.compile(r"\\(?:u[0-9a-fA-F]{4}(?:\\u[dD][c-fC-F][0-9a-fA-F]{2})?|.)")
_UNSTORABLE: Final = re.compile(r"\\u0000|[\ud800-\udfff]")
_PICTURES: Final = {"image/png", "image/jpeg", "image/jpg", "image/gif", "image/webp"}

Hide = Callable[[str], str]


def one_line(text: str, hide: Hide, *, most_chars: int = _LINE_CHARS) -> str:
    """Returns a text of a server as one line for people: no control sequences, no secrets, clipped."""
    # A secret that the first cut halves stands behind the second.
    shown = hide(plain_text(text[: 2 * _READ_LINES * most_chars]))[: _READ_LINES * most_chars]
    line = " ".join(_UNPRINTED.sub(" ", _ESCAPE.sub("", shown)).split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1].rstrip()}…"


class Listing:
    """The tools that a server lists, page by page: those that can be used by name, and of others the first ones."""

    def __init__(self, server: str, *, allow: Sequence[str], hide: Hide) -> None:
        self._server = server
        self._allow = allow
        self._hide = hide
        self._room = _SCHEMAS_CHARS
        self._tools: dict[str, ToolInfo] = {}
        self.unusable: tuple[UnusableTool, ...] = ()
        self.is_full = False

    @property
    def tools(self) -> tuple[ToolInfo, ...]:
        return tuple(sorted(self._tools.values(), key=lambda tool: tool.name))

    def take(self, page: object) -> None:
        """Reads a page; once `is_full`, no more of it. Raises `ValueError`: it breaks the protocol at that place."""
        for number, tool in enumerate(page if isinstance(page, list) else [page]):
            if not isinstance(tool, dict) or not isinstance(name := tool.get("name"), str):
                raise ValueError(f"tools.{number}.name" if isinstance(page, list) else "tools")  # noqa: TRY004 - what a server sends
            try:
                self._tools[name] = self._read(name, tool)
            except UnusableError as error:
                shown = one_line(name, self._hide, most_chars=_TITLE_CHARS)
                about = one_line(".".join(error.keys[::-1]), self._hide, most_chars=_TITLE_CHARS)
                self.unusable = (*self.unusable, UnusableTool(shown, error.reason, about))
            self.is_full = len(self._tools) + len(self.unusable) > MOST_TOOLS
            if self.is_full:
                return

    def _read(self, name: str, tool: Mapping[str, Any]) -> ToolInfo:
        if len(self._tools) == MOST_TOOLS:
            raise UnusableError("many")
        # As it is shown, so that no two look alike.
        if not name or one_line(name, str, most_chars=_TOOL_NAME_CHARS) != name:
            raise UnusableError("name")
        if name in self._tools:
            raise UnusableError("twice")
        text = _schema_text(tool.get("inputSchema"), self._hide)
        if len(text) > self._room:
            raise UnusableError("many")
        self._room -= len(text)
        schema = json.loads(text)
        mark = tool["annotations"] if isinstance(tool.get("annotations"), dict) else {}
        is_read_only = mark.get("readOnlyHint") is True
        told = HIDING.sub("", plain_text(_text(tool.get("description"))))
        description = _clipped(self._hide(told).strip(), _DESCRIPTION_CHARS)
        title = _text(tool.get("title")) or _text(mark.get("title")) or name
        return ToolInfo(
            self._server,
            name,
            offered_name(self._server, name),
            one_line(title, self._hide, most_chars=_TITLE_CHARS) or name,
            description,
            schema,
            asks_first(self._server, name, is_read_only=is_read_only, allow=self._allow),
            _hash([name, description, schema, is_read_only]),
            is_read_only,
        )


def _schema_text(raw: object, hide: Hide) -> str:
    """Returns the JSON schema of the arguments, as every endpoint takes it, whole and without secrets."""
    try:
        text = _json(raw)
        plain = plain_value(raw) if _UNSTORABLE.search(text) else raw
        text = hide(_json(strict_schema(plain))) if len(text) <= _SCHEMA_CHARS else text
        if len(text) <= _SCHEMA_CHARS and json.loads(text):  # what is hidden might be a part of the JSON
            return text
    except (ValueError, RecursionError):
        raise UnusableError("schema", "inputSchema") from None
    raise UnusableError("large")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def offered_name(server: str, tool: str) -> str:
    """Returns the name shown to the model: `server__tool`, with a hash of both where that alone might not be unique."""
    name = f"{server}__{tool}"
    clean = _NOT_OFFERED.sub("_", name)
    if clean == name and len(name) <= _NAME_CHARS and "__" not in f"{server}_" and not tool.startswith("_"):
        return name
    return f"{clean[: _NAME_CHARS - _HASH_CHARS - 1]}_{_hash([server, tool])[:_HASH_CHARS]}"


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value, ensure_ascii=True, sort_keys=True).encode()).hexdigest()


def _clipped(text: str, most_chars: int) -> str:
    return text if len(text) <= most_chars else f"{text[: most_chars - 1].rstrip()}…"


def result_of(raw: Mapping[str, Any], *, language: Language, hide: Hide) -> McpResult:
    """Returns a result's text and pictures, scaled; what is neither, or one picture too many, is named in the text.

    What newer servers leave out or send as null is taken as not sent. Raises `ValueError`.
    """
    content = raw.get("content") or []
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise ValueError("content")
    texts: list[str] = []
    images: list[str] = []
    tries = 0
    for part in content:
        text = _text_of(part)
        if text is None:
            name, kind, data = _data_of(part)
            tries += kind in _PICTURES
            if kind in _PICTURES and tries <= MAX_IMAGES and (image := _picture(data)):
                images.append(image)
                continue
            text = words.left_out(f"{name} {kind}".strip(), language)
        texts.append(text)
    structured = raw.get("structuredContent")
    if structured is not None and not _says(texts, structured):
        texts.append(json.dumps(structured, ensure_ascii=False))
    text = hide(plain_text("\n\n".join(text for text in texts if text.strip())))
    is_error = raw.get("isError") in (True, "true")
    return McpResult(text or ("" if images else words.EMPTY[language]), tuple(images), is_error)


def _text_of(part: Mapping[str, Any]) -> str | None:
    match part:
        case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return _with_letters(text)
        case {"type": "resource_link", "uri": str(address)}:
            return address
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


def _data_of(part: Mapping[str, Any]) -> tuple[str, str, str]:
    """Returns the name, the kind and the Base64 of what isn't text."""
    match part:
        case {"type": "image" | "audio", "data": str(data)}:
            return "", _text(part.get("mimeType")).lower(), data
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return _text(resource.get("uri")), _text(resource.get("mimeType")).lower(), data
        case _:
            return "", _text(part.get("type")), ""


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
