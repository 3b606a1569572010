"""Attached files and images as they stand in a message: a file's text behind a line with its name, in a fence."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage

from graph.core.turn import closed_mark, image_parts, split_turns, without_images, words_of
from graph.value.image_url import is_image_url
from prompt.system.framing import ATTACHMENT_LABEL, Language

_NAME_CHARS: Final = 100
_SHORTEST_FENCE: Final = 3
_FOLDER: Final = re.compile(r"[/\\]")
_FENCE: Final = re.compile("`{3,}")
_LABELS: Final = "|".join(re.escape(label).replace(r"\{name\}", "([^\n]+)") for label in ATTACHMENT_LABEL.values())
_HEAD: Final = re.compile(rf"^(?:{_LABELS})\n(`{{3,}})\n", re.MULTILINE)


class Attachment(NamedTuple):
    """A file that was read: its name as it is shown, and its text with line feeds alone between lines."""

    name: str
    text: str


def attachment_of(name: str, text: str) -> Attachment:
    """Returns the attachment with a name of one line, and without blank lines around its text."""
    return Attachment(_shown(name), text.replace("\r\n", "\n").replace("\r", "\n").strip("\n"))


def with_attachments(typed: str, attachments: Sequence[Attachment], language: Language) -> str:
    """Returns the message of what was typed and the texts of files; `split_attached` takes it apart again."""
    blocks = [_block(attachment, language) for attachment in attachments]
    return "\n\n".join([typed] * bool(typed) + blocks)


def split_attached(message: str) -> tuple[str, list[Attachment]]:
    """Returns what was typed, and the files in order; a fence that nothing closes is text."""
    typed: list[str] = []
    found: list[Attachment] = []
    at = 0
    for begin, end, attachment in _blocks(message):
        typed.append(message[at:begin])
        found.append(attachment)
        at = end
    if not found:
        return message, []
    typed.append(message[at:])
    return "\n\n".join(filter(None, (part.strip("\n") for part in typed))), found


def own_words(message: str) -> str:
    """Returns the message without the texts of files; their names stay if there is nothing else."""
    typed, attachments = split_attached(message)
    return typed or "\n".join(attachment.name for attachment in attachments)


def _block(attachment: Attachment, language: Language) -> str:
    longest = max((len(run) for run in _FENCE.findall(attachment.text)), default=0)
    mark = "`" * max(longest + 1, _SHORTEST_FENCE)
    return f"{ATTACHMENT_LABEL[language].format(name=attachment.name)}\n{mark}\n{attachment.text}\n{mark}"


def _blocks(message: str) -> Iterator[tuple[int, int, Attachment]]:
    """Yields where each block begins and ends, and what it holds."""
    at = 0
    unclosed: set[str] = set()
    while (head := _HEAD.search(message, at)) is not None:
        *names, mark = head.groups()
        closing = -1 if mark in unclosed else _find_line(message, mark, head.end())
        if closing < 0:
            unclosed.add(mark)
            at = head.end() - 1
            continue
        at = closing + len(mark)
        text = message[head.end() : max(head.end(), closing - 1)]
        yield head.start(), at, Attachment(next(filter(None, names)), text)


def _find_line(message: str, line: str, begin: int) -> int:
    """Returns where a line begins that is this one, from the beginning of a line on; -1 if there is none."""
    found = message.find(f"\n{line}\n", begin - 1)
    if found < 0 and message.endswith(f"\n{line}", begin - 1):
        found = len(message) - len(line) - 1
    return found + 1 if found >= 0 else -1


def _shown(name: str) -> str:
    """Returns a file's name in one line, composed, without its folders; a long one keeps its ending."""
    last = _FOLDER.split(unicodedata.normalize("NFC", name))[-1]
    seen = "".join(char if char.isprintable() else " " for char in last).replace("[", "(").replace("]", ")")
    whole = " ".join(seen.split()) or "?"
    if len(whole) <= _NAME_CHARS:
        return whole
    stem, dot, ending = whole.rpartition(".")
    kept = f"…{dot}{ending}" if stem and len(ending) < _NAME_CHARS // 2 else "…"
    return whole[: _NAME_CHARS - len(kept)] + kept


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
