"""Fits the rules that apply into what a model is sent of them: the nearest file first, whole lines, a visible cut."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from graph.layer.rule_file import RuleFile
from prompt.system.rule_quote import note_bytes_left_out, quote_description, quote_rules

MAX_SENT_BYTES: Final = 32_768
# Within a folder. What depends on the current file comes last, so that the persistent text doesn't.
_RANKS: Final = ("always", "described", "globs")


@dataclass(frozen=True)
class RuleShare:
    """What is sent of one file.

    Attributes:
        file: The file.
        text: What is sent: whole lines of its text, or its description.
        left_out_bytes: What isn't sent of that because there is no room.
        size_bytes: Size of the file, or of its description.
    """

    file: RuleFile
    text: str
    left_out_bytes: int
    size_bytes: int

    @property
    def sent_bytes(self) -> int:
        """Length of what is sent."""
        return len(self.text.encode())


@dataclass(frozen=True)
class RuleText:
    """What a model is sent of the rules, as quoted data.

    Attributes:
        persistent: The rules of the root, and what describes those that can be read; "" for none.
        volatile: The rules that are there for the current file: of the folders on its way, and by globs; "" for none.
        shares: What is sent of each file, in the order of the two texts.
    """

    persistent: str
    volatile: str
    shares: tuple[RuleShare, ...]


def fit_rules(files: Sequence[RuleFile], current_file: str) -> RuleText:
    """Gives each file that applies its share of 32 KiB: the nearest to the current file first, cut at a line's end.

    The persistent text is the same for every current file: it leaves the room that the folders on the way to any file
    need at most.

    Args:
        files: In the order of the text, from the root on.
        current_file: Relative to the root, "" for none.
    """
    applying = [file for file in files if file.applies_to(current_file)]
    persistent = _fit([file for file in applying if _is_persistent(file)], MAX_SENT_BYTES - _reserved_bytes(files))
    left_bytes = MAX_SENT_BYTES - sum(share.sent_bytes for share in persistent)
    volatile = _fit([file for file in applying if not _is_persistent(file)], left_bytes)
    return RuleText(_join(persistent), _join(volatile), (*persistent, *volatile))


def _is_persistent(file: RuleFile) -> bool:
    """Whether it is sent whatever the current file is, as part of the stable front."""
    return not file.folder and file.kind != "globs"


def _reserved_bytes(files: Sequence[RuleFile]) -> int:
    """Returns how much the folders on the way to a file need at most, whichever file that is."""
    ways = {file.folder for file in files if file.folder}
    needs = [
        sum(len(_whole(file).encode()) for file in files if file.folder and file.applies_to(f"{way}/")) for way in ways
    ]
    return min(MAX_SENT_BYTES, max(needs, default=0))


def _fit(files: Sequence[RuleFile], room_bytes: int) -> tuple[RuleShare, ...]:
    """Shares the room among files, the nearest served first; returns the shares in the files' order."""
    shares: dict[int, RuleShare] = {}
    for index in sorted(range(len(files)), key=lambda index: _turn(files[index])):
        shares[index] = _share(files[index], room_bytes)
        room_bytes -= shares[index].sent_bytes
    return tuple(shares[index] for index in range(len(files)))


def _turn(file: RuleFile) -> tuple[int, int]:
    depth = file.folder.count("/") + 1 if file.folder else 0
    return -depth, _RANKS.index(file.kind)


def _share(file: RuleFile, room_bytes: int) -> RuleShare:
    is_described = file.kind == "described"
    whole = _whole(file)
    unread_bytes = 0 if is_described else file.unread_bytes
    text = cut_lines(whole, room_bytes)
    left_out_bytes = len(whole.encode()) - len(text.encode()) + unread_bytes
    return RuleShare(file, text, left_out_bytes, len(whole.encode()) if is_described else file.size_bytes)


def _whole(file: RuleFile) -> str:
    return file.front_matter.description if file.kind == "described" else file.text


def cut_lines(text: str, room_bytes: int) -> str:
    """Returns as many whole lines of a text as fit into the room, without the last one's end."""
    data = text.encode()
    return text if len(data) <= room_bytes else data[: max(0, data.rfind(b"\n", 0, room_bytes + 1))].decode()


def _join(shares: Iterable[RuleShare]) -> str:
    return "\n".join(filter(None, map(_quote, shares)))


def _quote(share: RuleShare) -> str:
    file, note = share.file, ""
    if share.left_out_bytes:
        note = note_bytes_left_out(share.left_out_bytes, share.size_bytes)
    elif not share.text:
        return ""
    return (
        quote_description(file.name, share.text, note)
        if file.kind == "described"
        else quote_rules(file.path, share.text, note)
    )
