"""Tells a model's thoughts from its answer, in the text of a stream and in the fields beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

# Whatever says that it is thought is held to be: the names that models and the parsers of servers have are too many.
_OF_THOUGHT: Final = r"(?:think|thought|reason)"
_NAME: Final = (
    rf"(?:[\w:.-]{{0,24}}?{_OF_THOUGHT}[\w:.-]{{0,24}}"
    r"|analysis|reflection|deliberation|rumination|scratchpad|(?:inner_)?monologue|cot)"
)
_BRACKETED: Final = rf"{_OF_THOUGHT}(?:ing|s)?"
_PIPED: Final = (
    rf"<[|｜](?!/|end)\w{{0,16}}{_OF_THOUGHT}\w{{0,16}}(?<!_end)[|｜]>|<\|inner_prefix\|>|<\|channel>thought\b"
)
_PIPED_END: Final = (
    rf"<[|｜](?:(?:/|end)\w{{0,16}}{_OF_THOUGHT}\w{{0,16}}|{_OF_THOUGHT}\w{{0,9}}_end)[|｜]>"
    r"|<\|inner_suffix\|>|<channel\|>"
)
# As Open WebUI writes thoughts into a message, with a line above them that says how long they took.
_DETAILS: Final = (
    rf"<details(?=\s[^<>]{{0,200}}?\btype=[\"']?\w{{0,16}}?{_OF_THOUGHT})[^<>]{{0,300}}>"
    r"(?:\s{0,9}<summary>[^<>]{0,100}</summary>|(?=\s{0,9}(?:[^\s<]|<(?!s|\Z))))"
)
# Words that thoughts begin with; "analysis" only where more follows at once.
_BEGINNINGS: Final = (
    "here is my thought process:",
    "here's my thought process:",
    "here are my reasoning steps:",
    "analysis",
)
_IN_WORDS: Final = rf"{'|'.join(_BEGINNINGS)}(?=\w)"
_FINAL: Final = r"\[begin final response\]"
_START: Final = re.compile(
    rf"<({_NAME})>|◁think▷|\[{_BRACKETED}\](?=[^(])|{_PIPED}|{_DETAILS}|{_IN_WORDS}|<\|(?:start|channel)\|>",
    re.IGNORECASE,
)
_MENTION: Final = re.compile(rf"<{_NAME}>|◁think▷|\[{_BRACKETED}\]|{_PIPED}", re.IGNORECASE)
_LONE_END: Final = re.compile(rf"</({_NAME}) ?>|◁/think▷|\[/{_BRACKETED}\]|{_PIPED_END}|{_FINAL}", re.IGNORECASE)
_ENDS: Final[Mapping[str, re.Pattern[str]]] = {
    "<": re.compile(rf"</({_NAME}) ?>", re.IGNORECASE),
    "<|": re.compile(rf"{_PIPED_END}|<\|end\|>", re.IGNORECASE),
    "<d": re.compile(r"</details ?>", re.IGNORECASE),
    "◁": re.compile(r"◁/think▷", re.IGNORECASE),
    "[": re.compile(rf"\[/{_BRACKETED}\]", re.IGNORECASE),
    "h": re.compile(rf"here(?:'s| is) my response:|assistantfinal|{_FINAL}", re.IGNORECASE),
}
# gpt-oss names a channel before each of its messages.
_HEADS: Final = ("<|start|>", "<|channel|>")
_HEAD_END: Final = "<|message|>"
_CHANNEL: Final = re.compile(r"<\|channel\|>\s*(\w+)")
_CHANNEL_END: Final = re.compile(r"<\|(?:end|return|call|start|channel)\|>")
_TEXT_END: Final = re.compile(rf"{_LONE_END.pattern}|{_CHANNEL_END.pattern}", re.IGNORECASE)
# Round an answer behind thoughts, and behind any answer: the marks of its end that a server has left in it.
_WRAP: Final = re.compile(
    r"<(answer|response|output|final_answer)>|<\|START_(?:RESPONSE|TEXT)\|>|<\|begin_of_(?:solution|box)\|>"
    r"|<\|begin\|>assistant<\|content\|>",
    re.IGNORECASE,
)
_LAST: Final = re.compile(
    r"(?:(?:<[|｜][\w▁]{0,16}(?:end|eot|eom|eos|return|user|observation)[\w▁]{0,16}[|｜]>|<(?:\w{1,8}:)?eos>|<end_of_turn>|<turn\|>|</s>"
    r"|</(?:answer|response|output|final_answer)>|\[\|endofturn\|\]|\[end final response\])\s{0,9}){1,4}+\Z",
    re.IGNORECASE,
)
_LAST_CHARS: Final = 200
_IN_WORDS_CHARS: Final = 24
# What may be the beginning of any of these, until the next piece has come.
_BEGUN: Final = re.compile(
    r"<[|｜]?/?(?:[\w:.▁-]{1,60}[|｜ ]?)?|<\|begin\|>\w{0,9}(?:<\|?\w{0,7}\|?)?|<\|channel>\s?\w{0,7}"
    r"|<details\s[^<>]{0,300}(?:>\s{0,9}(?:<(?:s\w{0,6}(?:>[^<>]{0,100}(?:<[^<>]{0,9})?)?)?)?)?"
    r"|◁/?\w{0,5}|\[/?[\w| ]{0,24}\]?",
    re.IGNORECASE,
)
_MOST_BEGUN_CHARS: Final = 448  # of the beginning of details with their summary
_FIRST_SIGNS: Final = "<◁["
_MOST_HEAD_CHARS: Final = 200
# An answer that mentions so many end tags is about them; each costs a look at all of the text before it.
_MOST_MENTIONS: Final = 20
_QUOTES: Final = "`'\"‘’“”«»「『(（["
_SENTENCE_END: Final = re.compile(r"[.!?…。！？:：)\]]\Z")
_FENCE: Final = re.compile(r"^[ \t]{0,3}(?:`{3,}|~{3,})", re.MULTILINE)
_CODE_INDENT: Final = re.compile(r"(?: {4}|\t)\s*")


class Split(NamedTuple):
    """What a piece of a stream brought.

    Attributes:
        is_revoked: True if what was returned before is void: its text was thoughts, as an end tag came without a start,
            or its thoughts were the answer.
    """

    thought: str = ""
    text: str = ""
    is_revoked: bool = False


class ThinkingSplitter:
    """Splits the text of one answer, which may be cut into pieces anywhere.

    Thoughts stand at the beginning: between tags, in a channel, or before an end tag whose start was part of the
    prompt. A tag that an answer mentions later, or in code, is text.

    Usage:
        >>> splitter = ThinkingSplitter()
        >>> splitter.add("<think>A greeting.</th"), splitter.add("ink>Hello")
        (Split(thought='A greeting.', text='', is_revoked=False), Split(thought='', text='Hello', is_revoked=False))

    Args:
        ends_alone: True if the model is known to send end tags only: text is held to be thoughts until one comes.

    Attributes:
        has_ended_alone: True once an end tag came without a start.
        is_unended: True if the thoughts are only held to be such, as `ends_alone` says, and no end tag has come.
    """

    def __init__(self, *, ends_alone: bool = False) -> None:
        self.has_ended_alone = False
        self.is_unended = False
        self._ends_alone = ends_alone
        self._take: Callable[[bool], bool] = self._take_start
        self._ends = _LONE_END
        self._name = ""  # of the tag that began the thoughts
        self._wrap = ""  # of the tag that began the answer behind them
        self._buffer = ""
        self._before = ""  # the last character taken
        self._emitted: list[str] = []
        self._mention_count = 0
        self._has_block = self._has_channel = False
        self._thought, self._text, self._is_revoked = "", "", False

    def add(self, piece: str) -> Split:
        """Takes the next piece; the end of it is kept back while it may be the beginning of a tag."""
        return self._run(piece, is_over=False)

    def end(self) -> Split:
        """Returns what was kept back."""
        return self._run("", is_over=True)

    def _run(self, piece: str, *, is_over: bool) -> Split:
        self._thought, self._text, self._is_revoked = "", "", False
        self._buffer += piece
        while self._buffer and self._take(is_over):
            pass
        self._emitted.append(self._text)
        return Split(self._thought, self._text, self._is_revoked)

    # Each takes something off the buffer, and returns False once it needs the next piece.

    def _take_start(self, is_over: bool) -> bool:  # noqa: FBT001  # one of four with the same call
        started = self._buffer.lstrip()
        found = _START.match(started)
        if found is not None and found[0].lower() in _HEADS:
            self._buffer, self._take = started, self._take_head
        elif found is not None:
            self._ends, self._name = _ENDS[_kind_of(found[0])], found[1] or ""
            self._buffer, self._take = started, self._take_thought
            if self._ends is _ENDS["h"]:
                self.is_unended = True  # words that an answer may begin with, too
            else:
                self._has_block = True
                self._drop(found[0])
        elif not is_over and (_BEGUN.fullmatch(started) or any(b.startswith(started.lower()) for b in _BEGINNINGS)):
            return False
        elif self._ends_alone and not self._has_block:
            self.is_unended = True
            self._take = self._take_thought
        else:
            self._buffer = started if self._has_block else self._buffer
            wrap = _WRAP.match(started) if self._has_block and not self._wrap else None
            if wrap is None:
                self._take = self._take_text
            else:
                self._wrap = f"</{(wrap[1] or '').lower()}>"
                self._drop(wrap[0])
        return True

    def _take_head(self, is_over: bool) -> bool:  # noqa: FBT001
        at = self._buffer.find(_HEAD_END, 0, _MOST_HEAD_CHARS)
        if at < 0 and not is_over and len(self._buffer) < _MOST_HEAD_CHARS:
            return False
        if at < 0:  # no head
            self._emit(1)
            self._take = self._take_text
            return True
        channel = _CHANNEL.search(self._buffer, 0, at)
        self._drop(self._buffer[: at + len(_HEAD_END)])
        self._ends, self._has_block, self._has_channel = _CHANNEL_END, True, True
        is_text = channel is None or channel[1].lower() == "final"
        self._take = self._take_text if is_text else self._take_thought
        return True

    def _take_thought(self, is_over: bool) -> bool:  # noqa: FBT001
        for end in self._ends.finditer(self._buffer):
            if self._name and _stem(end[1]) != _stem(self._name):
                continue
            if self._char_before(end.start()) == "`":
                if end.end() == len(self._buffer) and not is_over:
                    self._think(end.start())
                    return False
                if self._buffer[end.end() : end.end() + 1] == "`":
                    continue
            self._think(end.start())
            self._drop("" if self._buffer.startswith(_HEADS) else end[0])
            self.has_ended_alone |= self.is_unended and self._ends is _LONE_END
            self.is_unended, self._has_block = False, True
            self._take = self._take_start
            return True
        held = max(_held(self._buffer), _IN_WORDS_CHARS if self._ends is _ENDS["h"] else 0)
        self._think(max(0, len(self._buffer) - (0 if is_over else held)))
        return False

    def _take_text(self, is_over: bool) -> bool:  # noqa: FBT001
        ends = _TEXT_END if self._has_channel else _LONE_END
        for tag in ends.finditer(self._buffer):
            if self._has_channel and _CHANNEL_END.fullmatch(tag[0]):
                self._emit(tag.start())
                self._drop("" if self._buffer.startswith(_HEADS) else tag[0])
                self._take = self._take_start
                return True
            if tag.end() == len(self._buffer) and not is_over:
                self._emit(tag.start())
                return False
            if self._mention_count >= _MOST_MENTIONS:
                continue
            before = "".join(self._emitted) + self._text + self._buffer[: tag.start()]
            if _is_end(before, self._buffer[tag.end() : tag.end() + 1], has_block=self._has_block):
                self._is_revoked = any(self._emitted)
                self._thought, self._text = self._thought + self._text, ""
                self._think(tag.start())
                self._drop(tag[0])
                self._emitted.clear()
                self.has_ended_alone, self._has_block = not self._has_block, True
                self._take = self._take_start
                return True
            self._mention_count += 1
        if is_over:
            self._drop_marks()
        self._emit(len(self._buffer) - (0 if is_over else _held(self._buffer)))
        return False

    def _drop_marks(self) -> None:
        """Takes the marks of its end off the answer, unless it speaks of them."""
        text = "".join(self._emitted) + self._text + self._buffer
        found = _LAST.search(self._buffer, max(0, len(self._buffer) - _LAST_CHARS))
        if found is None:
            return
        before = text[: len(text) - len(found[0])]
        line, closing = before[before.rfind("\n") + 1 :], found[0].lower().partition(">")[0] + ">"
        if line[-1:] in (" ", "\t", *_QUOTES) or line.count("`") % 2 or len(_FENCE.findall(before)) % 2:
            return
        if closing.startswith("</") and closing != self._wrap and (closing != "</s>" or "<s>" in before.lower()):
            return
        self._buffer = self._buffer[: found.start()]

    def _char_before(self, at: int) -> str:
        return self._buffer[at - 1] if at else self._before

    def _think(self, chars: int) -> None:
        self._thought += self._buffer[:chars]
        self._drop(self._buffer[:chars])

    def _emit(self, chars: int) -> None:
        self._text += self._buffer[:chars]
        self._drop(self._buffer[:chars])

    def _drop(self, taken: str) -> None:
        self._before = taken[-1:] or self._before
        self._buffer = self._buffer[len(taken) :]


def _kind_of(start: str) -> str:
    if start[1:2] in ("|", "｜"):
        return "<|"
    if start[:9].lower().strip() == "<details":
        return "<d"
    return start[0] if start[0] in _ENDS else "h"


def _stem(name: str) -> str:
    return name.lower().removesuffix("ing").removesuffix("s")


def _held(buffer: str) -> int:
    """Returns the length of the longest end of a buffer that is the beginning of a tag, with whole marks before it."""
    first = max(0, len(buffer) - _MOST_BEGUN_CHARS)
    places = (at for at in range(first, len(buffer)) if buffer[at] in _FIRST_SIGNS)
    end = next((at for at in places if _BEGUN.fullmatch(buffer, at)), len(buffer))
    marks = _LAST.search(buffer, max(0, end - _LAST_CHARS), end)
    return len(buffer) - (end if marks is None else marks.start())


def _is_end(before: str, after: str, *, has_block: bool) -> bool:
    """Returns True if an end tag between these ends thoughts, and isn't one that the answer mentions."""
    line = before[before.rfind("\n") + 1 :]
    if (
        _MENTION.search(before)
        or len(_FENCE.findall(before)) % 2
        or line.count("`") % 2
        or _CODE_INDENT.fullmatch(line)
    ):
        return False
    if has_block:  # these thoughts have ended before
        return not line.strip() and after in ("", "\n", "\r")
    if not line.strip():
        return True
    if line[-1] in _QUOTES or after in tuple(_QUOTES):
        return False
    return not line[-1].isspace() or _SENTENCE_END.search(line.rstrip()) is not None or after in ("\n", "\r")


