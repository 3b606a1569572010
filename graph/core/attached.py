"""Renders attached files and images in a message: a label line with the file's name, then the text in a fence."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, ToolMessage

from graph.core.turn import IMAGE_NAME, closed_mark, image_name, image_parts, split_turns, without_images, words_of
from graph.value.client import is_image_url
from graph.value.view import NamedImage
from prompt.system.framing import (
    ATTACHMENT_LABEL,
    CONTENTS_HEAD,
    LEFT_OUT_NOTE,
    RESULT_IMAGES,
    SENT_NOTE,
    UNREAD_NOTE,
    Language,
)

_NAME_CHARS: Final = 100
_SHORTEST_FENCE: Final = 3
_FOLDER: Final = re.compile(r"[/\\]")
_FENCE: Final = re.compile("`{3,}")
_LABELS: Final = "|".join(re.escape(label).replace(r"\{name\}", "([^\n]+)") for label in ATTACHMENT_LABEL.values())
_UNREAD_NOTES: Final = "|".join(re.escape(note).replace(r"\{count\}", r"\d+") for note in UNREAD_NOTE.values())
_LEFT_OUT_NOTES: Final = "|".join(re.escape(note).replace(r"\{count\}", r"(\d+)") for note in LEFT_OUT_NOTE.values())
_UNREAD: Final = re.compile(rf"\n(?:{_UNREAD_NOTES})(?:\n(?:{_LEFT_OUT_NOTES}))?\Z")
_LEFT_OUT: Final = re.compile(rf"\n(?:{_LEFT_OUT_NOTES})\Z")
_SENT_NOTES: Final = "|".join(
    re.escape(note).replace(r"\{lines\}", r"(\d+)").replace(r"\{all\}", r"\d+").replace(r"\{chars\}", r"\d+")
    for note in SENT_NOTE.values()
)
_HEADS: Final = "|".join(map(re.escape, CONTENTS_HEAD.values()))
_SENT: Final = re.compile(rf"\n(?:{_SENT_NOTES})(?:\n(?:{_HEADS})(?:\n\d+: [^\n]*+)++)?\Z")
_HEAD: Final = re.compile(rf"^(?:{_LABELS})\n(`{{3,}})\n", re.MULTILINE)


class Attachment(NamedTuple):
    r"""A file's display name, and its text with "\n" line ends."""

    name: str
    text: str

    @property
    def is_partial(self) -> bool:
        """Whether parts of the file couldn't be read; one of its last lines says so."""
        return _UNREAD.search(self.text) is not None

    @property
    def left_out(self) -> int:
        """How many pictures, objects and scanned pages the file has, which weren't read."""
        found = _LEFT_OUT.search(self.text)
        return int(next(filter(None, found.groups()))) if found else 0

    @property
    def sent_lines(self) -> int:
        """How many lines of a long file are sent; 0 of a file that is sent whole."""
        found = _SENT.search(self.text)
        return int(next(filter(None, found.groups()))) if found else 0


def attachment_of(name: str, text: str) -> Attachment:
    """Returns an attachment with a one-line name and without blank lines around the text."""
    return Attachment(_shown(name), text.replace("\r\n", "\n").replace("\r", "\n").strip("\n"))


def with_unread(attachment: Attachment, unread: int, left_out: int, language: Language) -> Attachment:
    """Adds last lines which tell how many parts of the file couldn't be read, and how many aren't text."""
    notes = ((UNREAD_NOTE, unread), (LEFT_OUT_NOTE, left_out))
    lines = [attachment.text, *(note[language].format(count=count) for note, count in notes if count)]
    return attachment._replace(text="\n".join(lines))


def with_attachments(typed: str, attachments: Sequence[Attachment], language: Language) -> str:
    """Joins the typed text and the texts of files; the inverse of `split_attached`."""
    blocks = [_block(attachment, language) for attachment in attachments]
    return "\n\n".join([typed] * bool(typed) + blocks)


def split_attached(message: str) -> tuple[str, list[Attachment]]:
    """Returns the typed text and the files in order; an unclosed fence is part of the text."""
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


def map_attached(message: str, change: Callable[[Sequence[Attachment], Language], Sequence[Attachment]]) -> str:
    """Returns the message with other files in the places of its own, labelled as they were."""
    found = list(_blocks(message))
    languages: list[Language] = [_language_of(message, begin) for begin, _, _ in found]
    changed = change([file for _, _, file in found], languages[0]) if found else ()
    for (begin, end, file), language, other in reversed([*zip(found, languages, changed, strict=True)]):
        if other != file:
            message = message[:begin] + _block(other, language) + message[end:]
    return message


def own_words(message: str) -> str:
    """Returns the message without the texts of files, or their names if there is nothing else."""
    typed, attachments = split_attached(message)
    return typed or "\n".join(attachment.name for attachment in attachments)


def _block(attachment: Attachment, language: Language) -> str:
    longest = max((len(run) for run in _FENCE.findall(attachment.text)), default=0)
    mark = "`" * max(longest + 1, _SHORTEST_FENCE)
    return f"{ATTACHMENT_LABEL[language].format(name=attachment.name)}\n{mark}\n{attachment.text}\n{mark}"


