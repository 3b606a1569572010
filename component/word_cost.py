"""The page's texts on what model calls cost, with English defaults; `word_cost_ko` has the Korean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CostWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    title: str = "💰 Cost"
    of_session: str = "This chat: {amount}"
    of_summaries: str = "Its summaries alone: {amount}"
    of_all: str = "All chats: {amount}"
    unpriced: str = "+ calls without a price: {count}"
    estimate: str = (
        "≈ is our estimate: the model provider didn't report all tokens, or summaries are counted without its cache."
    )
    saved_note: str = (
        "Where the provider has a cache, tokens that weren't sent count at the price of cached ones: nearly all of "
        "them would have been read there."
    )
