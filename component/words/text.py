"""A text of the page in both languages, and a group of such texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, Literal, TypeVar

Language = Literal["ko", "en"]
LANGUAGES: tuple[Language, ...] = ("ko", "en")
LANGUAGE_NAMES: Mapping[Language, str] = {"ko": "한국어", "en": "English"}

_T = TypeVar("_T")


class Both(Generic[_T]):
    """A text, or several, in English and in Korean: an attribute of a group, which has it in its language.

    Names in braces are placeholders that the caller fills in.
    """

    def __init__(self, english: _T, korean: _T) -> None:
        self._texts: Mapping[Language, _T] = {"en": english, "ko": korean}

    def __get__(self, group: Group, _owner: type[Group]) -> _T:
        return self._texts[group.language]


def table(*rows: tuple[str, str, str]) -> Both[Mapping[str, str]]:
    """Returns texts by their keys, from rows of a key, the English text and the Korean."""
    return Both({key: english for key, english, _ in rows}, {key: korean for key, _, korean in rows})


class Group:
    def __init__(self, language: Language) -> None:
        self.language = language

    def texts(self) -> dict[str, object]:
        """Returns the texts by name, without those of groups in this one."""
        return {name: getattr(self, name) for name, text in vars(type(self)).items() if isinstance(text, Both)}