def _language_of(message: str, begin: int) -> Language:
    """Returns the language of the label that stands here."""
    starts = {language: label.partition("{")[0] for language, label in ATTACHMENT_LABEL.items()}
    return next(language for language, start in starts.items() if message.startswith(start, begin))


def _blocks(message: str) -> Iterator[tuple[int, int, Attachment]]:
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
    found = message.find(f"\n{line}\n", begin - 1)
    if found < 0 and message.endswith(f"\n{line}", begin - 1):
        found = len(message) - len(line) - 1
    return found + 1 if found >= 0 else -1


def _shown(name: str) -> str:
    last = _FOLDER.split(unicodedata.normalize("NFC", name))[-1]
    seen = "".join(char if char.isprintable() else " " for char in last).replace("[", "(").replace("]", ")")
    whole = " ".join(seen.split()) or "?"
    if len(whole) <= _NAME_CHARS:
        return whole
    stem, dot, ending = whole.rpartition(".")
    ending_part = f"…{dot}{ending}" if stem and len(ending) < _NAME_CHARS // 2 else "…"
    return whole[: _NAME_CHARS - len(ending_part)] + ending_part


_DATA: Final = "data:"
_REFERENCE: Final = "image:"
_SHOWN_CHARS: Final = 64


def question_of(text: str, images: Sequence[str | NamedImage], *, message_id: str) -> HumanMessage:
    """Returns a user's message as archived; the images are URLs accepted by `is_image_url`, some with a name."""
    named = (image if isinstance(image, NamedImage) else NamedImage("", image) for image in images)
    ending_part = [NamedImage(image.name and _shown(image.name), reference_of(image.url)) for image in named]
    return HumanMessage(content_of(text, ending_part), id=message_id)


def url_of(image: str | NamedImage) -> str:
    return image if isinstance(image, str) else image.url


def content_of(text: str, images: Sequence[str | NamedImage]) -> str | list[str | dict[str, Any]]:
    if not images:
        return text
    parts = map(_part_of, images)
    return [{"type": "text", "text": text}, *parts] if text else [*parts]


def _part_of(image: str | NamedImage) -> dict[str, Any]:
    name = {IMAGE_NAME: image.name} if isinstance(image, NamedImage) and image.name else {}
    return {"type": "image_url", "image_url": {"url": url_of(image)}, **name}


def reference_of(url: str) -> str:
    """Returns the archive's substitute for a `data:` URL, its hash; other URLs are returned unchanged."""
    if url[: len(_DATA)].lower() != _DATA:
        return url
    return _REFERENCE + hashlib.sha256(url.encode()).hexdigest()


def is_reference(url: str) -> bool:
    """Returns True for what stands in the archive for a picture that was sent whole, not for an address."""
    return url.startswith(_REFERENCE)


def data_urls(urls: Iterable[str]) -> dict[str, str]:
    references = ((reference_of(url), url) for url in urls)
    return {reference: url for reference, url in references if reference != url}


def urls_of(message: BaseMessage) -> tuple[str, ...]:
    return tuple(str(part["image_url"]["url"]) for part in image_parts(message))


def images_of(message: BaseMessage) -> tuple[NamedImage, ...]:
    return tuple(map(NamedImage, map(image_name, image_parts(message)), urls_of(message)))


def shortened_url(url: str) -> str:
    return url if len(url) <= _SHOWN_CHARS else f"{url[:_SHOWN_CHARS]}… ({len(url)} characters)"


def references_in(messages: Iterable[BaseMessage]) -> set[str]:
    return {url for message in messages for url in urls_of(message) if is_reference(url)}


def with_images(messages: Sequence[AnyMessage], found: Mapping[str, str]) -> list[AnyMessage]:
    """Returns the messages with images (`data:` URLs by reference) in place of their references.

    Unknown images are sent as text, and so are those of a failed turn: a model without image support would refuse
    every later turn as well. Those of tools' results follow them in a message of their own, or in the user's next one.
    """
    failed = {id(message) for turn in split_turns(messages) if _has_failed(turn) for message in turn}
    sent: list[AnyMessage] = []
    of_results: list[str] = []
    for message in (*messages, None):
        if isinstance(message, ToolMessage):
            if id(message) not in failed:
                of_results += filter(is_image_url, (found.get(url, url) for url in urls_of(message)))
            sent.append(without_images(message))
            continue
        shown = message and _with_images(message, found, is_text_only=id(message) in failed)
        if of_results:
            pictures = HumanMessage(content_of(RESULT_IMAGES, of_results))
            of_results = []
            if isinstance(shown, HumanMessage):  # strict chat templates refuse two messages of the user's in a row
                shown = shown.model_copy(update={"content": [*pictures.content, *_parts_in(shown)]})
            else:
                sent.append(pictures)
        sent += [shown] if shown else []
    return sent


def _parts_in(message: AnyMessage) -> list[str | dict[str, Any]]:
    content = message.content
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _with_images(message: AnyMessage, found: Mapping[str, str], *, is_text_only: bool) -> AnyMessage:
    urls = [found.get(url, url) for url in urls_of(message)]
    if is_text_only or not all(map(is_image_url, urls)):
        return without_images(message)
    words = words_of(message)
    return message if not urls else message.model_copy(update={"content": content_of(words, urls)})


def _has_failed(turn: Sequence[AnyMessage]) -> bool:
    return (closed_mark(turn[-1]) or {}).get("closed") == "failed"
