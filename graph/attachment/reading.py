"""Reads a file that a user attaches to a message, as text."""

from __future__ import annotations

from pathlib import PurePath
from typing import Final

from graph.attachment.decode import decode
from graph.attachment.pdf import pdf_pages
from graph.attachment_error import AttachmentError
from graph.core.attached import Attachment, attachment_of
from graph.core.text import has_visible, plain_text

MAX_FILES: Final = 10
MAX_BYTES: Final = 10 * 1024 * 1024
_PDF: Final = ".pdf"
# Endings of files that are text; what stands in them is looked at all the same.
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
        name: What the user's computer calls it; its ending says of what kind it is.
        data: The file.
        max_chars: The most characters that its text may have.

    Raises:
        AttachmentError: It isn't of a kind that is taken, too large or too long, or there is no text in it.
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
    """Returns the pages below each other, each behind its number if there are several."""
    pages = [_without_trailing(page) for page in pdf_pages(name, data, max_chars=max_chars)]
    if len(pages) == 1 or not any(map(has_visible, pages)):
        return "\n".join(pages)
    return "\n\n".join(f"— {number} —\n{page}" for number, page in enumerate(pages, 1))


def _without_trailing(page: str) -> str:
    return "\n".join(line.rstrip() for line in page.split("\n")).strip("\n")
