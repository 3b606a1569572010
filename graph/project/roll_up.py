"""Summaries of a project's oldest messages: by a model in parts, or by picked sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from graph.core.text import estimate_tokens
from graph.core.turn import text_of
from graph.fold.extract import cut_at_word, extract_summary
from graph.fold.shorten import shorten
from graph.project.context_file import Message, summary_limit_chars

TOKEN_LIMIT: Final = 4_096
WINDOW_KEEP: Final = 800
# Speaker and date of a message.
_LABEL_TOKENS: Final = 14
_ANSWER_SHARE: Final = 0.6
_FRESH_SHARE: Final = 0.5
_ASKED_CHARS: Final = 600
_PICKED_CHARS: Final = 40_000
# Under 4,096 tokens in any script.
_PIECE_CHARS: Final = 4_000

Summarise = Callable[[Sequence[AnyMessage], int], str]
"""Condenses messages (a `SystemMessage` has the previous summary) to about this many characters."""


def message_tokens(message: Message) -> int:
    """Estimates the tokens of a message in the context, with speaker and date."""
    return estimate_tokens(message.content) + _LABEL_TOKENS


def window_tokens(window: Sequence[Message]) -> int:
    return estimate_tokens("\n".join(each.content for each in window)) + _LABEL_TOKENS * len(window)


def leaving_count(window: Sequence[Message]) -> int:
    """Returns the number of oldest messages to remove so that at most 800 tokens stay; the newest always stays."""
    tokens = 0
    for index in range(len(window) - 1, -1, -1):
        tokens += message_tokens(window[index])
        if tokens > WINDOW_KEEP and index < len(window) - 1:
            return index + 1
    return 0


def picked_summary(previous: str, leaving: Sequence[Message]) -> str:
    """Combines the best sentences of the previous summary and of the new messages; needs no model."""
    leaving = _newest(_fresh(leaving))
    limit = _limit_chars(previous, leaving)
    fresh = _pick(leaving, limit if not previous else int(limit * _FRESH_SHARE))
    room = limit - len(fresh) - 1
    older = previous if len(previous) <= room else extract_summary([HumanMessage(previous)], room)
    return " ".join(part for part in (older, fresh) if part)


def written_summary(previous: str, leaving: Sequence[Message], summarise: Summarise) -> str:
    """Returns a summary by a model, or by picked sentences if the model returns none.

    Sources above 4,096 tokens are summarised in parts, then the parts' summaries together. Answers are passed whole, as
    they contain the reasoning; long messages of the user by their best sentences.
    """
    leaving = _fresh(leaving)
    if not leaving:
        return previous
    limit = _limit_chars(previous, leaving)
    source: list[AnyMessage] = [SystemMessage(previous)] if previous else []
    parts = _parts([*source, *(_given(each) for each in leaving)])
    while len(parts) > 1:
        parts = _parts([AIMessage(cut_at_word(summarise(part, limit), limit)) for part in parts])
    text = shorten(
        summarise(parts[0], limit), lambda candidate: len(candidate) <= limit, max_chars=limit, must_fit=_always
    )
    return text if text.strip() else picked_summary(previous, leaving)


def _fresh(messages: Sequence[Message]) -> list[Message]:
    return [each for each in messages if not each.is_repetition]


def _limit_chars(previous: str, leaving: Sequence[Message]) -> int:
    return summary_limit_chars("\n".join([previous, *(each.content for each in leaving)]))


def _always(_: str) -> bool:
    return True  # a text with no sentence to drop is cut by `Conversation`


def _newest(leaving: Sequence[Message]) -> Sequence[Message]:
    """Limits the messages to the newest: other programs may have written thousands, and picking takes time."""
    chars = 0
    for index in range(len(leaving) - 1, -1, -1):
        chars += len(leaving[index].content)
        if chars > _PICKED_CHARS:
            return leaving[index + 1 :] or leaving[index:]
    return leaving


def _pick(leaving: Sequence[Message], target_chars: int) -> str:
    """Picks sentences: at most 60 % of the length from answers, the rest from their questions."""
    answers = [AIMessage(each.content) for each in leaving if each.role == "assistant"]
    asked = [HumanMessage(each.content) for each in leaving if each.role != "assistant"]
    share = _ANSWER_SHARE if asked else 1
    answered = extract_summary(answers, int(target_chars * share)) if answers else ""
    wanted = extract_summary(asked, target_chars - len(answered) - 1) if asked else ""
    return " ".join(part for part in (wanted, answered) if part)


def _given(message: Message) -> AnyMessage:
    if message.role == "assistant":
        return AIMessage(message.content)
    asked = HumanMessage(message.content)
    return asked if len(message.content) <= _ASKED_CHARS else HumanMessage(extract_summary([asked], _ASKED_CHARS))


def _parts(messages: Sequence[AnyMessage]) -> list[list[AnyMessage]]:
    """Splits messages into parts of at most 4,096 tokens; longer messages are split, too."""
    parts: list[list[AnyMessage]] = [[]]
    tokens = 0
    for piece in (piece for message in messages for piece in _pieces(message)):
        more = estimate_tokens(text_of(piece))
        if parts[-1] and tokens + more > TOKEN_LIMIT:
            parts.append([])
            tokens = 0
        parts[-1].append(piece)
        tokens += more
    return parts


def _pieces(message: AnyMessage) -> list[AnyMessage]:
    text = text_of(message)
    if len(text) <= _PIECE_CHARS:
        return [message]
    starts = range(0, len(text), _PIECE_CHARS)
    return [message.model_copy(update={"content": text[start : start + _PIECE_CHARS]}) for start in starts]
