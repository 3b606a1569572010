"""Checks a user's message before anything is reserved for it or stored."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from langchain_core.messages import HumanMessage

from graph.core.image import question_of
from graph.core.text import check_text, plain_text
from graph.core.token import estimate_tokens
from graph.error import InputError, NotFoundError
from graph.image_url import is_image_url
from graph.service.access import SessionAccess
from graph.view import TurnOptions

_SMALLEST_WINDOW_TOKENS: Final = 1_000


def accepted(
    access: SessionAccess,
    session_id: str,
    text: str,
    message_id: str | None,
    options: TurnOptions,
    images: Sequence[str],
) -> HumanMessage:
    """Returns the message to store, once all that is sent is found to be valid.

    Raises:
        InputError: The text, an image or an option is invalid.
    """
    if text or not images:
        check_text(text, max_chars=access.settings.message_chars)
    if not all(is_image_url(url) and url.isprintable() for url in images):
        raise InputError("bad_image")
    text = plain_text(text)
    access.chosen(options)
    _check_window(access, session_id, text, options)
    return question_of(text, images, message_id=plain_text(message_id or f"user-{uuid.uuid4().hex}"))


def _check_window(access: SessionAccess, session_id: str, text: str, options: TurnOptions) -> None:
    """Refuses a message that alone fills the context window, as no fold could make it fit."""
    tokens = estimate_tokens(text)
    if tokens < _SMALLEST_WINDOW_TOKENS:
        return
    name = options.model or ""
    with suppress(NotFoundError):
        name = name or access.own(session_id).model
    window = access.models.window_tokens(name or access.models.default_name)
    if tokens >= window:
        raise InputError("over_window", f"≈{tokens} > {window}")
