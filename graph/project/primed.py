"""What a new session is told of a project's memory, line by line and as a model reads it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from graph.core.token import estimate_tokens
from prompt.project import memory as words
from prompt.system.framing import Language


@dataclass(frozen=True)
class PrimedLine:
    """One thing that a session starts with.

    Attributes:
        label: One of the seed's labels, such as "DECISIONS".
        text: Without secrets and invisible characters.
        at: When it was noted, UTC; None if nobody wrote it down.
        item_id: The id of the decision, plan, task or message; the path of a file; else "".
        speaker: "USER" or "ASSISTANT" of a message, else "".
        is_old: Noted more than 14 days ago.
        is_gone: A file that isn't there any more.
    """

    label: str
    text: str
    at: datetime | None
    item_id: str = ""
    speaker: str = ""
    is_old: bool = False
    is_gone: bool = False


@dataclass(frozen=True)
class Primed:
    """What a session starts with, in order; at most 1,600 tokens.

    Attributes:
        older_decisions: How many decisions in force are left out.
    """

    lines: tuple[PrimedLine, ...]
    older_decisions: int
    language: Language

    def prompt(self) -> list[str]:
        """Returns the lines as a model reads them, the recent dialog last; none if nothing is known."""
        if not self.lines:
            return []
        rendered = [words.NOTE[self.language]]
        for label in dict.fromkeys(line.label for line in self.lines):
            told = [render_line(line, self.language) for line in self.lines if line.label == label]
            if label == words.RECENT_DIALOG:
                rendered += [f"{label}:", *told]
                continue
            if label == words.DECISIONS and self.older_decisions:
                told.insert(0, words.older_decisions(self.older_decisions, self.language))
            rendered.append(f"{label}: {', '.join(told)}")
        return rendered

    @property
    def tokens(self) -> int:
        """How many tokens it is, as an estimate."""
        return estimate_tokens("\n".join(self.prompt()))


def render_line(line: PrimedLine, language: Language) -> str:
    """Returns what was noted, who said it, its date and its marks."""
    marks = [f"{line.at:%Y-%m-%d}" if line.at else words.UNDATED[language]]
    marks += [mark[language] for mark, is_set in ((words.OLD, line.is_old), (words.GONE, line.is_gone)) if is_set]
    said = f"{line.speaker}: {line.text}" if line.speaker else line.text
    return f"{said} ({', '.join(marks)})"
