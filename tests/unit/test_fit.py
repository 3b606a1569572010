from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.extract import extract_summary
from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput, SystemPart
from graph.core.review import Source, SummaryDraft, label_of, review_drafts
from graph.core.snapshot import SessionSnapshot
from graph.core.token import estimate_tokens
from graph.record import HistoryEntry, Record, to_entry
from graph.strategy.base import Limits, Strategy
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.fit import Fit, Fitting, Folded
from graph.strategy.interval import IntervalStrategy
from graph.strategy.rolling import RollingStrategy
from tests.fake.body import faults
from tests.fake.drawn import at_most
from tests.fake.snapshot import adopted, archived, plain_turn, record_of, tool_turn

SYSTEM = SystemPart("You help. " * 20, 1)
SCHEMA = '[{"name": "look_up", "description": "Looks it up."}]' * 6
SENTENCE = "구매 담당자 {}번이 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 {}일까지 검토합니다. "
FOLDING: list[Strategy] = [
    IntervalStrategy(Limits()),
    RollingStrategy(Limits()),
    RollingStrategy(Limits(rolling_sends_unsummarised=True)),
    CompactionStrategy(Limits()),
]


def words(sentences: int, seed: int = 0) -> str:
    return "".join(SENTENCE.format(seed + number, number % 28 + 1) for number in range(sentences))


@dataclass
class Session:
    """A session in memory whose folds are made by picking sentences and judged as the product does."""

    strategy: Strategy
    snapshot: SessionSnapshot
    opened: list[AnyMessage]
    is_failing: bool = False
    specs: list[FoldSpec] = field(default_factory=list)

    @property
    def history(self) -> list[HistoryEntry]:
        return [to_entry(record) for record in self.snapshot.active]

    @property
    def messages(self) -> list[AnyMessage]:
        return [*(entry.message for entry in self.snapshot.raw), *self.opened]

    def build(self, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]) -> ModelInput:
        return self.strategy.assemble(replace(SYSTEM, tool_schema=SCHEMA), history, messages)

    @property
    def fixed_tokens(self) -> int:
        return self.build((), self.opened).sent_tokens

    def fit(self, allowed_tokens: int) -> Fit:
        begun = Fit(self.history, self.messages, self.build(self.history, self.messages))
        if begun.model_input.sent_tokens <= allowed_tokens:
            return begun
        fitting = Fitting(self.build, allowed_tokens=allowed_tokens, merged_tokens=600, language=self.snapshot.language)
        return fitting.by_folding(begun, self.snapshot, self.fold)

    def fold(self, spec: FoldSpec) -> Folded | None:
        self.specs.append(spec)
        record = None if self.is_failing else made(spec, f"guard-{len(self.specs)}")
        if record is None:
            return None
        active = [old for old in self.snapshot.active if old.id not in spec.sources]
        active = sorted([*active, record], key=lambda entry: entry.from_position)
        raw = [e for e in self.snapshot.raw if not spec.from_position <= e.position <= spec.to_position]
        self.snapshot = replace(self.snapshot, active=active, raw=raw)
        covered = [p for r in active for p in range(r.from_position, r.to_position + 1)]
        assert [*covered, *(entry.position for entry in raw)] == list(range(1, len(covered) + len(raw) + 1))
        return Folded(self.snapshot, self.history, self.messages)


def made(spec: FoldSpec, record_id: str) -> Record | None:
    label = label_of(spec.turns, spec.language)
    source = Source(
        spec.messages,
        spec.source_chars,
        spec.source_tokens,
        spec.target_chars,
        label,
        frozenset(),
        is_bound=spec.is_bound,
        max_tokens=spec.max_tokens,
        is_quoted=True,
    )
    text = review_drafts(
        [SummaryDraft(extract_summary(spec.messages, spec.target_chars), 0, 0, is_usage=False)], source
    ).text
    tokens = estimate_tokens(label + text)
    return adopted(spec, text, record_id).with_changes(summary_tokens=tokens) if text else None


def session_of(
    strategy: Strategy,
    *,
    record_sentences: Sequence[int] = (),
    turn_sentences: Sequence[int] = (),
    question_sentences: int = 1,
    result_sentences: Sequence[int] = (),
) -> Session:
    active = []
    for block, count in enumerate(record_sentences):
        turns = (3 * block + 1, 3 * block + 2, 3 * block + 3)
        record = record_of(turns, words(count, block * 100))
        active.append(record.with_changes(summary_tokens=estimate_tokens(label_of(turns, "ko") + record.summary)))
    first = 3 * len(active) + 1
    said = [
        (tool_turn if number % 3 == 2 else plain_turn)(number, words(count, number * 100))
        for number, count in enumerate(turn_sentences, start=first)
    ]
    raw = archived(said, first_turn=first, first_position=2 * first - 1)
    opened: list[AnyMessage] = [HumanMessage(words(question_sentences), id="now")]
    for number, count in enumerate(result_sentences):
        calls = [tool_call(name="look_up", args={}, id=f"open-{number}")]
        opened.append(AIMessage("", tool_calls=calls, id=f"k-open-{number}"))
        opened.append(ToolMessage(words(count), tool_call_id=f"open-{number}", id=f"t-open-{number}"))
    return Session(strategy, SessionSnapshot(first - 1 + len(said), active, raw, 0.3), opened)


