"""Takes the user's message out of the frames in which it is sent: with a context, or with what was said before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from prompt.system.context_layer import VOLATILE_HEADING
from prompt.system.framing import COMPACTION_HEADING, CONTEXT_PART, CURRENT_PART, RECENT_PART, SUMMARY_HEADING

_CONTEXT, _RECENT, _CURRENT = (part.partition("{")[0] for part in (CONTEXT_PART, RECENT_PART, CURRENT_PART))
_LINE: Final = re.compile(r"^(USER|ASSISTANT|TOOL): ", re.MULTILINE)
_RULE: Final = "\n\n---\n\n"


def unpacked(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Returns the messages as "interval" would send them: a summary in a system message, each message by itself.

    All lines within a frame that aren't its own are indented, so that nothing said can be taken for one of them.
    """
    return [part for message in messages for part in _parts(message)]


def _parts(message: BaseMessage) -> Iterator[BaseMessage]:
    text = message.text
    if not isinstance(message, HumanMessage):
        yield message
    elif text.startswith(COMPACTION_HEADING):
        told, _, own = text.removeprefix(COMPACTION_HEADING).partition(_RULE)
        # A note stands between the summary and the rule.
        yield _summary(told.strip().rpartition("\n\n")[0] if own else told)
        yield from _parts(message.model_copy(update={"content": own}))
    elif text.startswith((_CONTEXT, _RECENT, VOLATILE_HEADING)) and f"\n\n{_CURRENT}" in text:
        told, _, own = text.partition(f"\n\n{_CURRENT}")
        told, _, _ = f"\n\n{told}".partition(f"\n\n{VOLATILE_HEADING}")
        summary, _, recent = told.partition(f"\n\n{_RECENT}")
        if summary:
            yield _summary(summary.strip().removeprefix(_CONTEXT))
        lines = _LINE.split(recent)
        for speaker, said in zip(lines[1::2], lines[2::2], strict=True):
            yield HumanMessage(said) if speaker == "USER" else AIMessage(said)
        yield message.model_copy(update={"content": own})
    else:
        yield message


def _summary(text: str) -> SystemMessage:
    return SystemMessage(f"{SUMMARY_HEADING['ko']}\n{text}")
