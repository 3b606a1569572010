"""Renders what a program sent in front of the history that is known: who said what, as one block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from graph.client import ClientMessage, ClientRole
from graph.core.divider import labelled
from graph.core.turn import IMAGE_MARK
from prompt.system.framing import LEAD_HEADING, SPEAKER, Language

_TYPES: Final[Mapping[ClientRole, str]] = {"user": "human", "assistant": "ai", "tool": "tool"}


def lead_block(messages: Iterable[ClientMessage], language: Language) -> str:
    """Returns the messages below their heading, each behind its speaker; "" if none says anything.

    No line of theirs can be taken for a label, a divider or a heading. A mark stands for each image.
    """
    said = [
        labelled(f"{SPEAKER[language][_TYPES[each.role]]}: ", words) for each in messages if (words := _words(each))
    ]
    return "\n".join([LEAD_HEADING[language], *said]) if said else ""


def _words(message: ClientMessage) -> str:
    return "\n".join([*filter(None, [message.text.strip()]), *[IMAGE_MARK] * len(message.images)])
