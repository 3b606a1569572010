"""Headings, placeholders and notes around the records and messages of a model input."""

from __future__ import annotations

from typing import Final, Literal

SUMMARY_HEADING: Final = "[이전 대화 요약]"
COMPACTION_HEADING: Final = "[Previous conversation summary]"
RECORD_LABEL: Final = "[{first}-{last}턴] "
CONTINUED: Final = "(위 요약에서 이어집니다.)"
SHORTENED_NOTE: Final = "(이번 호출에만 줄임)"
VERBATIM_NOTE: Final = "(원문)"
# The speaker of a quoted message by message type.
SPEAKER: Final = {"human": "사용자", "ai": "AI", "tool": "도구"}

# Seed 003's one user message.
CONTEXT_PART: Final = "[CONVERSATION CONTEXT]\nThe following is a summary of our earlier conversation:\n{summary}"
RECENT_PART: Final = "[RECENT MESSAGES]\n{lines}"
CURRENT_PART: Final = "[CURRENT MESSAGE]\n{text}"

CLOSED_ANSWER: Final = {
    ("failed", "ko"): "(답변을 만들지 못했습니다.)",
    ("failed", "en"): "(No answer could be made.)",
    ("stopped", "ko"): "(사용자가 답변을 중지했습니다.)",
    ("stopped", "en"): "(The user stopped the answer.)",
}
UNFINISHED_CALL: Final = {"ko": "(실행이 끝나지 않았습니다.)", "en": "(The call did not finish.)"}


def note_cut(text: str, kept_chars: int, *, why: Literal["fit the window", "are shown"]) -> str:
    """Cuts a long tool result and appends a note with both lengths."""
    return f"{text[:kept_chars]}\n\n[cut: {kept_chars} of {len(text)} characters {why} / 일부만 표시됨]"
