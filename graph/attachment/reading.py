"""Reads an attached file as text."""

from __future__ import annotations

import codecs
import re
from pathlib import PurePath
from typing import Final

from graph.attachment.pdf import pdf_pages
from graph.core.attached import Attachment, attachment_of
from graph.core.text import has_visible, plain_text
from graph.value.error import AttachmentError

_UTF_16: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Characters of no text; nearly every binary file has one of them.
_CONTROL: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# A syllable or sign of EUC-KR. Text in CP949 has some; a Western text with one of CP949's rare syllables for each curly
# apostrophe has none.
_EUC_KR: Final = re.compile(rb"[\xa1-\xfe]{2}")


def decode(data: bytes) -> str | None:
    """Decodes UTF-8, UTF-16 with a byte order mark, or CP949, a superset of EUC-KR.

    Returns:
        None for any other encoding and for binary data.
    """
    encodings = ("utf-16",) if data.startswith(_UTF_16) else ("utf-8-sig", "cp949")
    for encoding in encodings:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        is_text = "\0" not in text
        if encoding == "cp949":
            is_text = is_text and _EUC_KR.search(data) is not None and not _CONTROL.search(text)
        return text if is_text else None
    return None


MAX_FILES: Final = 10
MAX_BYTES: Final = 10 * 1024 * 1024
_PDF: Final = ".pdf"
# Extensions of text files; the content is checked all the same.
_TEXT: Final = [
    ".txt",
    ".text",
    ".md",
    ".markdown",
    ".rst",
    ".adoc",
    ".tex",
    ".log",
    ".csv",
    ".tsv",
    ".json",
    ".jsonl",
    ".ndjson",
    ".yaml",
    ".yml",
    ".toml",
    ".ini",
    ".cfg",
    ".conf",
    ".properties",
    ".xml",
    ".html",
    ".htm",
    ".css",
    ".scss",
    ".less",
    ".svg",
    ".js",
    ".mjs",
    ".cjs",
    ".jsx",
    ".ts",
    ".tsx",
    ".vue",
    ".svelte",
    ".py",
    ".pyi",
    ".ipynb",
    ".java",
    ".kt",
    ".kts",
    ".scala",
    ".groovy",
    ".gradle",
    ".c",
    ".h",
    ".cc",
    ".cpp",
    ".cxx",
    ".hpp",
    ".cs",
    ".go",
    ".rs",
    ".swift",
    ".m",
    ".mm",
    ".rb",
    ".php",
    ".pl",
    ".pm",
    ".lua",
    ".r",
    ".jl",
    ".dart",
    ".ex",
    ".exs",
    ".erl",
    ".hs",
    ".ml",
    ".clj",
    ".sh",
    ".bash",
    ".zsh",
    ".fish",
    ".ps1",
    ".bat",
    ".cmd",
    ".sql",
    ".graphql",
    ".proto",
    ".tf",
    ".diff",
    ".patch",
    ".srt",
    ".vtt",
    ".ics",
    ".eml",
    ".po",
]
EXTENSIONS: Final = (_PDF, *_TEXT)


def read_attachment(name: str, data: bytes, *, max_chars: int) -> Attachment:
    """Returns the text of a file with its name.

    Args:
        name: File name; its extension determines the kind.
        data: The file.
        max_chars: Maximum characters of the text.

    Raises:
        AttachmentError: The file is of an unsupported kind, too large or too long, or contains no text.
    """
    shown = attachment_of(name, "").name
    ending = PurePath(shown).suffix.lower()
    if ending not in EXTENSIONS:
        raise AttachmentError("kind", shown)
    if len(data) > MAX_BYTES:
        raise AttachmentError("too_large", shown)
    text = _pdf_text(shown, data, max_chars) if ending == _PDF else decode(data)
    if text is None:
        raise AttachmentError("not_text", shown)
    if not has_visible(text):
        raise AttachmentError("no_text" if ending == _PDF else "empty", shown)
    read = attachment_of(name, plain_text(text))
    if len(read.text) > max_chars:
        raise AttachmentError("too_long", shown)
    return read


def _pdf_text(name: str, data: bytes, max_chars: int) -> str:
    """Joins the pages, each after its number if there are several."""
    pages = [_without_trailing(page) for page in pdf_pages(name, data, max_chars=max_chars)]
    if len(pages) == 1 or not any(map(has_visible, pages)):
        return "\n".join(pages)
    return "\n\n".join(f"— {number} —\n{page}" for number, page in enumerate(pages, 1))


def _without_trailing(page: str) -> str:
    return "\n".join(line.rstrip() for line in page.split("\n")).strip("\n")
