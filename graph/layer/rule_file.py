"""One rules file of a project: what was read of it, and what follows from that."""

from __future__ import annotations

from functools import cached_property
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from graph.error_reason import PathReason
from graph.layer.rule_clean import CleanedText, clean_rules, count_imports, show_unseen
from graph.layer.rule_front_matter import FrontMatter, FrontMatterProblem, parse_front_matter
from graph.layer.rule_glob import matches_globs
from prompt.system.rule_quote import note_bytes_left_out

RULES_FOLDER: Final = ".cursor/rules"
RULE_SUFFIX: Final = ".mdc"

RuleKind = Literal["always", "globs", "described", "listed"]


class RuleFile(BaseModel):
    """A rules file; only what was read is stored, all else is derived from it.

    Attributes:
        path: Relative to the project's root; invisible characters in it stand as their code points.
        folder: The folder that it is for, relative to the root; "" is the root.
        raw: The text as it was read, at most 32 KiB of it.
        unread_bytes: Bytes of the file behind `raw`.
        bad_count: Places that were no characters; each is U+FFFD in `raw`.
        refusal: Why it wasn't read, or None.
    """

    model_config = ConfigDict(frozen=True)

    path: str
    folder: str = ""
    raw: str = ""
    unread_bytes: int = 0
    bad_count: int = 0
    refusal: PathReason | None = None

    @property
    def size_bytes(self) -> int:
        """Its size in UTF-8, what wasn't read included."""
        return len(self.raw.encode()) + self.unread_bytes

    @cached_property
    def cleaned(self) -> CleanedText:
        """The text without what people don't see, front matter included, with the counts of what was taken out."""
        return clean_rules(self.raw)

    @cached_property
    def front_matter(self) -> FrontMatter:
        """What the rule says of itself; a file that isn't a `.mdc` always applies."""
        text = self.cleaned.text
        return (
            parse_front_matter(text) if self.path.endswith(RULE_SUFFIX) else FrontMatter(always_apply=True, body=text)
        )

    @cached_property
    def text(self) -> str:
        """What the model may read of it."""
        return self.front_matter.body.strip("\n")

    @property
    def problem(self) -> PathReason | FrontMatterProblem | None:
        """Why it isn't applied though it is there, or None."""
        return self.refusal or self.front_matter.problem

    @property
    def kind(self) -> RuleKind:
        """When it applies: always, for files that its globs match, when the model reads it, or never by itself."""
        front = self.front_matter
        if front.always_apply:
            return "always"
        if front.globs:
            return "globs"
        return "described" if front.description else "listed"

    @property
    def name(self) -> str:
        """What `read_rule` takes: its path, without `.cursor/rules/` at the root and the suffix."""
        return self.path.removeprefix(f"{RULES_FOLDER}/").removesuffix(RULE_SUFFIX)

    @property
    def import_count(self) -> int:
        """How many imports stand in its text; none is followed."""
        return count_imports(self.text)

    @cached_property
    def shown(self) -> str:
        """The text as it was read, for people: invisible characters as code points, and how much wasn't read."""
        text = show_unseen(self.raw)
        note = f"\n{note_bytes_left_out(self.unread_bytes, self.size_bytes)}" if self.unread_bytes else ""
        return text.removesuffix("\n") + note

    def is_for(self, current_file: str) -> bool:
        """Whether a file lies in the folder that the rules are for; "" is no file, and in the root."""
        return not self.folder or current_file.startswith(f"{self.folder}/")

    def applies_to(self, current_file: str) -> bool:
        """Whether its text, or the line that describes it, is sent while the user is in that file."""
        if self.problem is not None or self.kind == "listed" or not self.is_for(current_file):
            return False
        inside = current_file.removeprefix(f"{self.folder}/") if self.folder else current_file
        return self.kind != "globs" or (bool(inside) and matches_globs(inside, self.front_matter.globs))
