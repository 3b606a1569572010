"""The rules files of a project, as found or as accepted by an owner."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from graph.layer.rule_file import RuleFile
from prompt.system.framing import note_bytes_left_out, quote_description, quote_rules

MAX_SENT_BYTES: Final = 32_768
# Order within a folder. Kinds that depend on the current file come last, so that the persistent text doesn't.
_RANKS: Final = ("always", "described", "globs")


@dataclass(frozen=True)
class RuleShare:
    """The part of a file that is sent: whole lines of its text, or its description."""

    file: RuleFile
    text: str
    left_out_bytes: int
    size_bytes: int

    @property
    def sent_bytes(self) -> int:
        return len(self.text.encode())


@dataclass(frozen=True)
class RuleText:
    """The rules as sent to a model, as quoted data.

    `persistent` has the root's rules and descriptions of readable rules, `volatile` the rules for the current file.
    """

    persistent: str
    volatile: str
    shares: tuple[RuleShare, ...]


def fit_rules(files: Sequence[RuleFile], current_file: str) -> RuleText:
    """Allots 32 KiB to the files that apply: the nearest to the current file first, cut at a line's end.

    The persistent text is the same for every current file: it leaves as much room as the folders on any path can need.
    """
    applying = [file for file in files if file.applies_to(current_file)]
    persistent = _fit([file for file in applying if _is_persistent(file)], MAX_SENT_BYTES - _reserved_bytes(files))
    left_bytes = MAX_SENT_BYTES - sum(share.sent_bytes for share in persistent)
    volatile = _fit([file for file in applying if not _is_persistent(file)], left_bytes)
    return RuleText(_join(persistent), _join(volatile), (*persistent, *volatile))


def _is_persistent(file: RuleFile) -> bool:
    """True for rules sent whatever the current file, as part of the stable prefix."""
    return not file.folder and file.kind != "globs"


def _reserved_bytes(files: Sequence[RuleFile]) -> int:
    ways = {file.folder for file in files if file.folder}
    needs = [
        sum(len(_whole(file).encode()) for file in files if file.folder and file.applies_to(f"{way}/")) for way in ways
    ]
    return min(MAX_SENT_BYTES, max(needs, default=0))


def _fit(files: Sequence[RuleFile], room_bytes: int) -> tuple[RuleShare, ...]:
    """Allots the room to files, nearest first; returns the shares in the files' order."""
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
    """Returns as many whole lines of a text as fit into the room, without the last line end."""
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


_MAX_COMPARED_LINES: Final = 2_000

RuleLimit = Literal["files", "folders"]


class RuleSet(BaseModel):
    """Rules files from the root on, and the searched folders.

        found = read_rules(folder, current_file)
        known = agreed.within(found.folders)
        if known.digest != found.digest:
            show(known.difference(found))  # and, if the owner agrees: agreed = agreed.renewed(found)
        text = agreed.text_for(current_file)

    An accepted set has the files of all folders accepted so far; a found set, those on the path to one file.
    """

    model_config = ConfigDict(frozen=True)

    files: tuple[RuleFile, ...] = ()
    folders: tuple[str, ...] = ("",)
    exceeded: tuple[RuleLimit, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the files read, as hexadecimal digits; refused files don't count."""
        read = [(file.path, file.raw, file.unread_bytes) for file in self.files if file.refusal is None]
        return hashlib.sha256(json.dumps(sorted(read)).encode()).hexdigest()

    def within(self, folders: tuple[str, ...]) -> RuleSet:
        files = tuple(file for file in self.files if file.folder in folders)
        return RuleSet(files=files, folders=folders, exceeded=self.exceeded)

    def renewed(self, found: RuleSet) -> RuleSet:
        """Returns the set with the files of all found folders replaced."""
        retained = [file for file in self.files if file.folder not in found.folders]
        files = sorted([*retained, *found.files], key=lambda file: file.folder.split("/") if file.folder else [])
        return RuleSet(
            files=tuple(files),
            folders=tuple(dict.fromkeys([*found.folders, *self.folders])),
            exceeded=found.exceeded,
        )

    def text_for(self, current_file: str = "") -> RuleText:
        """Returns the rules as sent while this file is current (relative to the root, "" for none)."""
        return fit_rules(self.files, current_file)

    def read_rule(self, name: str) -> str | None:
        """Returns the quoted text of a rule with a description, for the model's tool; None if there is none."""
        for file in self.files:
            if file.name == name and file.problem is None and file.kind == "described":
                unread = file.unread_bytes
                note = note_bytes_left_out(unread, file.size_bytes) if unread else ""
                return quote_rules(file.path, file.text, note)
        return None

    def difference(self, newer: RuleSet) -> tuple[str, ...]:
        """Returns a unified diff to a newer set, with invisible characters as code points.

        Files are compared up to 2,000 lines in all; a file beyond that is listed whole, before and after.
        """
        before, after = _lines(self), _lines(newer)
        lines: list[str] = []
        left = _MAX_COMPARED_LINES
        for path in dict.fromkeys([*before, *after]):
            old, new = before.get(path, []), after.get(path, [])
            if old == new:
                continue
            size = max(len(old), len(new))
            if size > left:
                lines += _replaced(path, old, new)
            else:
                left -= size
                lines += unified_diff(old, new, path, path, lineterm="")
        return tuple(lines)


def _lines(rules: RuleSet) -> dict[str, list[str]]:
    return {file.path: file.shown.split("\n") for file in rules.files if file.refusal is None}


def _replaced(path: str, old: list[str], new: list[str]) -> list[str]:
    # Comparing repeated lines takes more than quadratic time.
    return [f"--- {path}", f"+++ {path}", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
