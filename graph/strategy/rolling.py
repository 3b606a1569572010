"""Seed 003's strategy: one summary that grows by versions, and the newest messages in one user message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.fold_spec import FoldSpec, fold_of
from graph.core.model_input import InputItem, ModelInput, SystemPart, assemble, labelled, record_item, unlabelled
from graph.core.review import label_of
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.core.turn import extract_current_turn, text_of
from graph.record import HistoryEntry
from graph.strategy.base import Limits
from prompt.system.framing import CONTEXT_PART, CURRENT_PART, RECENT_PART

INPUT_CHARS: Final = 2_000
SOURCE_CHARS: Final = 3_000
SUMMARY_TOKENS: Final = 1_024
SUMMARY_CHARS: Final = 3_000


class RollingStrategy:
    """After an answer, when un-summarised tokens pass the threshold, previous summary + new messages become one."""

    name = "rolling"
    sends_records = True
    whole_turns = None

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._recent_messages = limits.app_context_recent_messages
        self._sends_unsummarised = limits.rolling_sends_unsummarised

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the next version of the summary if one is due; no turn waits for it."""
        new = snapshot.complete_raw
        threshold_tokens = self._limits.within(snapshot.input_tokens).app_context_threshold
        if not is_version_due(sum(entry.tokens for entry in new), threshold_tokens):
            return ()
        old = snapshot.active
        spec = fold_of(old, new, kind="rolling", rate=snapshot.rate, style="rolling", cut=_cut)
        # Messages are cut for the summariser: the estimate of what it reads isn't that of what they are.
        tokens = sum(estimate_tokens(text_of(message)) for message in spec.messages)
        bounded = replace(spec, source_tokens=tokens).bounded(
            SUMMARY_TOKENS, most_chars=min(SUMMARY_CHARS, spec.source_chars // 2)
        )
        version = old[-1].version + 1 if old and old[-1].kind == "rolling" else 1
        return (replace(bounded, version=version, answer_tokens=SUMMARY_TOKENS, is_exact=False, is_waited=False),)

    def assemble(
        self, system: SystemPart, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]
    ) -> ModelInput:
        """Builds the system prompt and ONE user message of summary, newest messages and the current one.

        The first or second message of a session goes alone. Tool calls of the open turn follow as they are.
        """
        opened = extract_current_turn(messages)
        prior = messages[: len(messages) - len(opened)]
        base = assemble(system, (), opened)
        if not opened or (not history and len(prior) <= 1):
            return base
        recent = prior if self._sends_unsummarised else prior[unsent_count(prior, self._recent_messages) :]
        current = text_of(opened[0])
        text = build_context_prompt(render_summary(history), recent, current)
        joined = opened[0].model_copy(update={"content": text})
        recent_tokens = [estimate_tokens(_words(message)) for message in recent]
        overhead = max(0, estimate_tokens(text) - sum(recent_tokens) - estimate_tokens(current))
        items = [base.items[0]]
        items += [record_item(entry) for entry in history]
        items += [InputItem("message", str(m.id), 1, n) for m, n in zip(recent, recent_tokens, strict=True)]
        items += [
            InputItem("note", "context", 1, max(0, overhead - sum(e["summary_tokens"] for e in history))),
            *base.items[1:],
        ]
        return ModelInput((base.messages[0], joined, *base.messages[2:]), tuple(items))


def is_version_due(unsummarised_tokens: int, threshold_tokens: int) -> bool:
    """Whether the next version is due: strictly over the threshold (seed 003)."""
    return unsummarised_tokens > threshold_tokens


def unsent_count(prior: Sequence[AnyMessage], recent_messages: int) -> int:
    """Counts the oldest messages that aren't among the recent ones; a tool result is never parted from its call."""
    cut = max(0, len(prior) - recent_messages)
    while 0 < cut < len(prior) and isinstance(prior[cut], ToolMessage):
        cut -= 1
    return cut


def render_summary(history: Sequence[HistoryEntry]) -> str:
    """Renders what stands for the earlier conversation: the one summary, or the records of another strategy."""
    if len(history) == 1:
        return unlabelled(history[0]["summary"])
    return "\n".join(labelled(label_of(entry["turns"]), entry["summary"]) for entry in history)


def build_context_prompt(summary: str, recent: Sequence[AnyMessage], current: str) -> str:
    """Renders seed 003's single user message.

    Args:
        summary: What stands for the earlier conversation, rendered; "" leaves its part out.
        recent: Messages since then, oldest first; each is cut at 2,000 characters.
        current: The current message, whole and as it is: nothing stands behind it.
    """
    parts = []
    if summary:
        parts.append(CONTEXT_PART.format(summary=summary))
    lines = [labelled(f"{_speaker(m)}: ", words) for m in recent if (words := _words(m))]
    if lines:
        parts.append(RECENT_PART.format(lines="\n".join(lines)))
    return "\n\n".join([*parts, CURRENT_PART.format(text=current)])


def _words(message: AnyMessage) -> str:
    """Renders what a message says, cut at 2,000 characters, and the tools that it calls; "" for nothing at all."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [f"(tool call: {call['name']} {json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    return cut_text("\n".join([*([text] if (text := text_of(message).strip()) else []), *called]), INPUT_CHARS)


def cut_text(text: str, max_chars: int) -> str:
    """Cuts a text to that many characters, the last of them an ellipsis."""
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _speaker(message: AnyMessage) -> str:
    if isinstance(message, HumanMessage):
        return "USER"
    return "ASSISTANT" if isinstance(message, AIMessage) else "TOOL"


def _cut(message: AnyMessage) -> AnyMessage:
    text = text_of(message)
    short = cut_text(text, SOURCE_CHARS)
    return message if short == text else message.model_copy(update={"content": short})
