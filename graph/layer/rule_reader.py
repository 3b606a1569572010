"""Finds and reads the rules files of a project, from its root down to the current file's folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from graph.core.text import plain_text
from graph.file.root_folder import Identity, RootFolder
from graph.layer.rule_clean import decode_rules, show_unseen
from graph.layer.rule_file import RULE_SUFFIX, RULES_FOLDER, RuleFile
from graph.layer.rule_set import RuleLimit, RuleSet
from graph.value.error import PathError, PathReason

READ_BYTES: Final = 32_768
MAX_FILES: Final = 64
MAX_FOLDERS: Final = 200
MAX_SECONDS: Final = 2.0
# More than anybody writes by hand: such a file is refused, not cut.
_MAX_FILE_BYTES: Final = 1 << 20
_OWN_NAME: Final = "AGENTS.md"
_OTHER_NAMES: Final = ("CLAUDE.md", ".cursorrules")


def locate(folder: RootFolder, path: str | None) -> str:
    """Returns a file's path relative to the root; "" for none and outside. The file need not exist."""
    try:
        return plain_text(folder.relative(path)) if path else ""
    except PathError:
        return ""


def read_rules(folder: RootFolder, current_file: str = "", *, clock: Callable[[], float] = time.monotonic) -> RuleSet:
    """Reads the rules files at the root, and in each folder down to the current file's folder.

    In each folder `AGENTS.md` and `.cursor/rules/**/*.mdc`; `CLAUDE.md` and `.cursorrules` if it has neither. At most
    64 files, the nearest ones, 200 folders, and 32 KiB per file. A refused file is listed with the reason; two names of
    one file count as one.

    Raises:
        PathError: `too_slow`: reading took over 2 s. `vanished`: the root was removed or replaced meanwhile.
    """
    rules = _Reader(folder, clock).read(_way_to(current_file))
    folder.check_in_place()
    return rules


def _way_to(current_file: str) -> tuple[str, ...]:
    parts = current_file.split("/")[:-1]
    return tuple("/".join(parts[:count]) for count in range(len(parts) + 1))


@dataclass(frozen=True)
class _Candidate:
    path: str
    folder: str
    refusal: PathReason | None = None


class _Reader:
    def __init__(self, folder: RootFolder, clock: Callable[[], float]) -> None:
        self._folder = folder
        self._clock = clock
        self._deadline = clock() + MAX_SECONDS
        self._listed_count = 0
        self._exceeded = set[RuleLimit]()
        self._seen = set[Identity]()

    def read(self, way: tuple[str, ...]) -> RuleSet:
        folders = list(takewhile(lambda folder: not folder or self._is_there(folder), way))
        nearest_first = [candidate for folder in reversed(folders) for candidate in self._find(folder)]
        if len(nearest_first) > MAX_FILES:
            self._exceeded.add("files")
        from_root = sorted(nearest_first[:MAX_FILES], key=lambda candidate: len(candidate.folder))
        files = [file for candidate in from_root if (file := self._read_file(candidate)) is not None]
        return RuleSet(files=tuple(files), folders=way, exceeded=tuple(sorted(self._exceeded)))

    def _find(self, folder: str) -> Iterator[_Candidate]:
        if not self._may_list():
            return
        rules = list(self._find_rules(folder))
        names = [_OWN_NAME] if self._is_there(_below(folder, _OWN_NAME)) else []
        if not names and not rules:
            names = [name for name in _OTHER_NAMES if self._is_there(_below(folder, name))]
        yield from (_Candidate(_below(folder, name), folder) for name in names)
        yield from rules

    def _find_rules(self, folder: str) -> Iterator[_Candidate]:
        top = _below(folder, RULES_FOLDER)
        waiting = [(top, False)]
        seen = set[Identity]()
        while waiting:
            self._check_time()
            path, was_listed = waiting.pop()
            try:
                listing = self._folder.entries(path)
            except PathError as error:
                if was_listed or error.reason not in {"vanished", "not_a_folder"}:
                    yield _Candidate(path, folder, error.reason)
                continue
            if listing.identity in seen:
                continue
            if not self._may_list():
                return
            seen.add(listing.identity)
            rules = [name for name in listing.files if name.endswith(RULE_SUFFIX)]
            yield from (_Candidate(_below(path, name), folder) for name in rules)
            links = sorted(listing.links.difference(rules))
            waiting += [(_below(path, name), False) for name in reversed(links)]
            waiting += [(_below(path, name), True) for name in reversed(listing.folders)]

    def _read_file(self, candidate: _Candidate) -> RuleFile | None:
        self._check_time()
        path, folder = show_unseen(plain_text(candidate.path)), candidate.folder
        if candidate.refusal is not None:
            return RuleFile(path=path, folder=folder, refusal=candidate.refusal)
        try:
            content = self._folder.read_head(candidate.path, head_bytes=READ_BYTES, max_bytes=_MAX_FILE_BYTES)
            decoded = decode_rules(content.data, content.size_bytes)
        except PathError as error:
            return RuleFile(path=path, folder=folder, refusal=error.reason)
        if content.identity in self._seen:
            return None
        self._seen.add(content.identity)
        return RuleFile(
            path=path,
            folder=folder,
            raw=decoded.text,
            unread_bytes=decoded.unread_bytes,
            bad_count=decoded.bad_count,
        )

    def _is_there(self, path: str) -> bool:
        self._check_time()
        try:
            return self._folder.is_there(path)
        except PathError:
            return True  # reading reports the reason

    def _may_list(self) -> bool:
        self._check_time()
        if self._listed_count == MAX_FOLDERS:
            self._exceeded.add("folders")
            return False
        self._listed_count += 1
        return True

    def _check_time(self) -> None:
        if self._clock() > self._deadline:
            raise PathError("too_slow", str(self._folder.path))


def _below(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
