"""The programs of a server whose owners have made no token, or one."""

from __future__ import annotations

from graph.server.identity import ApiToken


class NoPrograms:
    def find(self, secret: str) -> ApiToken | None:
        assert secret
        return None

    def are_let_in(self) -> bool:
        return False


class OneProgram:
    def __init__(self, made: ApiToken) -> None:
        self._made = made

    def find(self, secret: str) -> ApiToken | None:
        return self._made if secret == self._made.token.get_secret_value() else None

    def are_let_in(self) -> bool:
        return True
