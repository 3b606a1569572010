"""Images in messages: the archive has a reference in place of a `data:` URL, and texts say that one was there."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from langchain_core.messages import HumanMessage

_DATA: Final = "data:"
_REFERENCE: Final = "image:"
_SENT: Final = ("data:image/", "http://", "https://")


def is_image_url(url: str) -> bool:
    """Whether a provider may be sent this image: one with its bytes in the URL, or one that the provider fetches."""
    return url[:16].lower().startswith(_SENT)


def reference_of(url: str) -> str:
    """Returns what the archive has in place of a `data:` URL: its hash; any other URL stands there as it is."""
    if url[: len(_DATA)].lower() != _DATA:
        return url
    return _REFERENCE + hashlib.sha256(url.encode()).hexdigest()


def question_of(text: str, images: Sequence[str], *, message_id: str) -> HumanMessage:
    """Returns a user's message as it's archived: its text, and then references to its images.

    Args:
        text: What `plain_text` returns.
        images: The URLs of its images, each of which `is_image_url` allows.
        message_id: Its id.
    """
    if not images:
        return HumanMessage(text, id=message_id)
    parts: list[str | dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": reference_of(url)}} for url in images
    ]
    return HumanMessage([{"type": "text", "text": text}, *parts] if text else parts, id=message_id)
