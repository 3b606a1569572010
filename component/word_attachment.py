"""The page's texts on attached files, with English defaults; `word_attachment_ko` has the Korean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_REASONS: Final[Mapping[str, str]] = {
    "busy": "The server is reading other PDFs just now. Attach it again in a moment.",
    "damaged": "This PDF is damaged and can't be read.",
    "empty": "There is no text in this file.",
    "encrypted": "This PDF has a password. Save it without one first.",
    "kind": "Only text files (Markdown, code, CSV and the like) and PDF can be attached.",
    "lost": "The attached files are no longer there. Attach them again, then send the message.",
    "no_text": "This PDF has no text, only pictures of pages.",
    "not_text": "This isn't a text file, or its encoding isn't known. Save it as UTF-8.",
    "too_heavy": "Reading this PDF takes too much time or memory.",
    "too_large": "This file is larger than 10 MB.",
    "too_long": "The text of this file is longer than a message may be. Attach a part of it.",
    "too_many": "A message takes at most 10 files.",
    "too_many_pages": "This PDF has more than 500 pages. Attach a part of it.",
}


@dataclass(frozen=True)
class AttachmentWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    attach: str = "Attach files"
    drop: str = "Drop text or PDF files here"
    upload_failed: str = "This file couldn't be sent to the server. Remove it and attach it again."
    remove: str = "Remove {name}"
    chip: str = "{name} · {chars} chars"
    kept: str = "These files go with the next message:"
    cut: str = "Only the beginning is shown. The model is sent all {chars} characters."
    reasons: Mapping[str, str] = field(default_factory=lambda: _REASONS)
