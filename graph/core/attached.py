"""How the text of a file stands in a message: behind a line with its name, in a fence that the text can't close."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from prompt.system.attachment_label import ATTACHMENT_LABEL
from prompt.system.framing import Language

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