def split_whole(text: str) -> tuple[str, str]:
    """Returns the thoughts and the answer of a whole text."""
    splitter = ThinkingSplitter()
    first, last = splitter.add(text), splitter.end()
    if splitter.is_unended:
        return "", text
    thought = first.thought + (first.text if last.is_revoked else "") + last.thought
    return thought, ("" if last.is_revoked else first.text) + last.text


# Beside the text; providers have given the first two the same meaning.
THOUGHT_FIELDS: Final = (
    "reasoning_content",
    "reasoning",
    "reasoning_details",
    "reasoning_text",
    "thinking",
    "thinking_blocks",
    "thoughts",
    "thinking_content",
)
_THINKING_BLOCKS: Final = frozenset({"thinking", "reasoning"})


def thought_in(fields: Mapping[str, Any]) -> str:
    """Returns the thoughts in the fields of a message or a piece of it; each provider repeats them in several."""
    return next((thought for name in THOUGHT_FIELDS if (thought := _words_in(fields.get(name)))), "")


def thought_blocks(content: str | list[str | dict[str, Any]]) -> str:
    """Returns the thoughts in a list of content blocks."""
    if isinstance(content, str):
        return ""
    return "".join(
        _words_in(block) for block in content if isinstance(block, dict) and block.get("type") in _THINKING_BLOCKS
    )


def _words_in(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(map(_words_in, value))
    if isinstance(value, dict):
        names = ("text", "summary", "thinking", "reasoning", "content")
        return next((words for name in names if (words := _words_in(value.get(name)))), "")
    return ""
