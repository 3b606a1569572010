"""Turns that were counted, and the tables and bounds of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Literal, NamedTuple

from bench.report import Requirement, table
from bench.turn.statement import Counts, Statement
from graph.server.settings import Settings
from tests.fake.rows import read_rows

Kind = Literal["no fold", "makes a fold", "takes a fold"]
KINDS: Sequence[Kind] = ("no fold", "makes a fold", "takes a fold")
_HEAD = ("", "turns", "statements", "most", "of them changes", "transactions", "with changes")
_RECORDS = "SELECT count(*), count(adopted_at) FROM record WHERE status = 'COMPLETED'"


class Records(NamedTuple):
    """How many records a database has, and how many of them were ever taken into a context."""

    made: int
    taken: int


class Turn(NamedTuple):
    """One turn, or what else was counted; `kind` tells what it had to do with folds."""

    kind: Kind
    counts: Counts

    @property
    def size(self) -> int:
        return len(self.counts.statements)


Counted = Mapping[str, Sequence[Turn]]
"""What was counted, by titles."""


def records_of(settings: Settings) -> Records:
    ((made, taken),) = read_rows(settings, _RECORDS)
    return Records(made, taken)


def kind_of(before: Records, after: Records) -> Kind:
    """Returns of what kind a turn between the two was: one that takes a fold may make one, too."""
    if after.taken > before.taken:
        return "takes a fold"
    return "makes a fold" if after.made > before.made else "no fold"


def print_counted(title: str, counted: Counted, *, has_where: bool) -> None:
    """Prints the table; `has_where`: and for each of its rows what the statements come from."""
    rows = [(name, _of_kinds(turns)) for name, turns in counted.items()]
    listed = [
        (name if kinds.keys() == {"no fold"} else f"{name}, {kind}", found)
        for name, kinds in rows
        for kind, found in kinds.items()
    ]
    print("\n".join(table((title, *_HEAD[1:]), (_row(name, turns) for name, turns in listed))), flush=True)
    for name, turns in listed if has_where else ():
        print("\n".join(_where(name, turns)), flush=True)


def bounds(title: str, turns: Sequence[Turn], most: Mapping[Kind, int]) -> Iterator[Requirement]:
    """Yields for each kind of turn whether none of them has more statements than that."""
    for kind, found in _of_kinds(turns).items():
        yield bound(f"{title}, {kind}", max(turn.size for turn in found), most[kind])


def bound(title: str, count: float, most: int) -> Requirement:
    return count <= most, f"{title:44} {count:4.0f} statements (at most {most})"


def _of_kinds(turns: Sequence[Turn]) -> dict[Kind, Sequence[Turn]]:
    return {kind: found for kind in KINDS if (found := [turn for turn in turns if turn.kind == kind])}


def _row(name: str, turns: Sequence[Turn]) -> Sequence[str]:
    counts = [turn.counts for turn in turns]
    columns = (
        median(turn.size for turn in turns),
        max(turn.size for turn in turns),
        *(median(getattr(each, figure) for each in counts) for figure in ("changes", "transactions", "writing")),
    )
    return name, str(len(turns)), *(f"{figure:.0f}" for figure in columns)


def _where(name: str, turns: Sequence[Turn]) -> Iterator[str]:
    """Yields a list of who sent statements, and how many a turn."""
    statements = [statement for turn in turns for statement in turn.counts.statements]
    times = len(turns)
    yield f"\n## {name}: {len(statements) / times:.1f} statements a turn, by"
    for figure in ("thread", "verb", "table", "page"):
        yield f"{figure}: {_listed(Counter(getattr(statement, figure) for statement in statements), times)}"
    yield "\nwho asks the stores, and for what"
    yield from _by_asker(statements, times)
    yield "\nwhich store is asked, and by whom"
    for path, count in Counter(statement.path for statement in statements).most_common():
        yield f"{count / times:7.2f}  {path}"


def _by_asker(statements: Sequence[Statement], times: int) -> Iterator[str]:
    found: dict[str, Counter[str]] = {}
    for statement in statements:
        found.setdefault(statement.asker, Counter())[statement.store] += 1
    for asker, stores in sorted(found.items(), key=lambda item: -item[1].total()):
        yield f"{stores.total() / times:7.2f}  {asker}: {_listed(stores, times)}"


def _listed(found: Counter[str], times: int) -> str:
    return ", ".join(f"{word} {count / times:.2f}" for word, count in found.most_common())
