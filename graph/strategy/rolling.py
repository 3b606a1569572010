"""Seed 003's strategy: a versioned summary, and the messages since then in one user message."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.model_input import (
    History,
    InputItem,
    Messages,
    ModelInput,
    SystemPart,
    assemble,
    placed_in,
    record_item,
    render_placed,
)
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import extract_current_turn, labelled, text_of, with_words, words_of
from graph.fold.spec import FoldSpec, fold_of
from graph.strategy.base import Limits
from graph.value.record import ArchivedMessage
from graph.value.view import NextFold
from prompt.system.framing import CONTEXT_PART, CURRENT_PART, RECENT_PART

INPUT_CHARS: Final = 2_000
SOURCE_CHARS: Final = 3_000
SUMMARY_TOKENS: Final = 1_024
SUMMARY_CHARS: Final = 3_000


class RollingStrategy:
    """Joins the previous summary and later messages once these pass the threshold after an answer."""

    name = "rolling"
    sends_records = True
    whole_turns = None
    uses_rate = False

    def __init__(self, limits: Limits) -> None:
        self._limits = limits

    def next_fold(self, snapshot: SessionSnapshot) -> NextFold:
        limits = self._limits.within(snapshot.input_tokens)
        return NextFold(
            tokens=sum(entry.tokens for entry in snapshot.complete_raw),
            threshold_tokens=limits.app_context_threshold,
            is_due=bool(_due_messages(snapshot, limits)),
        )

    def due_folds(self, snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
        """Returns the next version of the summary if one is due; no turn waits for it."""
        new = _due_messages(snapshot, self._limits.within(snapshot.input_tokens))
        if not new:
            return ()
        old = snapshot.active
        spec = fold_of(
            old,
            new,
            kind="rolling",
            rate=snapshot.rate,
            language=snapshot.language,
            style="rolling",
            cut=_cut,
            time_zone=snapshot.time_zone,
        )
        # Messages are cut for the summariser, so its input is smaller than the messages' own estimates.
        tokens = sum(estimate_tokens(text_of(message)) for message in spec.messages)
        bounded = replace(spec, source_tokens=tokens).bounded(
            SUMMARY_TOKENS, most_chars=min(SUMMARY_CHARS, spec.source_chars // 2)
        )
        version = old[-1].version + 1 if old and old[-1].kind == "rolling" else 1
        return (replace(bounded, version=version, answer_tokens=SUMMARY_TOKENS, is_exact=False, is_waited=False),)

    def assemble(self, system: SystemPart, history: History, messages: Messages) -> ModelInput:
        """Builds the system prompt and ONE user message of summary, un-summarised messages and the current one.

        The first or second message of a session is sent alone. Tool calls of the open turn follow unchanged, and
        messages of a program go in front.
        """
        opened = extract_current_turn(messages)
        recent = messages[: len(messages) - len(opened)]
        base = assemble(replace(system, pins=(), ledger=()), (), opened)
        sent = recent
        if not self._limits.rolling_sends_unsummarised:
            sent = recent[unsent_count(recent, self._limits.app_context_recent_messages) :]
        whole = [message for message in sent if len(_all_words(message)) <= INPUT_CHARS]
        placed = placed_in(system, history, [*whole, *opened])
        if not opened or (not placed and len(recent) <= 1):
            return base
        current = words_of(opened[0])
        volatile = "" if system.volatile is None else system.volatile.text
        text = build_context_prompt(render_placed(placed, system.language, labels_alone=False), sent, current, volatile)
        joined = with_words(opened[0], text)
        in_front = 0 if system.before is None else len(system.before.said.messages)
        count = system.item_count + (system.before is not None)
        head, rest = base.items[:count], base.items[count:]
        items = [record_item(entry, system.language) for entry in placed]
        items += [InputItem("message", str(message.id), 1, estimate_tokens(_words(message))) for message in sent]
        beside = estimate_tokens(text) - estimate_tokens(current) - sum(item.tokens for item in items)
        if volatile:
            beside -= rest[0].tokens
        items.append(InputItem("note", "context", 1, max(0, beside)))
        messages_before, messages_behind = base.messages[: in_front + 1], base.messages[in_front + 2 :]
        return ModelInput((*messages_before, joined, *messages_behind), (*head, *items, *rest))


def _due_messages(snapshot: SessionSnapshot, limits: Limits) -> list[ArchivedMessage]:
    """Returns the messages of the due summary, oldest first.

    The newest exchange stays raw if all un-summarised messages are sent, so that the next input has it word for word.
    """
    raw = snapshot.complete_raw
    if sum(entry.tokens for entry in raw) <= limits.app_context_threshold:
        return []
    if not limits.rolling_sends_unsummarised:
        return raw
    return [entry for entry in raw if entry.turn != raw[-1].turn]


def unsent_count(prior: Messages, recent_messages: int) -> int:
    """Counts the messages before the recent ones; a tool result always stays with its call."""
    cut = max(0, len(prior) - recent_messages)
    while 0 < cut < len(prior) and isinstance(prior[cut], ToolMessage):
        cut -= 1
    return cut


def build_context_prompt(summary: str, recent: Messages, current: str, volatile: str = "") -> str:
    """Renders seed 003's single user message; each recent message is cut at 2,000 characters, the current one never."""
    parts = []
    if summary:
        parts.append(CONTEXT_PART.format(summary=summary))
    lines = [labelled(f"{_speaker(message)}: ", words) for message in recent if (words := _words(message))]
    if lines:
        parts.append(RECENT_PART.format(lines="\n".join(lines)))
    if volatile:
        parts.append(volatile)
    return "\n\n".join([*parts, CURRENT_PART.format(text=current)])


def _words(message: AnyMessage) -> str:
    return cut_text(_all_words(message), INPUT_CHARS)


def _all_words(message: AnyMessage) -> str:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [f"(tool call: {call['name']} {json.dumps(call['args'], ensure_ascii=False)})" for call in calls]
    lines = [text_of(message).strip(), *called]
    return "\n".join(line for line in lines if line)


def cut_text(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


def _speaker(message: AnyMessage) -> str:
    if isinstance(message, HumanMessage):
        return "USER"
    return "ASSISTANT" if isinstance(message, AIMessage) else "TOOL"


def _cut(message: AnyMessage) -> AnyMessage:
    text = text_of(message)
    if len(text) <= SOURCE_CHARS:
        return message
    return message.model_copy(update={"content": cut_text(text, SOURCE_CHARS)})
