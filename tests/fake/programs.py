"""The programs of a server whose owners have made no token."""

from __future__ import annotations

from graph.api_token import ApiToken


class NoPrograms:
    def find(self, secret: str) -> ApiToken | None:
        assert secret
        return None

    def are_let_in(self) -> bool:
        return False
