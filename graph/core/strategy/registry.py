"""The strategies there are, by name; a new one is one file and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from graph.core.strategy.base import Strategy
from graph.core.strategy.interval import IntervalStrategy

STRATEGIES: Mapping[str, Strategy] = MappingProxyType({strategy.name: strategy for strategy in (IntervalStrategy(),)})
