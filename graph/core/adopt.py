"""Whether a draft of a summary may stand for its source; knows nothing of who wrote it or where it's kept."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.language import is_written_in
from graph.core.record import RecordOutcome
from graph.core.token import estimate_tokens
from graph.core.turn import text_of

SMALL_TARGET_CHARS: Final = 80
MIN_SHARE: Final = 0.6
MAX_SHARE: Final = 1.25
_SENTENCE_END: Final = re.compile(r"[.!?。…](?=\s|$)|\n")
_SPEAKERS: Final = ((HumanMessage, "사용자"), (AIMessage, "AI"), (ToolMessage, "도구"))


@dataclass(frozen=True)
class SummaryDraft:
    """A summary as it was made, not yet adopted.

    Attributes:
        input_tokens: Tokens read to make it, over all calls.
        output_tokens: Tokens written.
        is_usage: Whether the provider reported both (else they're our estimate).
    """

    text: str
    input_tokens: int
    output_tokens: int
    is_usage: bool


@dataclass(frozen=True)
class Source:
    """What a draft is judged against.

    Attributes:
        label: What stands before the summary in the model input; it counts as part of it.
        language: The script of the user's own words, None if there's none to tell by.
        is_bound: Whether the target is an upper bound only.
        max_tokens: Hard bound on the adopted text with its label, None for none.
    """

    messages: Sequence[AnyMessage]
    chars: int
    tokens: int
    target_chars: int
    label: str
    language: str | None
    is_bound: bool = False
    max_tokens: int | None = None

    @property
    def is_small(self) -> bool:
        """Whether the target is so short that length is no matter: no retry, no cut."""
        return self.target_chars < SMALL_TARGET_CHARS and not self.is_bound


@dataclass(frozen=True)
class Verdict:
    """What becomes of a fold: a text that stands for its source, or none.

    Attributes:
        text: The adopted text, "" if none is adopted.
        is_verbatim: Whether the text is the source itself, quoted, as no draft was shorter.
        error_code: Why nothing is adopted, "" otherwise.
    """

    text: str
    outcome: RecordOutcome
    is_verbatim: bool = False
    error_code: str = ""


def label_of(turns: Sequence[int]) -> str:
    """Returns what stands before a record's text in the model input: `[1-3턴] `."""
    return f"[{turns[0]}-{turns[-1]}턴] "


def feedback_on(draft: str, source: Source) -> str:
    """Says what is wrong with a first draft, for the one retry; "" if it can be taken or nothing is to be gained."""
    if source.is_small:
        return ""
    text = draft.strip()
    if not text:
        return "The last answer was empty. 직전 답이 비어 있었습니다."
    if not is_written_in(text, source.language):
        return "The last answer was not in the language of the user's own words. 직전 답은 다른 언어였습니다."
    share = len(text) / source.target_chars
    if (source.is_bound or share >= MIN_SHARE) and share <= MAX_SHARE:
        return ""
    percent = round(abs(share - 1) * 100)
    english, korean = ("too long", "길었습니다") if share > 1 else ("too short", "짧았습니다")
    return f"The last answer was {percent} % {english} ({len(text)} characters). 직전 답은 {percent} % {korean}."


def judge(drafts: Sequence[str], source: Source) -> Verdict:
    """Decides over all drafts of one fold; the one nearest to the target wins.

    Adopted is only what isn't empty, is in the user's language, and is smaller than its source in characters and in
    tokens, label included. Over 125 % of the target it's cut at a sentence end. A small block (target under 80
    characters) that nothing makes smaller stands word for word.
    """
    texts = [draft.strip() for draft in drafts if draft.strip()]
    fitting = [text for text in texts if is_written_in(text, source.language)]
    if fitting:
        text = min(fitting, key=lambda t: abs(math.log(len(t) / max(1, source.target_chars))))
        cut = text if source.is_small else _within_bounds(text, source)
        if _is_smaller(cut, source):
            return Verdict(cut, "compressed" if cut == text else "shortened")
    if source.is_small:
        return Verdict(quote(source.messages), "inflated" if texts else "empty", is_verbatim=True)
    if fitting:
        return Verdict("", "inflated", error_code="summary_inflated")
    if texts:
        return Verdict("", "failed", error_code="summary_language")
    return Verdict("", "empty", error_code="summary_empty")


def _within_bounds(text: str, source: Source) -> str:
    """Cuts a text to 125 % of the target, and further while it's over the hard bound in tokens."""
    cut = cut_at_sentence(text, int(source.target_chars * MAX_SHARE))
    while source.max_tokens is not None and len(cut) > 1 and estimate_tokens(source.label + cut) > source.max_tokens:
        cut = cut_at_sentence(cut, len(cut) * 9 // 10)
    return cut


def _is_smaller(text: str, source: Source) -> bool:
    labelled = source.label + text
    return len(labelled) < source.chars and estimate_tokens(labelled) < source.tokens


def cut_at_sentence(text: str, max_chars: int) -> str:
    """Cuts a text to at most `max_chars` at the last sentence end, else at a word's end with an ellipsis."""
    if len(text) <= max_chars:
        return text
    ends = [match.end() for match in _SENTENCE_END.finditer(text, 0, max_chars + 1) if match.end() <= max_chars]
    # A sentence end in the first half would throw away more than the cut is worth.
    if ends and ends[-1] >= max_chars // 2:
        return text[: ends[-1]].rstrip()
    head = text[: max_chars - 1]
    return (head.rsplit(None, 1)[0] if " " in head.strip() else head).rstrip() + "…"


def quote(messages: Sequence[AnyMessage]) -> str:
    """Renders messages word for word as quoted text, a paragraph a message; tool calls without text are left out."""
    paragraphs = []
    for message in messages:
        text = text_of(message).strip()
        if text:
            speaker = next(name for kind, name in _SPEAKERS if isinstance(message, kind))
            paragraphs.append("\n> ".join(f"{speaker}: {text}".splitlines()))
    return "(원문)\n> " + "\n> ".join(paragraphs)
