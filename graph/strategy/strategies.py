"""All strategies by name; a new one needs one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from graph.strategy.base import Limits, Strategy
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.interval import IntervalStrategy
from graph.strategy.rolling import RollingStrategy
from graph.strategy.window import WindowStrategy

_CLASSES = (IntervalStrategy, RollingStrategy, CompactionStrategy, WindowStrategy)


@dataclass(frozen=True)
class Strategies:
    """The selectable strategies in display order, and that of sessions without a choice."""

    by_name: Mapping[str, Strategy]
    default: Strategy

    def of(self, name: str) -> Strategy:
        """Returns the strategy by name; the default one for "" or a name that no longer exists."""
        return self.by_name.get(name, self.default)


def build_strategies(limits: Limits, *, default_name: str, is_enabled: bool) -> Strategies:
    """Without `is_enabled` (`APP_CONTEXT_ENABLED`), "window" with only the current turn is the default.

    A session that chooses "window" then gets the same, so that the name has one meaning.
    """
    limits = limits if is_enabled else replace(limits, window_turns=0)
    by_name: dict[str, Strategy] = {kind.name: kind(limits) for kind in _CLASSES}
    return Strategies(by_name, by_name[default_name if is_enabled else WindowStrategy.name])
