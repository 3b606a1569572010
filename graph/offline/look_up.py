"""Tells what the embedded model looks up with `recall`: what is asked for and stands nowhere in its input."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from graph.core.extract import cut_at_word
from graph.core.search_term import has_content_of
from graph.core.sentence import INTRODUCTION
from graph.offline.passage import Passage, find_relevant

MOST_QUESTIONS: Final = 10
"""How many of a message are looked up, as each is compared with all that was said."""
_QUERY_CHARS: Final = 200
_QUOTATIONS: Final = 3
# They name nothing, and stand beside what is asked for.
_POINTING: Final = re.compile(
    r"(?<!\S)(?:제|내|네|너|나|저|우리|그|이|좀|이야기\S*|얘기\S*|내용\S*)(?!\S)|\b(?:remind|exactly|please)\b",
    re.IGNORECASE,
)
# The last word of a Korean question, or that before "알려 줘"; its answer has another form of it.
_VERB: Final = re.compile(r"(?<=\S)\s++[가-힣]+(?:지\s[가-힣\s]{1,40}+)?[\s?？!.~…]*+$")
_NAME: Final = re.compile(r"이름|누구|\b(?:name|who)\b", re.IGNORECASE)


def query_for(asked: Sequence[str], passages: Sequence[Passage]) -> str:
    """Returns those of the questions that what was sent doesn't answer, as a query; "" if it answers all of them."""
    missing = [question for question in asked[:MOST_QUESTIONS] if not is_answered(question, passages)]
    return cut_at_word(" ".join(missing), _QUERY_CHARS)


def is_answered(question: str, passages: Sequence[Passage]) -> bool:
    """Whether the passages that go best with the question have all its words between them, but for its verb."""
    found = "\n".join(passage.text for passage in find_relevant(passages, question, _QUOTATIONS))
    # "I'm Alex" answers "what's my name" with none of its words.
    words = _NAME.sub(" ", question) if INTRODUCTION.search(found) else question
    return bool(found) and has_content_of(found, _VERB.sub("", _POINTING.sub(" ", words)))
