"""Renders earlier turns for a model: read by number, or found by a search and cut to its size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph.core.attached import own_words
from graph.core.day import day_of, zone_named
from graph.core.language import split_sentences
from graph.core.turn import text_of
from graph.search.term import broad_words, count_words, cut_around, excerpt, searchable_text
from graph.tool.asked_value import asked_value, is_later_value
from graph.tool.tool_context import PastTurns
from prompt.system.framing import Language
from prompt.tool.words import (
    RecalledTurn,
    Speaker,
    recall_before,
    recall_excerpts,
    recall_more,
    recall_unsaid,
    recalled,
    recalled_line,
    recalled_turn,
)

FOUND_TURNS: Final = 5
_TOOL_CHARS: Final = 600
# A shorter rest of the result stays empty: a turn that doesn't fit is only named.
_LEAST_CHARS: Final = 300
# How many of the turns found are shown whole, and how many by a sentence: the first that leaves the former room enough.
_SHOWN: Final = ((2, 3), (2, 1), (1, 1), (1, 0))
_WHOLE: Final = _SHOWN[0][0]
_LEAST_OF_TURN: Final = 150
_MOST_OF_LINE: Final = 60
_MOST_OF_REPLY: Final = 40
_BEST_SHARE: Final = 0.6
_LINE_CHARS: Final = 300
_REPLY_CHARS: Final = 12
# A question may stand before the options that it is about.
_LAST_SENTENCES: Final = 3
_ASKS: Final = re.compile(
    r"(?:[?？]|(?:까요|나요|가요|는지요|래요|주세요)[.!~…]{0,3})[\"'”’」』)\]*_`~\s]{0,8}$"
    r"|\b(?:let me know|tell me)\b[^.!?]{0,120}[.!]?$",
    re.IGNORECASE,
)

Part = tuple[Speaker, str, str]
"""Who said it, the name of a tool, and the text."""


class RecalledTurns:
    """The result of one look-up.

    Args:
        past: The turns.
        query: Texts that are cut are cut around its words.
        limit: The largest result, in units of `measure`.
        measure: Returns the size of a text.
    """

    def __init__(
        self, past: PastTurns, query: str, language: Language, *, limit: int, measure: Callable[[str], int] = len
    ) -> None:
        self._past = past
        self._first_turn = past.first_turn()
        self._words = broad_words(query)
        self._language = language
        self._limit = limit
        self._measure = measure
        self._asked = asked_value(query)
        self._zone = zone_named(past.time_zone)
        self._parts: dict[int, list[Part]] = {}
        self._days: dict[int, str] = {}
        self._earlier: Mapping[int, int] = {}

    def read(self, shown: Sequence[int], others: Sequence[int]) -> str:
        """Renders the turns in order while they fit; names the remaining ones and the neighbours."""
        room = self._limit - self._measure(self._framed([], recall_more(shown, shown, self._language)))
        parts: list[str] = []
        for index, number in enumerate(shown):
            # The best turn may take half of the room, or all of it if there is no other.
            share = room if index == len(shown) - 1 else max(room // 2, _LEAST_CHARS)
            if room < _LEAST_CHARS and parts:
                break
            parts.append(self._turn(number, min(share, room)))
            room -= self._measure(parts[-1]) + 1
        opened = list(shown[: len(parts)])
        rest = [*shown[len(parts) :], *others]
        return self._framed(parts, recall_more(self._neighbours(opened), rest[:FOUND_TURNS], self._language))

    def found(self, numbers: Sequence[int], unsaid: Sequence[str]) -> str:
        """Renders what a search found, best first: two turns whole, further ones by a sentence; names others.

        Of turns that say values of the same thing the newest is whole, in the place of the best of them.
        """
        numbers = self._newest_first(numbers)
        for whole_count, line_count in _SHOWN:
            whole = [number for number in numbers[:whole_count] if number not in self._earlier]
            by_line = numbers[len(whole) : len(whole) + line_count]
            others = numbers[len(whole) + line_count :][:FOUND_TURNS]
            named = recall_more(self._neighbours([*whole, *by_line]), others, self._language)
            told = {number: newest for number, newest in self._earlier.items() if number in by_line}
            notes = (
                recall_before(told, self._language),
                recall_unsaid(unsaid, self._language),
                recall_excerpts(by_line, self._language),
                named,
            )
            lines = {number: [self._line(number)] for number in by_line}
            more = "\n".join(filter(None, notes))
            if (text := self._rendered(whole, lines, more)) or (whole_count, line_count) == _SHOWN[-1]:
                break
        return text or self._framed([self._turn(number, _LEAST_OF_TURN) for number in whole], more)

    def alone(self, numbers: Sequence[int]) -> str:
        """Renders the turns whole, as many as fit, without notes; "" if not even the first fits."""
        numbers = self._newest_first(numbers)
        counts = range(len(numbers), 0, -1)
        return next(filter(None, (self._rendered(numbers[:count], {}, "") for count in counts)), "")

    def _rendered(self, whole: Sequence[int], lines: dict[int, list[str]], more: str) -> str:
        """Returns the result, each turn that closes with a question followed by the reply; "" if the room is too small.

        The best turn has at least three fifths of the room that is left for the turns, the second one the rest.
        """
        replies = {number: self._reply(number) for number in [*whole, *lines] if number + 1 not in whole}
        rest = [line for number, said in lines.items() for line in [*said, *replies.get(number, [])]]
        rest = list(dict.fromkeys(rest))
        fixed = [*rest, *(line for number in whole for line in replies.get(number, []))]
        room = self._limit - self._measure(self._framed(fixed, more)) - len(whole)
        while room >= _LEAST_OF_TURN * len(whole):
            parts: list[str] = []
            left = room
            for index, number in enumerate(whole):
                after = sum(self._size(each) for each in whole[index + 1 :])
                share = max(left - after, int(left * _BEST_SHARE)) if after else left
                turn = self._turn(number, share)
                left -= self._measure(turn)
                parts += [turn, *replies.get(number, [])]
            text = self._framed([*parts, *rest], more)
            over = self._measure(text) - self._limit
            if over <= 0:
                return text
            room -= over
        return ""

    def _newest_first(self, numbers: Sequence[int]) -> list[int]:
        """Returns turns with the newest of those on one thing at the place of their best, the older ones behind two."""
        first = list(numbers[:FOUND_TURNS])
        self._earlier = self._superseded(first)
        ranks: dict[int, int] = {}
        for rank, number in enumerate(first):
            ranks.setdefault(self._earlier.get(number, number), rank)
        fresh = sorted(ranks, key=lambda number: ranks[number])
        older = sorted(self._earlier, reverse=True)
        return [*fresh[:_WHOLE], *older, *fresh[_WHOLE:], *numbers[FOUND_TURNS:]]

    def _superseded(self, numbers: Sequence[int]) -> dict[int, int]:
        """Maps turns to the newest of these that gives another value of the same thing in the user's words."""
        told: dict[int, tuple[str, int]] = {}
        for number in sorted(numbers):
            text = "\n".join(text for role, _, text in self._shown(number) if role == "user")
            said = self._values(text)
            if sentence := next(reversed([*said]), "") or excerpt(text, self._words, _LINE_CHARS):
                told[number] = sentence, count_words(text, self._words) if said else 0
        most = max((count for _, count in told.values()), default=0)
        least = self._asked.same_words if self._asked else 0
        newest: dict[int, int] = {}
        for later, (value, count) in reversed(told.items()):
            for number, (former, words) in told.items():
                is_asked = 0 < least <= most == count == words and former != value
                if number < later and number not in newest and (is_asked or is_later_value(value, former)):
                    newest[number] = newest.get(later, later)
        return newest

    def _head(self, number: int) -> RecalledTurn:
        self._shown(number)
        return RecalledTurn(number, self._days[number], self._earlier.get(number, 0))

    def _framed(self, parts: Sequence[str], more: str) -> str:
        return recalled(parts, more, self._language)

    def _size(self, number: int) -> int:
        return self._measure(recalled_turn(self._head(number), self._shown(number)))

    def _turn(self, number: int, room: int) -> str:
        shown = self._shown(number)
        frame = self._measure(recalled_turn(self._head(number), [(role, name, "") for role, name, _ in shown]))
        lengths = [self._measure(text[:_TOOL_CHARS] if role == "tool" else text) for role, _, text in shown]
        limits = _shared(lengths, room - frame)
        whole = [text for (_, _, text), limit in zip(shown, limits, strict=True) if self._measure(text) <= limit]
        # A question repeats most of the words; what was asked for stands beside the others.
        values = [value for _, _, text in shown for value in self._values(text).values()]
        words = [*(self._beside(whole) or self._words), *([[values[-1].lower()]] if values else [])]
        parts = [
            (role, name, self._cut(text, limit, words)) for (role, name, text), limit in zip(shown, limits, strict=True)
        ]
        return recalled_turn(self._head(number), parts)

    def _line(self, number: int) -> str:
        """Returns the sentence of a turn that has the asked value, or else most of the words that its question lacks.

        Of several it is the one with most of all words. Without any of the words it is the question's first.
        """
        shown = self._shown(number)
        if telling := [(role, name, said) for role, name, text in shown if (said := self._outcome(text))]:
            role, name, said = max(telling, key=lambda part: count_words(part[2], self._words))
            *_, value = self._values(said).values()
            return recalled_line(self._head(number), (role, name, self._cut(said, _MOST_OF_LINE, [[value.lower()]])))
        beside = self._beside([text for role, _, text in shown if role == "user"])
        best: Part = ("user", "", "")
        most = -1, -1
        for role, name, text in shown:
            for sentence in {excerpt(text, words, _LINE_CHARS): None for words in (beside, self._words)}:
                counts = count_words(sentence, beside), count_words(sentence, self._words)
                if sentence and counts > most:
                    best, most = (role, name, sentence), counts
        role, name, sentence = best
        size = self._measure(sentence)
        if size > _MOST_OF_LINE:
            sentence = excerpt(sentence, beside if most[0] else self._words, len(sentence) * _MOST_OF_LINE // size)
        return recalled_line(self._head(number), (role, name, self._cut(sentence, _MOST_OF_LINE, self._words)))

    def _outcome(self, text: str) -> str:
        """Returns the sentence that says the asked value with most of the words, and the last one that says one."""
        said = list(self._values(text))
        best = max(said, key=lambda sentence: count_words(sentence, self._words), default="")
        return best if not said or best == said[-1] else f"{best} {said[-1]}"

    def _beside(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the query's words that none of these texts has."""
        return [phrases for phrases in self._words if not any(count_words(text, [phrases]) for text in texts)]

    def _reply(self, number: int) -> list[str]:
        """Returns the beginning of what the user said next, as a line, if the answer of a turn closes with a question.

        A word such as "yes" is shown with the sentence behind it.
        """
        if number + 1 >= self._past.open_turn or not self._closes_with_question(number):
            return []
        messages = (entry.message for entry in self._past.read(number + 1, number + 1))
        text = next((own_words(text_of(message)) for message in messages if isinstance(message, HumanMessage)), "")
        said = ""
        for sentence in split_sentences(text[:_LINE_CHARS]):
            said = f"{said} {sentence}".lstrip()
            if len(said) >= _REPLY_CHARS:
                break
        begun = self._cut(said, _MOST_OF_REPLY, self._words)
        return [recalled_line(self._head(number + 1), ("user", "", begun))] if said else []

    def _closes_with_question(self, number: int) -> bool:
        answers = [text for role, _, text in self._shown(number) if role == "assistant"]
        last = split_sentences(answers[-1])[-_LAST_SENTENCES:] if answers else []
        return any(_ASKS.search(sentence[-_LINE_CHARS:]) for sentence in last)

    def _cut(self, text: str, limit: int, words: Sequence[Sequence[str]]) -> str:
        size = self._measure(text)
        chars = len(text) * max(0, limit) // max(1, size)
        cut = text if size <= limit else cut_around(text, words, chars)
        while chars > 0 and self._measure(cut) > limit:
            chars = chars * 9 // 10
            cut = cut_around(text, words, chars)
        return cut

    def _shown(self, number: int) -> list[Part]:
        if number not in self._parts:
            self._parts[number] = [*self._said(number)]
        return self._parts[number]

    def _said(self, number: int) -> Iterator[Part]:
        entries = self._past.read(number, number)
        self._days[number] = day_of(entries[0].created_at, self._zone) if entries else ""
        for entry in entries:
            message, text = entry.message, searchable_text(entry.message).strip()
            if not text:
                continue
            if isinstance(message, ToolMessage):
                yield "tool", message.name or "", text
            elif isinstance(message, (HumanMessage, AIMessage)):
                yield "user" if isinstance(message, HumanMessage) else "assistant", "", text

    def _values(self, text: str) -> Mapping[str, str]:
        return self._asked.said_in(text) if self._asked else {}

    def _neighbours(self, opened: Sequence[int]) -> list[int]:
        beside = {neighbour for number in opened for neighbour in (number - 1, number + 1)} - set(opened)
        return sorted(neighbour for neighbour in beside if self._first_turn <= neighbour < self._past.open_turn)


def _shared(lengths: Sequence[int], most: int) -> list[int]:
    """Distributes the room: short texts get their full length, the longest ones equal shares of the rest."""
    limits = list(lengths)
    left, open_texts = max(0, most), len(lengths)
    for index in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        limits[index] = min(lengths[index], left // open_texts)
        left -= limits[index]
        open_texts -= 1
    return limits
