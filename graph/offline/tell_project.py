"""Answers what is asked of the project's memory as a whole: the active task, the last decision, the open files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from graph.core.language import content_terms
from graph.offline.passage import find_intent
from graph.offline.phrase import PHRASES, PROJECT_PARTS, Language, label_noted
from graph.offline.project_block import Noted, Project
from prompt.project.memory import ACTIVE_PLAN, ACTIVE_TASK, DECISIONS, OPEN_FILES, PROJECT, SUMMARY

# Each takes all words that name what is asked for: what then is left of the question is a topic.
_WORDING: Final = {
    PROJECT: r"프로젝트\s?이름\S*|(?:무슨|어떤)\s프로젝트\S*|\b(?:what|which)\sproject\b"
    r"|\bproject(?:['’]?s)?\sname|\bname\sof\s(?:the|this|our)\sproject",
    ACTIVE_PLAN: r"(?:계획|플랜)(?![표서])\S*|\bplans?\b",
    ACTIVE_TASK: r"작업(?!하던\s?파일|한\s?파일|\s?파일)\S*|(?:할|하던)\s?일\S*|태스크\S*|\btasks?\b|\bworking\son\b",
    DECISIONS: r"결정(?:\s?사항)?\S*|정(?:했|한\s?[거것게])\S*|\bdecisions?\b|\bdecided?\b",
    OPEN_FILES: r"(?:연|열린|열었던|보던|작업하던|작업한|작업)\s?파일\S*|열어\s?[두둔뒀놓]\S*\s?파일\S*"
    r"|파일\S*(?:\s\S+)?\s열\S*|마지막\s?파일\S*|\bopen(?:ed)?\sfiles?\b|\blast\sfiles?\b|\bfiles?\b.{0,24}\bopen(?:ed)?\b",
    SUMMARY: r"요약(?!해|하|본)\S*|\bsummary\b",
}
_ASKED: Final = {label: re.compile(wording, re.IGNORECASE) for label, wording in _WORDING.items()}
_ALL: Final = re.compile(
    r"어디까지\s?(?:했|하|이야기|얘기|말|작업|진행|왔)\S*|어디서\s?(?:멈|끊)\S*"
    r"|프로젝트(?:의|는|가)?\s?(?:상태|현황|상황)\S*|\bproject(?:['’]?s)?\s(?:status|state)\b"
    r"|\bwhere\s(?:were|are)\s(?:we|i)\b|\bwhere\sdid\s(?:we|i)\s(?:stop|leave\soff|get\sto)\b|\bleft\soff\b"
    r"|\bwere\s(?:we|i)\sdoing\b",
    re.IGNORECASE,
)
_OVERVIEW: Final = (ACTIVE_PLAN, ACTIVE_TASK, DECISIONS, OPEN_FILES, SUMMARY)
_LAST: Final = re.compile(r"마지막|최근|방금|\b(?:last|latest|newest|most\srecent)\b", re.IGNORECASE)
_FILLER: Final = re.compile(
    r"지금\S*|현재\S*|마지막\S*|최근\S*|방금|가장|제일|어제\S*|오늘\S*|아까|지난\s?번?\S*|이전\S*|진행\S*|활성\S*|프로젝트\S*"
    r"|혹시|그럼|그리고|우리\S*|내가|제가|너\S*|좀|다시|중이\S*|중인\S*|뭐\S*|뭔\S*|뭘|무엇\S*|무슨|어떤|어느|어떻\S*"
    r"|알려\S*|말해\S*|말씀\S*|보여\S*|이야기\S*|얘기\S*|기억\S*|줘\S*|주세\S*|줄래\S*|있\S*|없\S*|[이였]었\S*|였\S*|했\S*|하고|하기로|하던"
    r"|이지|이야|이죠|인지|인가\S*|일까\S*|더라\S*|됐\S*|된\S*|되\S*"
    r"|['’]s\b|\b(?:active|current|present|last|latest|newest|most|recent|recently|yesterday|today|now|right|so|far|hello|hi|hey|remind"
    r"|project|projects|list|all|time|made|make|named|called|any|record|recorded|were|doing|done|ones?|which)\b",
    re.IGNORECASE,
)
# A longer one has a topic.
_QUESTION_CHARS: Final = 200
# What is asked of summaries in general is another matter.
_TELLING: Final = re.compile(r"(?:알려|보여|말해)\s?(?:줘|주세|줄래|봐)|프로젝트\S*\s요약\S*\s[뭐무]", re.IGNORECASE)
_ASKING: Final = ("question", "request", "recap", "table")


def labels_asked(sentence: str) -> tuple[str, ...]:
    """Returns which parts of a project's memory a sentence asks for, and nothing else; none if it names a topic.

    So "what did we decide?" has the decisions' label, and "what did we decide about the port?" none.
    """
    if len(sentence) > _QUESTION_CHARS or not (find_intent(sentence) in _ASKING or _TELLING.search(sentence)):
        return ()
    rest = _ALL.sub(" ", sentence)
    labels: tuple[str, ...] = _OVERVIEW if rest != sentence else ()
    for label in (OPEN_FILES, PROJECT, ACTIVE_TASK, DECISIONS, ACTIVE_PLAN, SUMMARY):
        found = _ASKED[label].sub(" ", rest)
        if found != rest and label not in labels:
            labels = (*labels, label)
        rest = found
    return () if content_terms(_FILLER.sub(" ", rest)) else labels


def tell_project(sentences: Sequence[str], project: Project, language: Language) -> str:
    """Returns what is known of the project to these sentences; "" if none of them asks for a part of it.

    Of decisions and files all are told, or the newest one if that is asked for. A part that is empty is said to be.
    """
    lines: dict[str, None] = {}
    for sentence in sentences:
        labels = labels_asked(sentence)
        is_last = bool(_LAST.search(sentence)) or len(labels) >= len(_OVERVIEW)
        for label in labels:
            lines.update(dict.fromkeys(_lines(label, project.get(label, ()), language, is_last=is_last)))
    return "\n".join([PHRASES[language]["project_told"], "", *lines]) if lines else ""


def _lines(label: str, noted: Sequence[Noted], language: Language, *, is_last: bool) -> list[str]:
    parts = PROJECT_PARTS[language]
    if is_last:
        noted, label = noted[-1:], f"LAST {label}" if f"LAST {label}" in parts else label
    told = [f"- {parts[label]}: {item.text} {label_noted(language, item.marks)}" for item in noted]
    return told or [f"- {parts[label]}: {PHRASES[language]['unwritten']} {label_noted(language, '')}"]
