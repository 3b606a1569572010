"""The context of one owner in one root with everything in memory, and rules that a test agrees to."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from graph.layer.app_context import (
    AppContextService,
    ContextScope,
    MemoryContextStore,
    PersistenceKind,
    RequestPolicy,
)

DIRECTORY: Final = Path("/srv/code")


class AgreedRules:
    """The rules by root, and how often each root's were loaded."""

    def __init__(self, rules: Mapping[str, str]) -> None:
        self.rules = dict(rules)
        self.loaded: list[str] = []

    def load(self, root: str) -> str:
        """Returns the rules of a root; fails with a KeyError for one that has none."""
        self.loaded.append(root)
        return self.rules[root]


def app_context(agreed: AgreedRules | None = None, policy: RequestPolicy = "merge") -> AppContextService:
    """Returns the service of one owner and root."""
    return AppContextService(
        MemoryContextStore(ContextScope.APP, PersistenceKind.PERSISTENT),
        MemoryContextStore(ContextScope.APP, PersistenceKind.VOLATILE),
        (agreed or AgreedRules({})).load,
        directory=DIRECTORY,
        policy=policy,
    )
