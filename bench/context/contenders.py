"""Plays the scripted chat with Turnfold's strategies, and with the full history or the newest part of it.

Tokens are counted exactly (o200k), and how many of them a provider's cache would hold.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from os.path import commonprefix

from bpe_openai import get_encoding
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, trim_messages

from bench.context.script import ScriptedTurn
from graph.core.ledger import standing
from graph.core.model_input import ModelInput, system_part
from graph.core.snapshot import SessionSnapshot
from graph.core.text import measure
from graph.fold.extract import extract_summary
from graph.fold.record import begin_record, end_record
from graph.fold.request import LastInput, messages_behind, price_in_place, price_quoted, request_in_place, requests_for
from graph.fold.review import SummaryDraft, flaw_of
from graph.fold.spec import FoldSpec
from graph.strategy.base import Strategy
from graph.value.record import ArchivedMessage, HistoryEntry, Record, to_entry
from prompt.system import chat

CACHED_PRICE = 0.1
OUTPUT_PRICE = 4.0
SMALL_MODEL_PRICE = 0.1
SOURCE_TOKENS = 1_000_000
_BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_TRIES = 2
_ENCODING = get_encoding("o200k_base")
SYSTEM = SystemMessage(chat.get_prompt("ko", can_recall=False))

Costs = tuple[float, float, float]
OnInput = Callable[[int, str], None]
"""Takes the number of each turn and its last input."""


@lru_cache(maxsize=65_536)
def count_tokens(text: str) -> int:
    return len(_ENCODING.encode_ordinary(text))


def render(message: BaseMessage) -> str:
    """Renders a message as the text whose tokens are counted: role, text, tool calls."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    called = [json.dumps({"name": call["name"], "args": call["args"]}, ensure_ascii=False) for call in calls]
    return "\n".join([f"<{message.type}>", message.text, *called])


def count_messages(messages: Iterable[BaseMessage]) -> int:
    """Counts the tokens of messages; the libraries take it as their token counter."""
    return sum(count_tokens(render(message)) for message in messages)


@dataclass
class Meter:
    """Totals of one contender's run."""

    sent_by_turn: list[int] = field(default_factory=list)  # tokens of each turn's largest call
    costs_by_turn: list[Costs] = field(default_factory=list)  # so far, at the end of each turn
    sent_tokens: int = 0
    unchanged_tokens: int = 0
    answer_tokens: int = 0
    summary_in_tokens: int = 0
    summary_out_tokens: int = 0
    cached_tokens: int = 0  # the part of `summary_in_tokens` that the chat's call before had sent
    in_place_tokens: int = 0  # the part of `summary_in_tokens` that was asked for in place
    # What the summaries' input has cost with a cache so far, at the end of each turn, and the cached share of in_place.
    marks: list[tuple[float, float]] = field(default_factory=list)
    seconds: float = 0.0  # the contender's own, without the model
    _before: list[str] = field(default_factory=list)

    def call(self, turn: int, messages: Sequence[BaseMessage], answer: BaseMessage) -> str:
        """Counts one model call and returns its input as one text."""
        now = [render(message) for message in messages]
        sent = sum(map(count_tokens, now))
        self.sent_tokens += sent
        self.unchanged_tokens += _unchanged(self._before, now)
        self.answer_tokens += count_tokens(render(answer))
        self._before = now
        if len(self.sent_by_turn) < turn:
            self.sent_by_turn.append(0)
        self.sent_by_turn[turn - 1] = max(self.sent_by_turn[turn - 1], sent)
        return "\n".join(now)

    def end_turn(self) -> None:
        self.costs_by_turn.append(self.costs)
        self.marks.append((self.summary_in_cost, self.cached_tokens / max(1, self.in_place_tokens)))

    def summary(self, prompt: str, draft: str, *, in_place: Sequence[BaseMessage] = ()) -> None:
        """Counts one call of the summary model, which reads the prompt, or the messages of a request in place."""
        if in_place:
            # All but the newest answer and the instruction is an unchanged prefix of the chat's call before.
            self.cached_tokens += count_messages(in_place[:-2])
            self.in_place_tokens += count_messages(in_place)
        self.summary_in_tokens += count_messages(in_place) if in_place else count_tokens(prompt)
        self.summary_out_tokens += count_tokens(draft)

    @property
    def summary_in_cost(self) -> float:
        return self.summary_in_tokens - (1 - CACHED_PRICE) * self.cached_tokens

    @property
    def costs(self) -> Costs:
        """Costs in input tokens: with a cache, with a cache and a small summary model, without a cache.

        The prefix of a request in place is cached in the first of the three alone.
        """
        fresh = self.sent_tokens - self.unchanged_tokens
        cached = fresh + CACHED_PRICE * self.unchanged_tokens + OUTPUT_PRICE * self.answer_tokens
        summaries = self.summary_in_tokens + OUTPUT_PRICE * self.summary_out_tokens
        plain = self.sent_tokens + OUTPUT_PRICE * self.answer_tokens
        saved = self.summary_in_tokens - self.summary_in_cost
        return cached + summaries - saved, cached + SMALL_MODEL_PRICE * summaries, plain + summaries


