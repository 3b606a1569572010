"""Decides whether a draft summary may replace its source messages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AnyMessage

from graph.core.language import is_written_in
from graph.core.token import estimate_tokens
from graph.core.turn import text_of
from graph.record import RecordOutcome
from prompt.summary import feedback
from prompt.summary.summary_generator import MAX_TARGET_CHARS
from prompt.system.framing import RECORD_LABEL, SPEAKER, VERBATIM_NOTE, Language

SMALL_TARGET_CHARS: Final = 80
MIN_SHARE: Final = 0.6
MAX_SHARE: Final = 1.25
# A draft below this share of the requested length is hollow: a refusal, a heading, a full stop. The share is smaller
# where the requested length is only an upper bound.
_LEAST_SHARE: Final = 0.2
_LEAST_BOUND_SHARE: Final = 0.1
# Invisible characters that Unicode classes as letters, marks or symbols.
_BLANKS: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code) for first, last in ((0x180B, 0x180F), (0xFE00, 0xFE0F)) for code in range(first, last + 1)
}
_SENTENCE_END: Final = re.compile(r"[.!?。…](?=\s|$)|\n")


@dataclass(frozen=True)
class SummaryDraft:
    """A summary as it was written, before its review.

    Attributes:
        input_tokens: Tokens read to write it, over all calls.
        output_tokens: Tokens written.
        is_usage: Whether the provider reported both; otherwise they are our estimates.
        is_cut: Whether the model stopped at its length limit; the text then ends with its last whole sentence.
    """

    text: str
    input_tokens: int
    output_tokens: int
    is_usage: bool
    is_cut: bool = False


@dataclass(frozen=True)
class Source:
    """What a draft is compared with.

    Attributes:
        label: Precedes the summary in the model input and counts towards its size.
        language: The script of the user's own words, None if unknown.
        is_bound: Whether the target is only an upper bound.
        max_tokens: Upper bound on the adopted text with its label, None for no bound.
        is_quoted: Whether the drafts are sentences of the source itself, which are never hollow.
        session_language: The language of the fixed words around a verbatim text.
    """

    messages: Sequence[AnyMessage]
    chars: int
    tokens: int
    target_chars: int
    label: str
    language: str | None
    is_bound: bool = False
    max_tokens: int | None = None
    is_quoted: bool = False
    session_language: Language = "ko"

    @property
    def asked_chars(self) -> int:
        """The length that the prompt asks for: the target within its limit."""
        return max(1, min(self.target_chars, MAX_TARGET_CHARS))

    @property
    def least_chars(self) -> float:
        """The visible characters below which a draft is hollow."""
        if self.is_quoted:
            return 1
        return max(1, self.asked_chars * (_LEAST_BOUND_SHARE if self.is_bound else _LEAST_SHARE))

    @property
    def is_small(self) -> bool:
        """Whether the target is too short for a retry or a cut."""
        return self.target_chars < SMALL_TARGET_CHARS and not self.is_bound


@dataclass(frozen=True)
class Review:
    """The result of a fold: a text that replaces its source, or none.

    Attributes:
        text: The adopted text, "" if there is none.
        is_verbatim: Whether the text is the quoted source itself, because no draft was shorter.
        error_code: Why no text was adopted, "" otherwise.
    """

    text: str
    outcome: RecordOutcome
    is_verbatim: bool = False
    error_code: str = ""


def label_of(turns: Sequence[int], language: Language) -> str:
    """Returns the label of a record in the model input, e.g. `[1-3턴] ` or `[Turns 1-3] `."""
    return RECORD_LABEL[language].format(first=turns[0], last=turns[-1])


def feedback_on(draft: SummaryDraft, source: Source) -> str:
    """Returns what is wrong with a first draft, for the one retry; "" if there is nothing to improve."""
    if source.is_small:
        return ""
    text = draft.text.strip()
    if not visible_chars(text):
        return feedback.EMPTY
    if not is_written_in(text, source.language):
        return feedback.OTHER_LANGUAGE
    if draft.is_cut and not source.is_bound:
        return feedback.BROKEN_OFF
    return _length_feedback(text, source)


def _length_feedback(text: str, source: Source) -> str:
    is_long = len(text) > source.asked_chars * MAX_SHARE
    least_chars = source.least_chars if source.is_bound else source.asked_chars * MIN_SHARE
    chars = len(text) if is_long else visible_chars(text)
    if not is_long and chars >= least_chars:
        return ""
    percent = round(abs(chars / source.asked_chars - 1) * 100)
    return feedback.wrong_length(percent, len(text), is_long=is_long)


def review_drafts(drafts: Sequence[SummaryDraft], source: Source) -> Review:
    """Chooses among all drafts of one fold: complete ones first, of these the one nearest to the requested length.

    A draft is adopted only if it isn't hollow, is in the user's language, and is smaller than its source in characters
    and in tokens, label included. It is cut at a sentence end beyond 125 % of the requested length. A small source
    (target under 80 characters) without such a draft is quoted verbatim.
    """
    written = [draft for draft in drafts if visible_chars(draft.text)]
    fitting = [draft for draft in written if is_written_in(draft.text, source.language)]
    telling = [draft for draft in fitting if visible_chars(draft.text) >= source.least_chars]
    if telling:
        best = min(telling, key=lambda d: (d.is_cut, abs(math.log(len(d.text.strip()) / source.asked_chars))))
        text = best.text.strip()
        cut = text if source.is_small else _within_bounds(text, source)
        if _is_smaller(cut, source):
            return Review(cut, "compressed" if cut == text and not best.is_cut else "shortened")
    if source.is_small:
        return Review(
            quote(source.messages, source.session_language), "inflated" if written else "empty", is_verbatim=True
        )
    if telling:
        return Review("", "inflated", error_code="summary_inflated")
    if fitting:
        return Review("", "failed", error_code="summary_short")
    if written:
        return Review("", "failed", error_code="summary_language")
    return Review("", "empty", error_code="summary_empty")


def visible_chars(text: str) -> int:
    """Counts the characters that a reader sees, not control, format or filler characters; a run of spaces is one."""
    return sum(char not in _BLANKS and unicodedata.category(char)[0] != "C" for char in " ".join(text.split()))


def _within_bounds(text: str, source: Source) -> str:
    """Cuts a text to 125 % of the requested length, and further while it exceeds the bound in tokens."""
    cut = cut_at_sentence(text, int(source.asked_chars * MAX_SHARE))
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
    # A cut at a sentence end in the first half would lose too much.
    if ends and ends[-1] >= max_chars // 2:
        return text[: ends[-1]].rstrip()
    head = text[: max_chars - 1]
    return (head.rsplit(None, 1)[0] if " " in head.strip() else head).rstrip() + "…"


def until_last_sentence(text: str) -> str:
    """Removes the unfinished last sentence of a text that broke off, or its last word if it has no sentence end."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    if ends:
        return text[: ends[-1]].rstrip()
    return (text.rsplit(None, 1)[0] if len(text.split()) > 1 else text).rstrip() + "…"


def quote(messages: Sequence[AnyMessage], language: Language) -> str:
    """Renders messages verbatim as quoted text with its speakers; messages without text are left out."""
    lines: list[str] = []
    for message in messages:
        text = text_of(message).strip()
        if text:
            lines += f"{SPEAKER[language][message.type]}: {text}".splitlines()
    return f"{VERBATIM_NOTE[language]}\n> " + "\n> ".join(lines)
