"""Images in messages: the archive has a reference in place of a `data:` URL, and texts say that one was there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from graph.core.close_turn import closed_mark
from graph.core.turn import image_parts, split_turns, without_images, words_of
from graph.image_url import is_image_url

_DATA: Final = "data:"
_REFERENCE: Final = "image:"
_SHOWN_CHARS: Final = 64


def question_of(text: str, images: Sequence[str], *, message_id: str) -> HumanMessage:
    """Returns a user's message as it's archived: its text, and then references to its images.

    Args:
        text: What `plain_text` returns.
        images: The URLs of its images, each of which `is_image_url` allows.
        message_id: Its id.
    """
    return HumanMessage(content_of(text, [reference_of(url) for url in images]), id=message_id)


def content_of(text: str, urls: Sequence[str]) -> str | list[str | dict[str, Any]]:
    """Returns the content of a message with this text and, behind it, these images; without images the text itself."""
    if not urls:
        return text
    images = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    return [{"type": "text", "text": text}, *images] if text else [*images]


def reference_of(url: str) -> str:
    """Returns what the archive has in place of a `data:` URL: its hash; any other URL stands there as it is."""
    if url[: len(_DATA)].lower() != _DATA:
        return url
    return _REFERENCE + hashlib.sha256(url.encode()).hexdigest()


def data_urls(urls: Iterable[str]) -> dict[str, str]:
    """Returns the `data:` URLs by the references to them; other URLs need none."""
    references = ((reference_of(url), url) for url in urls)
    return {reference: url for reference, url in references if reference != url}


def urls_of(message: BaseMessage) -> tuple[str, ...]:
    """Returns what a message has in place of its images, in order: references, or URLs as they are."""
    return tuple(str(part["image_url"]["url"]) for part in image_parts(message))


def shortened_url(url: str) -> str:
    """Returns the beginning of a `data:` URL and how long it is, for whoever looks at a request."""
    return url if len(url) <= _SHOWN_CHARS else f"{url[:_SHOWN_CHARS]}… ({len(url)} characters)"


def references_in(messages: Iterable[BaseMessage]) -> set[str]:
    """Returns the references to images that the messages have."""
    return {url for message in messages for url in urls_of(message) if url.startswith(_REFERENCE)}


def with_images(messages: Sequence[AnyMessage], found: Mapping[str, str]) -> list[AnyMessage]:
    """Returns the messages as a provider is sent them: with images in place of their references.

    A message whose images can't be found is sent as text. So is that of a turn that failed: a model that takes no
    images has refused it, and would refuse every later turn.

    Args:
        messages: In order.
        found: The `data:` URLs by the references to them.
    """
    failed = {id(turn[0]) for turn in split_turns(messages) if _has_failed(turn)}
    return [_with_images(message, found, is_told=id(message) in failed) for message in messages]


def _with_images(message: AnyMessage, found: Mapping[str, str], *, is_told: bool) -> AnyMessage:
    urls = [found.get(url, url) for url in urls_of(message)]
    if is_told or not all(map(is_image_url, urls)):
        return without_images(message)
    words = words_of(message)
    return message if not urls else message.model_copy(update={"content": content_of(words, urls)})


def _has_failed(turn: Sequence[AnyMessage]) -> bool:
    return (closed_mark(turn[-1]) or {}).get("closed") == "failed"
