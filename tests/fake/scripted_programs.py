"""The programs of a scripted service, over a plain list."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pydantic import SecretStr

from graph.value.error import InputError
from graph.value.view import MadeToken, ProgramToken
from tests.fake.scripted_session import START

SECRET: Final = "tf-scripted-token-0123456789"  # noqa: S105  # of no server


class ScriptedPrograms:
    """Keeps those in force in `tokens`."""

    def __init__(self) -> None:
        self.tokens: list[ProgramToken] = []

    def list(self) -> tuple[ProgramToken, ...]:
        return tuple(self.tokens)

    def admit(self, name: str, *, tools: Collection[str] | None = None, is_personal: bool = True) -> MadeToken:
        if not name.strip():
            raise InputError("bad_program_name")
        chosen = None if tools is None else frozenset(tools)
        self.tokens.append(ProgramToken(f"t{len(self.tokens) + 1}", name, chosen, START, is_personal=is_personal))
        return MadeToken(SecretStr(SECRET), self.tokens[-1])

    def withdraw(self, token_id: str) -> None:
        self.tokens = [token for token in self.tokens if token.id != token_id]
