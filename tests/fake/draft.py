"""Drafts of a given length and the folds that they are compared with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.fold import review
from graph.fold.review import Review, SummaryDraft, flaw_of
from graph.fold.spec import FoldSpec, fold_of_messages

KOREAN = "서버를 옮기는 날은 10월 14일로 정했습니다. "
TOLD = "김민수가 새 서버를 언제 옮길지 물었고 함께 표를 보았습니다. "
ENGLISH = "The server moves on 14 October at nine. "


def source_of(text: str, target: int, **changes: object) -> FoldSpec:
    return spec_of([HumanMessage(text), AIMessage("네.")], target, **changes)


def spec_of(messages: Sequence[AnyMessage], target: int, **changes: object) -> FoldSpec:
    """The fold of turns 1 to 3 with these messages."""
    spec = replace(fold_of_messages(messages, target), turns=(1, 2, 3))
    return replace(spec, **changes)  # type: ignore[arg-type]  # the fields' types are checked by their use


def draft_of(text: str, *, is_cut: bool = False, is_extracted: bool = False) -> SummaryDraft:
    return SummaryDraft(text, 0, 0, is_usage=False, is_cut=is_cut, is_extracted=is_extracted)


def flaw_in(text: str, spec: FoldSpec) -> str | None:
    flaw = flaw_of(draft_of(text), spec)
    return flaw.kind if flaw else None


def review_drafts(texts: list[str], spec: FoldSpec) -> Review:
    return review.review_drafts([draft_of(text) for text in texts], spec)


_THINGS = ("서버를", "파일을", "기록을", "문서를", "사진을", "암호를", "설정을", "백업을", "로그를", "목록을")
_WAYS = ("먼저", "나중에", "천천히", "한꺼번에", "새벽에", "낮에", "조용히", "다시", "차례로", "따로")
# Different sentences, as a text that repeats itself is no summary.
_DAYS = ("월요일", "화요일", "수요일", "목요일", "금요일", "토요일", "일요일")
VARIED = tuple(f"{thing} {way} 옮기는 날은 {day}입니다. " for day in _DAYS for way in _WAYS for thing in _THINGS)
VARIED_ENGLISH = tuple(
    f"The {thing} moves {way} on 14 October. "
    for way in ("first", "later", "slowly", "at night", "by hand", "in parts")
    for thing in ("server", "archive", "index", "cache", "log", "table")
)


def korean(chars: int) -> str:
    return "".join(VARIED)[:chars]


def told(chars: int) -> str:
    return (TOLD * (chars // len(TOLD) + 1))[:chars]
