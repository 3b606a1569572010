"""The strategies there are, by name; a new one is one file and one line here."""

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
    """The strategies of one server.

    Attributes:
        by_name: All that a session can choose, in the order to show them.
        default: What sessions get that chose none.
    """

    by_name: Mapping[str, Strategy]
    default: Strategy

    def of(self, name: str) -> Strategy:
        """Returns the strategy of that name; the default one for "" or a name that is no more."""
        return self.by_name.get(name, self.default)


def build_strategies(limits: Limits, *, default_name: str, is_enabled: bool) -> Strategies:
    """Builds the strategies.

    Args:
        limits: Their numbers.
        default_name: Which one sessions get that chose none.
        is_enabled: False makes the default "window", and that no turn but the current one (`APP_CONTEXT_ENABLED`):
            a name means one thing, whether it was chosen or not.
    """
    limits = limits if is_enabled else replace(limits, window_turns=0)
    by_name: dict[str, Strategy] = {kind.name: kind(limits) for kind in _CLASSES}
    return Strategies(by_name, by_name[default_name if is_enabled else WindowStrategy.name])
