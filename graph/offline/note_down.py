"""Tells what the user wants noted in the project, and by which tool calls the embedded model notes it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from langchain_core.messages import ToolMessage

from graph.core.turn import is_note
from graph.offline.phrase import PHRASES, Language, label_noted
from graph.offline.project_block import Listed, read_listed, sections_of
from prompt.project.memory import ACTIVE_PLAN, ACTIVE_TASK, DECISIONS, OPEN_FILES

# Longer ones are no order, and would take the patterns long.
_ORDER_CHARS: Final = 2_000
_NAME: Final = r"[A-Za-z0-9_가-힣.@+-]"
_PATH: Final = re.compile(
    r"(?<![A-Za-z0-9_가-힣.@+/-])/*+(?:"
    rf"(?:{_NAME}*/)*{_NAME}*\.[A-Za-z][A-Za-z0-9]{{0,7}}(?![A-Za-z0-9_/-])|(?:{_NAME}++/)++[A-Za-z0-9_@+-]*)"
)
_POLITE: Final = r"(?:please\s|(?:can|could|would)\syou\s(?:please\s)?)?"
_THE: Final = r"(?:(?:a|an|the|this|that|my|our|new|current|active)\s)*"
# In this order: the first one that matches decides, and its group is what is to be noted.
_ASKED: Final[dict[str, str]] = {
    "record_decision": rf"""
        결정(?:\s?사항)?(?:\s?기록)?\s?[:：]\s?(.+)
        |([^:：]+?)(?:[을를]\s결정으로|\s?(?:라는|다는|한)?\s결정[을를]?)\s(?:기록|적어|남겨)\S*(?:\s\S{{1,4}}){{0,2}}
        |{_POLITE}{_THE}decision\s?[:：]\s?(.+)
        |{_POLITE}(?:record|note|save|write\sdown)\s(?:as\s)?{_THE}decision(?:\sthat|\sto|\s?[:：])?\s(.+?)\??
    """,
    "complete_task": rf"""
        (?:이|그|지금|현재)?\s?(?:작업|할\s?일|태스크)\S?\s?(?:완료|끝|마[쳤침])[^\s:：]*(?:\s?[:：]\s?(.+))?
        |([^:：]+?)\s(?:작업|할\s?일|태스크)\S?\s?(?:완료|끝[났냈]|마쳤|다\s했)\S*
        |{_THE}task\s(?:is\s)?(?:done|completed?|finished)(?:\s?[:：]\s?(.+))?
        |{_POLITE}(?:mark|complete|finish|close)\s{_THE}task(?:\s(?:as\s)?(?:done|complete|finished))?(?:\s?[:：]\s?(.+))?\??
    """,
    "open_task": rf"""
        (?:새\s?)?(?:작업|할\s?일|태스크)\s?(?:시작|추가|열기)?\s?[:：]\s?(.+)
        |([^:：]+?)\s작업을?\s시작(?:하자|할게요?|합시다|합니다|하겠습니다|해(?:\s?줘|\s?주세요|요)?)
        |{_POLITE}(?:(?:start|open|add|begin|create)\s)?(?:(?:a|the|new)\s)*task\s?[:：]\s?(.+)
        |{_POLITE}(?:start|open|add|begin|create)\s{_THE}task\s(?:(?:to|called|named|of|for)\s)?(.+?)\??
    """,
    "switch_plan": rf"""
        (?:계획|플랜)\s?(?:전환|변경)\s?[:：]\s?(.+)
        |([^:：]+?)\s(?:계획|플랜)으로\s?(?:바꾸|바꿔|전환|옮기|옮겨|가자)\S*(?:\s\S{{1,4}}){{0,2}}
        |{_POLITE}switch\s(?:to\s)?{_THE}plan\s?[:：]?\s(.+?)\??
        |{_POLITE}switch\sto\s{_THE}(.+?)\splan\??
    """,
    "note_open_files": rf"""
        (?:(?:열린|연|작업|작업\s중인)\s?)?파일(?:\s?열기|\s?열림)?\s?[:：]\s?(.+)
        |([^:：]+?)(?:[을를]|\s?파일[을를]?)?\s?(?:열었|열어\s?(?:뒀|두었|놨|놓았))\S*
        |{_POLITE}(?:note\s)?{_THE}(?:open(?:ed)?\s)?files?\s?[:：]\s?(.+)
        |i(?:['’]m|\sam)\s(?:now\s)?(?:working\son|editing)\s(.+)
        |i(?:['’]ve|\shave)?\s(?:just\s)?opened\s(.+)
    """,
}
_PATTERNS: Final = {
    tool: re.compile(f"(?:{asked})[.!~\\s]*", re.IGNORECASE | re.VERBOSE) for tool, asked in _ASKED.items()
}
_REQUEST: Final = re.compile(r"(?:please|can|could|would)\b", re.IGNORECASE)
_POINTING: Final = re.compile(r"(?:이|그|저|지금|현재|방금)(?:\s?(?:하던|하는))?|it|this|that", re.IGNORECASE)
_IDS: Final = {"complete_task": "task_id", "switch_plan": "plan_id"}


# Where in the project's memory a tool's notes stand.
LABELS: Final = {
    "record_decision": DECISIONS,
    "open_task": ACTIVE_TASK,
    "complete_task": ACTIVE_TASK,
    "switch_plan": ACTIVE_PLAN,
    "note_open_files": OPEN_FILES,
}


@dataclass(frozen=True)
class Call:
    """A call of a tool with its arguments."""

    tool: str
    arguments: Mapping[str, str | list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Note:
    """What a sentence wants noted.

    Attributes:
        tool: The tool that notes it.
        named: The decision, the title of the task or plan, "" for the active one, or the paths.
        said: The whole sentence.
    """

    tool: str
    named: str
    said: str

    def call(self) -> Call:
        """Returns its first call; a tool that wants an id is asked what there is."""
        if self.tool in _IDS:
            return Call(self.tool, {_IDS[self.tool]: ""})
        if self.tool == "open_task":
            return Call(self.tool, {"title": self.named})
        if self.tool == "note_open_files":
            return Call(self.tool, {"paths": _PATH.findall(self.named)})
        return Call(self.tool, {"text": self.named, "said": self.said})

    def call_by_id(self, result: str) -> Call | None:
        """Returns its second call, by the id of what the first one's result lists; None if that isn't there."""
        if self.tool not in _IDS:
            return None
        lines = [line for section in sections_of(result).values() for line in section]
        listed = [each for line in lines if (each := read_listed(line)) is not None]
        chosen = next((each for each in reversed(listed) if self._means(each)), None)
        return Call(self.tool, {_IDS[self.tool]: chosen.id}) if chosen else None

    def _means(self, listed: Listed) -> bool:
        if not self.named:
            return listed.is_active
        return not listed.is_done and self.named.casefold() in listed.text.casefold()


def find_note(sentence: str) -> Note | None:
    """Returns what a sentence wants noted; None if nothing, as with every question."""
    is_asking = sentence.endswith(("?", "？")) and not _REQUEST.match(sentence)
    if is_asking or len(sentence) > _ORDER_CHARS:
        return None
    for tool, pattern in _PATTERNS.items():
        if (found := pattern.fullmatch(sentence)) is not None:
            named = next((group for group in found.groups() if group), "").strip().rstrip(" .!~")
            note = Note(tool, "" if _POINTING.fullmatch(named) else named, sentence)
            if tool != "note_open_files" or _PATH.search(named):
                return note
    return None


def find_notes(sentences: Sequence[str]) -> list[Note]:
    """Returns what the sentences want noted, in their order."""
    return [note for sentence in sentences if (note := find_note(sentence)) is not None]


def next_call(notes: Sequence[Note], results: Sequence[ToolMessage], tool_names: Collection[str]) -> Call | None:
    """Returns the call that is to be made now; None if all is noted, or the tool isn't offered.

    Args:
        notes: What the message wants noted.
        results: What the tools returned in this turn, in order.
        tool_names: The tools that may be called.
    """
    call = _replay(notes, results)[1]
    return call if call and call.tool in tool_names else None


def tell_notes(notes: Sequence[Note], results: Sequence[ToolMessage], language: Language) -> str:
    """Says what became of the notes; "" if no tool was called for one."""
    return "\n\n".join(_tell(result, language) for result in _replay(notes, results)[0])


def _replay(notes: Sequence[Note], results: Sequence[ToolMessage]) -> tuple[list[ToolMessage], Call | None]:
    """Goes through the notes with what was returned so far: the last result of each, and the call that comes next."""
    returned = iter([result for result in results if is_note(result)])
    ends: list[ToolMessage] = []
    for note in notes:
        if (result := next(returned, None)) is None:
            return ends, note.call()
        if (call := note.call_by_id(result.text)) is not None and (result := next(returned, None)) is None:
            return ends, call
        ends.append(result)
    return ends, None


def _tell(result: ToolMessage, language: Language) -> str:
    say = PHRASES[language]
    if result.status == "error":
        lines = [f"> {line}" for line in result.text.splitlines()]
        return "\n".join([say["project_refused"], "", *lines])
    lines = [line for section in sections_of(result.text).values() for line in section]
    # Named as what stands in the project, a line is nothing that was said in the chat.
    return "\n".join([say["project_noted"], "", *(f"{line} {label_noted(language, '')}" for line in lines)])
