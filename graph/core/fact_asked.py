"""Chooses the facts that a summary is asked for by name: in its request, and behind a draft that lacks them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple

from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage

from graph.core.fact import Fact, HeldFacts, facts_of, is_wish, missing_from
from graph.core.language import own_lines, user_language
from graph.core.turn import text_of
from prompt.system.framing import Language

# So much of a summary may be facts that are named; the rest says what they are about.
_NAMED_SHARE: Final = 0.3
_MOST_NAMED: Final = 100
_MOST_TRIED: Final = 1_000
_HANGUL: Final = re.compile("[가-힣]")
_GONE_SHARE: Final = 1 / 3


class Lack(NamedTuple):
    """The named facts that a draft lacks, weightiest first, and whether too many of the user's are among them."""

    missing: tuple[str, ...]
    is_large: bool


def facts_to_name(messages: Sequence[AnyMessage], target_chars: int, language: Language) -> tuple[Fact, ...]:
    """Returns the weightiest facts that fit into 30 % of a summary, the user's rules and prohibitions first.

    A previous summary isn't searched, nor what the user pasted: a summary in the session's language can't keep the
    dates of a foreign letter as they are, and its prohibitions are none of the user's.

    Args:
        messages: What is condensed.
        target_chars: Length of the summary.
        language: The session's language.
    """
    script = _script(messages, language)
    said = [_own(message, script) for message in messages if not isinstance(message, SystemMessage)]
    facts = facts_of(said)
    return _fitting((fact for fact in facts if script == "ko" or not _HANGUL.search(fact.text)), target_chars)


def pasted_wishes(messages: Sequence[AnyMessage], language: Language) -> frozenset[tuple[str, str]]:
    """Returns the identities of what sounds like the user's rule or prohibition but stands in pasted text alone."""
    script = _script(messages, language)
    users = [message for message in messages if isinstance(message, HumanMessage)]
    own = {fact.identity for fact in facts_of([_own(message, script) for message in users])}
    return frozenset(fact.identity for fact in facts_of(users) if is_wish(fact) and fact.identity not in own)


def lack_of(text: str, messages: Sequence[AnyMessage], target_chars: int, language: Language) -> Lack:
    """Compares a draft with the facts that its request named; it lacks too many if a third of the user's are gone.

    Args:
        text: The draft.
        messages: What is condensed.
        target_chars: Length of the summary. What can't stand in it can't be gone.
        language: The session's language.
    """
    users = [message for message in messages if isinstance(message, HumanMessage)]
    asked = facts_to_name(users, target_chars, language)
    gone = missing_from(asked, text)
    missing = (*gone, *missing_from(facts_to_name(messages, target_chars, language), text))
    names = dict.fromkeys(fact.text for fact in missing)
    return Lack(tuple(names), bool(gone) and len(gone) >= len(asked) * _GONE_SHARE)


def _script(messages: Iterable[AnyMessage], language: Language) -> str:
    script = user_language(messages)
    return "ko" if language == "ko" else "latin" if script in (None, "ko") else script


def _own(message: AnyMessage, script: str) -> AnyMessage:
    return HumanMessage(own_lines(text_of(message), script)) if isinstance(message, HumanMessage) else message


def _fitting(facts: Iterable[Fact], target_chars: int) -> tuple[Fact, ...]:
    """Returns the facts that fit, in their order; one that doesn't gives way to the next, and no two say the same."""
    left_chars = int(target_chars * _NAMED_SHARE)
    taken: list[Fact] = []
    held = HeldFacts()
    for fact in islice(facts, _MOST_TRIED):
        if len(fact.text) < left_chars and not fact.says_little and not held.has(fact):
            taken.append(fact)
            held.add(fact.text)
            left_chars -= len(fact.text) + 1
        if len(taken) == _MOST_NAMED or left_chars <= 1:
            break
    return tuple(taken)