def _unchanged(before: Sequence[str], now: Sequence[str]) -> int:
    """Counts the tokens that two inputs have in common at their beginning."""
    tokens = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return tokens + count_tokens(commonprefix([old, new]))
        tokens += count_tokens(new)
    return tokens


class OurRun:
    """One session under one strategy, over the product's pure parts and an archive in memory.

    Folds are made and adopted at the start of the next turn, and may be asked for in place, or are all quoted.
    """

    def __init__(self, strategy: Strategy, meter: Meter, *, is_in_place: bool = False) -> None:
        self.meter = meter
        self.active: list[Record] = []
        self.first_turn_merges = 0
        self._strategy = strategy
        self._is_in_place = is_in_place
        self._built: ModelInput | None = None
        self._archive: list[ArchivedMessage] = []
        self._history: list[HistoryEntry] = []
        self._system = system_part("ko", can_recall=strategy.sends_records)
        self._turn = 0
        self._made = 0

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Archives the new messages, makes the folds that are due, and builds the input."""
        for message in history[len(self._archive) :]:
            if message.type == "human":
                for spec in self._strategy.due_folds(self._snapshot()):
                    self._fold(spec)
                self._history = [to_entry(record) for record in self.active]
                self._turn += 1
            chars, tokens = measure(message)
            self._archive.append(
                ArchivedMessage(len(self._archive) + 1, self._turn, 1, message, chars, tokens, _BEGINNING)
            )
        if self._strategy.whole_turns is None:
            working = [entry.message for entry in self._snapshot().raw]
        else:
            newest = self._archive[-4 * (self._strategy.whole_turns + 1) :]
            working = [entry.message for entry in newest if entry.turn >= self._turn - self._strategy.whole_turns]
        self._built = self._strategy.assemble(self._system, self._history, working)
        return self._built.messages

    def _snapshot(self) -> SessionSnapshot:
        covered_to = self.active[-1].to_position if self.active else 0
        return SessionSnapshot(self._turn, tuple(self.active), self._archive[covered_to:], 0.3)

    def _fold(self, spec: FoldSpec) -> None:
        """Makes, reviews and adopts one fold as the product does; a rejected one is tried again on the next turn.

        The summariser picks sentences, which are no notes: as the product's own, as many as the rate says.
        """
        lines = (line for record in self.active if record.to_position < spec.from_position for line in record.ledger)
        spec = replace(spec, ledger=tuple(standing(lines, {})))
        in_place = self._messages_in_place(spec) if self._is_in_place else ()
        drafts: list[SummaryDraft] = []
        flaw = None
        for _ in range(_TRIES):
            requests = list(requests_for(spec, SOURCE_TOKENS))
            asked_chars = sum(request.aim_chars for request in requests)
            draft = extract_summary(spec.messages, asked_chars * spec.picked_chars // spec.asked_chars)
            for index, request in enumerate(requests):
                behind: list[BaseMessage] = [] if flaw is None else messages_behind(request, index, drafts[-1], flaw)
                self.meter.summary(
                    "\n".join(message.text for message in [*request.messages, *behind]), draft, in_place=in_place
                )
            drafts.append(SummaryDraft(draft, 0, 0, is_usage=False, is_extracted=True))
            flaw = flaw_of(drafts[-1], spec)
            if flaw is None:
                break
        self._made += 1
        started = begin_record("bench", spec, model="extractive", source_key=str(self._made), created_at=_BEGINNING)
        record = end_record(started, spec, drafts, "", seconds=0.0)
        if record.status == "COMPLETED":
            self.first_turn_merges += spec.kind == "merge" and 1 in spec.turns
            retained = [old for old in self.active if old.id not in spec.sources]
            self.active = sorted([*retained, record], key=lambda entry: entry.from_position)

    def _messages_in_place(self, spec: FoldSpec) -> Sequence[BaseMessage]:
        """Returns the messages of the request in place if `LastInputs` would choose it with a cache."""
        answer = self._archive[-1].message
        if self._built is None or not isinstance(answer, AIMessage):
            return ()
        last = LastInput("bench", self._built, (), answer)
        request = request_in_place(last, spec)
        if request is None or price_in_place(last, request) >= price_quoted(spec, SOURCE_TOKENS):
            return ()
        return request.messages


Prepare = Callable[[list[AnyMessage]], Sequence[BaseMessage]]
"""Returns the messages to send for the session so far, the open turn last."""


def full_history(history: list[AnyMessage]) -> Sequence[BaseMessage]:
    return [SYSTEM, *history]


def trimmed(budget_tokens: int) -> Prepare:
    """`trim_messages`: sends the newest messages within a budget, starting with a question."""
    return lambda history: trim_messages(
        [SYSTEM, *history],
        max_tokens=budget_tokens,
        token_counter=count_messages,
        strategy="last",
        start_on="human",
        include_system=True,
    )


def play(prepare: Prepare, meter: Meter, script: Sequence[ScriptedTurn], on_input: OnInput) -> None:
    """Runs the whole chat."""
    history: list[AnyMessage] = []
    for turn in script:
        history.append(turn.messages[0])
        for reply in turn.messages[1:]:
            if reply.type == "ai":
                began = time.perf_counter()
                sent = prepare(history)
                meter.seconds += time.perf_counter() - began
                text = meter.call(turn.number, sent, reply)
            history.append(reply)
        meter.end_turn()
        on_input(turn.number, text)
