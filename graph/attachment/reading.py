"""Reads an attached file as text; PDF, Office and HWPX in a child process with limits of time, memory and text."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Final, NamedTuple, cast

from graph.attachment.encoding import CONTROL, MARK, UTF_16, Decoded, decode
from graph.core.attached import Attachment, attachment_of, with_unread
from graph.core.text import has_visible, plain_text
from graph.value.error import AttachmentError, AttachmentReason
from prompt.system.framing import DOCUMENT_LABELS, Language

_CHILD: Final = Path(__file__).with_name("child.py")
_MEMORY_BYTES: Final = 512 * 1024 * 1024
_MAX_PAGES: Final = 500
_SECONDS: Final = 20
# Leaves processor time for other requests while heavy files are sent.
_AT_ONCE: Final = threading.BoundedSemaphore(2)


class Pages(NamedTuple):
    """The text of each page, None for one that can't be read, and the number of pictures and objects without text."""

    texts: list[str | None]
    left_out: int


def pdf_pages(name: str, data: bytes, *, max_chars: int, seconds: int = _SECONDS, language: Language = "en") -> Pages:
    """Returns the pages of a PDF with their form fields and notes, or a document of Office or HWPX as one page.

    Args:
        name: File name, used in errors.
        data: The file.
        max_chars: Maximum characters of all pages together.
        seconds: Limit of the wall time and of the processor time.
        language: That of the labels above a speaker's notes and comments.

    Raises:
        AttachmentError: `damaged`, `encrypted`, `kind`, `too_heavy`, `too_long` or `too_many_pages`; `busy` if other
            files are being read for too long.
    """
    limits = map(str, (seconds, _MEMORY_BYTES, _MAX_PAGES, max_chars))
    if not _AT_ONCE.acquire(timeout=seconds):
        raise AttachmentError("busy", name)
    try:
        done = subprocess.run(  # noqa: S603  # our own script; the file is its input alone
            [sys.executable, "-I", str(_CHILD), *limits, *DOCUMENT_LABELS[language]],
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            env={},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AttachmentError("too_heavy", name) from None
    finally:
        _AT_ONCE.release()
    if done.returncode:  # below 0: a limit has ended it
        raise AttachmentError("too_heavy" if done.returncode < 0 else "damaged", name)
    result: Any = json.loads(done.stdout)
    if isinstance(result, str):
        raise AttachmentError(cast("AttachmentReason", result), name)
    pages, left_out = result
    return Pages([None if page is None else str(page) for page in pages], int(left_out))


MAX_FILES: Final = 10
MAX_BYTES: Final = 10 * 1024 * 1024
# Told by their names alone, so that nobody has to upload them first.
REFUSED_KINDS: Final[Mapping[str, AttachmentReason]] = {
    ".hwp": "hwp",
    **dict.fromkeys((".doc", ".xls", ".ppt"), "old_office"),
    **dict.fromkeys((".zip", ".7z", ".rar", ".gz", ".exe", ".dll", ".dmg", ".iso", ".mp3", ".wav", ".m4a"), "kind"),
    **dict.fromkeys((".mp4", ".mov", ".avi", ".mkv", ".webm"), "kind"),
}
_PDF: Final = ".pdf"
_PDF_MARK: Final = b"%PDF-"
_ZIP_MARK: Final = b"PK\x03\x04"
_DOCUMENTS: Final = (".docx", ".xlsx", ".pptx", ".hwpx")
_LOCKED_MARK: Final = b"\xd0\xcf\x11\xe0"  # an Office document with a password
_HWP_MARK: Final = b"HWP Document File"


def read_attachment(name: str, data: bytes, *, max_chars: int, language: Language = "en") -> Attachment:
    """Returns the text of a file with its name: of a PDF, Office or HWPX document, or of whatever decodes as text.

    What can't be read of a damaged file is marked with U+FFFD; its last lines tell so, and what was left out, in the
    language.

    Raises:
        AttachmentError: The file is of an unsupported kind, too large or too long, or contains no text.
    """
    shown = attachment_of(name, "").name
    suffix = PurePath(shown).suffix.lower()
    if suffix in REFUSED_KINDS:
        raise AttachmentError(REFUSED_KINDS[suffix], shown)
    is_pdf = suffix == _PDF or data.startswith(_PDF_MARK)
    if len(data) > MAX_BYTES:
        raise AttachmentError("too_large", shown)
    is_document = suffix in _DOCUMENTS or data.startswith(_ZIP_MARK)
    if _HWP_MARK in data and not (is_pdf or data.startswith(_ZIP_MARK)) and CONTROL.search(data.decode("latin-1")):
        raise AttachmentError("hwp", shown)
    if is_document and data.startswith(_LOCKED_MARK):
        raise AttachmentError("encrypted", shown)
    left_out = 0
    if is_pdf or is_document:
        decoded, left_out = _document_text(shown, data, max_chars, language)
    elif (found := decode(data)) is not None:
        decoded = found
    else:
        is_binary = CONTROL.search(data.decode("latin-1")) and not data.startswith(UTF_16)
        raise AttachmentError("kind" if is_binary else "not_text", shown)
    if not has_visible(decoded.text):
        raise AttachmentError("no_text" if is_pdf or left_out else "empty", shown)
    read = with_unread(attachment_of(name, plain_text(decoded.text)), decoded.bad_count, left_out, language)
    if len(read.text) > max_chars:
        raise AttachmentError("too_long", shown)
    return read


def _document_text(name: str, data: bytes, max_chars: int, language: Language) -> tuple[Decoded, int]:
    """Joins the pages, each after its number if there are several; and returns how much is left out."""
    read = pdf_pages(name, data, max_chars=max_chars, language=language)
    pages = [None if page is None else _without_trailing(page) for page in read.texts]
    if len(pages) == 1 or not any(page is not None and has_visible(page) for page in pages):
        return Decoded("\n".join(filter(None, pages)), 0), read.left_out
    text = "\n\n".join(f"— {number} —\n{MARK if page is None else page}" for number, page in enumerate(pages, 1))
    return Decoded(text, pages.count(None)), read.left_out


def _without_trailing(page: str) -> str:
    return "\n".join(line.rstrip() for line in page.split("\n")).strip("\n")