@settings(max_examples=at_most(150))
@given(
    strategy=st.sampled_from(FOLDING),
    window_tokens=st.integers(1_000, 20_000),
    correction=st.floats(0.5, 2.0),
    record_sentences=st.lists(st.integers(1, 40), max_size=12),
    turn_sentences=st.lists(st.integers(0, 60), max_size=8),
    question_sentences=st.integers(1, 80),
    result_sentences=st.lists(st.integers(1, 250), max_size=3),
    is_failing=st.booleans(),
)
def test_no_input_passes_the_limit_if_the_open_turn_alone_does_not(
    strategy: Strategy,
    window_tokens: int,
    correction: float,
    record_sentences: list[int],
    turn_sentences: list[int],
    question_sentences: int,
    result_sentences: list[int],
    is_failing: bool,  # noqa: FBT001 - drawn
) -> None:
    session = session_of(
        strategy,
        record_sentences=record_sentences,
        turn_sentences=turn_sentences,
        question_sentences=question_sentences,
        result_sentences=result_sentences,
    )
    session.is_failing = is_failing
    allowed_tokens = int(window_tokens * 0.75 / correction)
    fitted = session.fit(allowed_tokens).model_input
    least = session.build((), [*session.opened[:1], *cut_all(session.opened[1:])]).sent_tokens
    assert fitted.sent_tokens <= max(allowed_tokens, least)
    assert faults(convert_to_openai_messages(list(fitted.messages))) == []
    assert fitted.messages[-1].id == session.opened[-1].id
    assert len(session.specs) <= 4
    kept = [entry.turn for entry in session.snapshot.raw]
    assert not kept or kept[-1] == session.snapshot.complete_turns


def cut_all(said: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The open turn with each result as short as the guard ever makes it."""
    return [
        m.model_copy(
            update={
                "content": f"{m.text[:200]}\n\n[cut: 200 of {len(m.text)} characters fit the window / 일부만 표시됨]"
            }
        )
        if isinstance(m, ToolMessage) and len(m.text) > 200
        else m
        for m in said
    ]


@pytest.mark.parametrize("strategy", FOLDING)
def test_the_record_takes_what_is_left_and_not_a_fixed_share(strategy: Strategy) -> None:
    session = session_of(strategy, turn_sentences=[20, 20], question_sentences=60)
    allowed_tokens = session.fixed_tokens + 400
    fitted = session.fit(allowed_tokens).model_input
    assert fitted.sent_tokens <= allowed_tokens
    records = [item.tokens for item in fitted.items if item.kind == "record"]
    assert sum(records) > 150
    assert [spec.kind for spec in session.specs] == ["compaction"]


@pytest.mark.parametrize("strategy", FOLDING)
def test_no_raw_turn_goes_while_merged_records_make_room(strategy: Strategy) -> None:
    session = session_of(strategy, record_sentences=[25] * 6, turn_sentences=[30, 30])
    before = session.build(session.history, session.messages).sent_tokens
    session.fit(before - 900)
    assert {spec.kind for spec in session.specs} == {"merge"}
    assert len(session.snapshot.raw) == 6


def test_if_the_open_turn_leaves_no_room_its_results_are_cut_before_anything_is_folded() -> None:
    session = session_of(
        IntervalStrategy(Limits()), record_sentences=[10], turn_sentences=[5], result_sentences=[400, 2]
    )
    fitted = session.fit(6_000).model_input
    assert fitted.sent_tokens <= 6_000
    assert [item.id for item in fitted.items if item.kind == "cut"] == ["t-open-0"]
    assert session.specs == []


def test_a_question_that_fills_the_window_leaves_the_memory_out_of_its_call_and_folds_nothing() -> None:
    session = session_of(
        IntervalStrategy(Limits()), record_sentences=[10, 10], turn_sentences=[5], question_sentences=120
    )
    allowed_tokens = session.fixed_tokens + 100
    fitted = session.fit(allowed_tokens)
    assert fitted.model_input.sent_tokens <= allowed_tokens
    assert [item.kind for item in fitted.model_input.items] == ["system", "message", "tools"]
    assert session.specs == []
    assert (list(fitted.history), list(fitted.messages)) == (session.history, session.messages)


def test_what_is_too_large_by_more_than_two_inputs_is_not_folded_while_the_user_waits() -> None:
    session = session_of(IntervalStrategy(Limits()), turn_sentences=[60] * 8)
    assert session.fit(session.fixed_tokens + 1_500).model_input.sent_tokens <= session.fixed_tokens + 1_500
    assert session.specs == []


def test_folds_that_cannot_be_made_leave_what_is_oldest_out_of_the_call() -> None:
    session = session_of(IntervalStrategy(Limits()), record_sentences=[20, 20], turn_sentences=[20])
    session.is_failing = True
    allowed_tokens = session.build(session.history, session.messages).sent_tokens - 100
    fitted = session.fit(allowed_tokens).model_input
    assert fitted.sent_tokens <= allowed_tokens
    assert [item.id for item in fitted.items if item.kind == "record"] == ["interval-4-6"]
    assert len(session.specs) == 1
