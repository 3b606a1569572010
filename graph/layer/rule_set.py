"""The rules files of a project, as they were found or as an owner agreed to them."""

from __future__ import annotations

import hashlib
import json
from difflib import unified_diff
from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from graph.layer.rule_file import RuleFile
from graph.layer.rule_text import RuleText, fit_rules
from prompt.system.rule_quote import note_bytes_left_out, quote_rules

_MAX_COMPARED_LINES: Final = 2_000

RuleLimit = Literal["files", "folders"]


class RuleSet(BaseModel):
    """Rules files from the root on, with the folders that were looked into.

        found = read_rules(folder, current_file)
        known = agreed.within(found.folders)
        if known.digest != found.digest:
            show(known.difference(found))  # and, if the owner agrees: agreed = agreed.renewed(found)
        text = agreed.text_for(current_file)

    What an owner agreed to holds the files of all folders that they were in; what is found, those on the way to one
    file. `model_dump_json` and `model_validate_json` write and read it without loss.

    Attributes:
        files: In the order in which a model reads them.
        folders: Folders that were looked into, the root ("") first.
        exceeded: Of which limit more was there than was read.
    """

    model_config = ConfigDict(frozen=True)

    files: tuple[RuleFile, ...] = ()
    folders: tuple[str, ...] = ("",)
    exceeded: tuple[RuleLimit, ...] = ()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what was read, in hexadecimal digits; files that were refused don't count."""
        read = [(file.path, file.raw, file.unread_bytes) for file in self.files if file.refusal is None]
        return hashlib.sha256(json.dumps(sorted(read)).encode()).hexdigest()

    def within(self, folders: tuple[str, ...]) -> RuleSet:
        """Returns the files of these folders alone."""
        files = tuple(file for file in self.files if file.folder in folders)
        return RuleSet(files=files, folders=folders, exceeded=self.exceeded)

    def renewed(self, found: RuleSet) -> RuleSet:
        """Returns the set with all that was found in place of its own files in the same folders."""
        kept = [file for file in self.files if file.folder not in found.folders]
        files = sorted([*kept, *found.files], key=lambda file: file.folder.split("/") if file.folder else [])
        return RuleSet(
            files=tuple(files),
            folders=tuple(dict.fromkeys([*found.folders, *self.folders])),
            exceeded=found.exceeded,
        )

    def text_for(self, current_file: str = "") -> RuleText:
        """Returns what a model is sent while the user is in that file (relative to the root, "" for none)."""
        return fit_rules(self.files, current_file)

    def read_rule(self, name: str) -> str | None:
        """Returns what the model's tool reads: the quoted text of a rule with a description, None if there is none."""
        for file in self.files:
            if file.name == name and file.problem is None and file.kind == "described":
                unread = file.unread_bytes
                note = note_bytes_left_out(unread, file.size_bytes) if unread else ""
                return quote_rules(file.path, file.text, note)
        return None

    def difference(self, newer: RuleSet) -> tuple[str, ...]:
        """Returns the lines of a unified diff to a newer set, with invisible characters as code points.

        Files that differ are compared up to 2,000 lines in all; one that goes beyond that stands there whole, as it was
        and as it is.
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
    # Comparing lines that repeat takes time that grows with more than the square of their number.
    return [f"--- {path}", f"+++ {path}", *(f"-{line}" for line in old), *(f"+{line}" for line in new)]
