"""The lines that divide a model input, and texts rendered so that none of their lines can be taken for one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from prompt.system.context_layer import PERSISTENT_HEADING, VOLATILE_HEADING
from prompt.system.framing import (
    CLIENT_HEADING,
    COMPACTION_HEADING,
    LEAD_HEADING,
    RECORD_LABEL,
    SUMMARY_HEADING,
    Language,
)

_INDENT: Final = "  "
_OWN_HEADINGS: Final = (*SUMMARY_HEADING.values(), *CLIENT_HEADING.values(), *LEAD_HEADING.values(), COMPACTION_HEADING)
_HEADINGS: Final = "|".join(map(re.escape, (heading.partition("\n")[0] for heading in _OWN_HEADINGS)))
# Beginnings of the lines that divide an input, of every strategy and in both languages.
_DIVIDER: Final = re.compile(
    rf"\[(?:\d+-\d+턴|Turns \d+-\d+|\d+턴 (?:사용자|AI) 원문|Turn \d+, (?:user|AI), verbatim)\]|{_HEADINGS}"
    r"|\[(?:CONVERSATION CONTEXT|RECENT MESSAGES|CURRENT MESSAGE)\]"
    r"|(?:USER|ASSISTANT|TOOL): |---",
    re.IGNORECASE,
)
_BLOCK_HEADINGS: Final = (PERSISTENT_HEADING, VOLATILE_HEADING)


def label_of(turns: Sequence[int], language: Language) -> str:
    """Returns the label of a record in the model input, e.g. `[1-3턴] ` or `[Turns 1-3] `."""
    return RECORD_LABEL[language].format(first=turns[0], last=turns[-1])


def labelled(label: str, text: str) -> str:
    """Renders a text behind its label; further lines are indented, so that none of them can imitate a label."""
    return label + f"\n{_INDENT}".join(text.splitlines())


def unlabelled(text: str) -> str:
    """Renders a text without a label; a first line that imitates one, or a block's heading, is indented too."""
    block = labelled("", text)
    return _INDENT + block if block.startswith(_BLOCK_HEADINGS) else _indented(block)


def undivided(text: str) -> str:
    """Renders a context block, headings of its own included; lines that imitate another divider are indented."""
    return "\n".join(map(_indented, text.splitlines()))


def headed(heading: str, text: str) -> str:
    """Renders a text from outside below its heading; lines that imitate a divider or a block's heading are indented."""
    return "\n".join(
        [
            heading,
            *(_INDENT + line if line.startswith(_BLOCK_HEADINGS) else _indented(line) for line in text.splitlines()),
        ]
    )


def _indented(text: str) -> str:
    return _INDENT + text if _DIVIDER.match(text) else text
