"""What can be made smaller when an input would pass the guard's share of the window; decides nothing by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage

from graph.core.adopt import label_of
from graph.core.assembly import KEPT_CHARS, SHORTENED
from graph.core.extract import extract_summary
from graph.core.record import HistoryEntry
from graph.core.standing import FoldOrder, Standing
from graph.core.strategy.rolling import joined_id, previous_summary
from graph.core.token import estimate_tokens
from graph.core.turn import is_complete, split_turns, text_of

_SUMMARY_SHARE: Final = 4
_MIN_SUMMARY_TOKENS: Final = 200
_VERBATIM_SHARE: Final = 0.3
_MIN_RESULT_CHARS: Final = 200
_NOTE_TOKENS: Final = 40


def guard_order(standing: Standing, limit_tokens: int) -> FoldOrder | None:
    """Returns the fold of everything but the open turn into one record; None if a small enough one stands already.

    Args:
        standing: How the session stands.
        limit_tokens: What the whole input may be; the record takes at most a quarter of it.
    """
    old, raw = standing.in_force, standing.complete_raw
    max_tokens = max(_MIN_SUMMARY_TOKENS, limit_tokens // _SUMMARY_SHARE)
    if not raw and len(old) <= 1 and all(record.summary_tokens <= max_tokens for record in old):
        return None
    read = [*previous_summary(old), *(entry.message for entry in raw)]
    chars = sum(len(text_of(message)) for message in read)
    tokens = sum(record.summary_tokens for record in old) + sum(entry.tokens for entry in raw)
    return FoldOrder(
        kind="compaction",
        level=0,
        turns=tuple(dict.fromkeys([t for record in old for t in record.turns] + [entry.turn for entry in raw])),
        from_position=old[0].from_position if old else raw[0].position,
        to_position=raw[-1].position if raw else old[-1].to_position,
        messages=tuple(read),
        source_ids=(*joined_id(old), *(str(entry.message.id) for entry in raw)),
        original_chars=sum(record.original_chars for record in old) + sum(entry.chars for entry in raw),
        source_chars=chars,
        source_tokens=tokens,
        target_chars=max(1, min(chars // 2, int(max_tokens * chars / max(1, tokens)))),
        rate=standing.rate,
        sources=tuple(record.id for record in old),
        style="rolling",
        until_message_id="" if raw else old[-1].covered_until_message_id,
        covered_message_count=sum(record.covered_message_count for record in old) + len(raw),
        covered_token_count=sum(r.covered_token_count for r in old) + sum(entry.tokens for entry in raw),
        context_messages=len(raw) + bool(old),
        context_messages_after=1,
        context_tokens=tokens,
        is_bound=True,
        max_tokens=max_tokens,
    )


def shorten_verbatim(history: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Returns the history with word-for-word records as short summaries, for one call; each says that it is one."""
    return [_shortened(entry) if entry["kind"] == "verbatim" else entry for entry in history]


def _shortened(entry: HistoryEntry) -> HistoryEntry:
    picked = extract_summary([HumanMessage(entry["summary"])], int(len(entry["summary"]) * _VERBATIM_SHARE))
    text = f"(이번 호출에만 줄임) {picked}"
    tokens = estimate_tokens(label_of(entry["turns"]) + text)
    if tokens >= entry["summary_tokens"]:
        return entry
    return {**entry, "kind": SHORTENED, "summary": text, "summary_tokens": tokens}


def without_oldest_turn(messages: Sequence[AnyMessage]) -> list[AnyMessage] | None:
    """Returns the messages without their oldest complete turn; None if only an open turn is left."""
    turns = split_turns(messages)
    if not turns or not is_complete(turns[0]):
        return None
    return [message for turn in turns[1:] for message in turn]


def cut_results(messages: Sequence[AnyMessage], excess_tokens: int) -> list[AnyMessage]:
    """Cuts tool results, the longest first, until about that many tokens are saved; each says how much is missing."""
    cut = list(messages)
    order = sorted(
        (index for index, message in enumerate(cut) if isinstance(message, ToolMessage)),
        key=lambda index: len(text_of(cut[index])),
        reverse=True,
    )
    for index in order:
        if excess_tokens <= 0:
            break
        text = text_of(cut[index])
        tokens = estimate_tokens(text)
        share = max(0.0, 1 - (excess_tokens + _NOTE_TOKENS) / max(1, tokens))
        keep = max(_MIN_RESULT_CHARS, int(len(text) * share))
        if keep >= len(text):
            continue
        shorter = f"{text[:keep]}\n\n[cut: {keep} of {len(text)} characters fit the window / 일부만 표시됨]"
        marked = {**cut[index].additional_kwargs, KEPT_CHARS: keep}
        cut[index] = cut[index].model_copy(update={"content": shorter, "additional_kwargs": marked})
        excess_tokens -= tokens - estimate_tokens(shorter)
    return cut
