"""Drafts of a given length and the source that they are compared with."""

from __future__ import annotations

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.core.text import estimate_tokens
from graph.core.turn import label_of
from graph.fold import review
from graph.fold.review import Review, Source, SummaryDraft, flaw_of

KOREAN = "서버를 옮기는 날은 10월 14일로 정했습니다. "
TOLD = "김민수가 새 서버를 언제 옮길지 물었고 함께 표를 보았습니다. "
ENGLISH = "The server moves on 14 October at nine. "


def source_of(text: str, target: int, scripts: frozenset[str] = frozenset({"ko"})) -> Source:
    messages: list[AnyMessage] = [HumanMessage(text), AIMessage("네.")]
    return Source(messages, len(text) + 2, estimate_tokens(text), target, label_of((1, 2, 3), "ko"), scripts)


def draft_of(text: str, *, is_cut: bool = False) -> SummaryDraft:
    return SummaryDraft(text, 0, 0, is_usage=False, is_cut=is_cut)


def flaw_in(text: str, source: Source) -> str | None:
    flaw = flaw_of(draft_of(text), source)
    return flaw.kind if flaw else None


def review_drafts(texts: list[str], source: Source) -> Review:
    return review.review_drafts([draft_of(text) for text in texts], source)


def korean(chars: int) -> str:
    return (KOREAN * (chars // len(KOREAN) + 1))[:chars]


def told(chars: int) -> str:
    return (TOLD * (chars // len(TOLD) + 1))[:chars]
