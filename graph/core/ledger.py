"""The ledger of the user's word: what records keep of it word for word, and which of it is sent behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from graph.core.text import estimate_tokens
from graph.core.turn import labelled
from graph.value.record import HistoryEntry, LedgerLine
from prompt.system.framing import LEDGER_LABEL, Language

LEDGER: Final = "ledger"
LEDGER_TOKENS: Final = 600
_LARGEST_SHARE: Final = 0.08
# What gives way first where there is no room, last here: of one rank the oldest.
_RANKS: Final = {"negation": 0, "rule": 0, "choice": 1, "person": 1, "preference": 2}
# Lines leave in groups, so that not every new line costs the cached prefix.
_LEAVING, _MOST_LEAVING = 8, 4  # at most a quarter of those that have room


def ledger_tokens(input_tokens: int) -> int:
    """Returns the budget for the ledger's lines, for a model with this largest input."""
    return min(LEDGER_TOKENS, int(input_tokens * _LARGEST_SHARE))


def standing(lines: Iterable[LedgerLine], struck: Mapping[str, bool]) -> list[LedgerLine]:
    """Returns the lines that hold, each once: not those that a later sentence takes back or the user struck out.

    `struck` has by a line's id what the user did: True for struck out, False for restored after it was taken back.
    """
    lines = list(lines)
    lifted = {line.text for line in lines if line.kind == "lifted"}
    found: dict[str, LedgerLine] = {}
    for line in lines:
        if line.kind != "lifted" and not struck.get(line.id, line.id in lifted):
            found.setdefault(line.text, line)
    return list(found.values())


def with_room(lines: Sequence[LedgerLine], most_tokens: int, language: Language) -> list[LedgerLine]:
    """Returns the lines that fit, in their order: rules before choices and people, these before preferences."""
    order = sorted(range(len(lines)), key=lambda index: (_RANKS.get(lines[index].kind, len(_RANKS)), -index))
    count = 0
    for index in order:
        most_tokens -= line_tokens(lines[index], language)
        if most_tokens < 0:
            more = (count - len(order)) % _LEAVING
            count -= min(more, count // _MOST_LEAVING)
            break
        count += 1
    return [lines[index] for index in sorted(order[:count])]


def lines_of(history: Iterable[HistoryEntry]) -> list[LedgerLine]:
    """Returns the lines to send with these records; a record that stands word for word has its own in its text."""
    return [
        LedgerLine(*line)
        for entry in history
        for line in entry.get("ledger", ())
        if entry["kind"] != "verbatim" or line[1] == "lifted"
    ]


def render_line(line: LedgerLine, language: Language) -> str:
    return labelled(LEDGER_LABEL[language].format(turn=line.turn), " ".join(line.text.split()))


def line_tokens(line: LedgerLine, language: Language) -> int:
    return _tokens(render_line(line, language))


@lru_cache(maxsize=512)
def _tokens(text: str) -> int:
    return estimate_tokens(text) + 1  # its line's end
