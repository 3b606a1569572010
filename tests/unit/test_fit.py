from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from langchain_core.messages.utils import convert_to_openai_messages

from graph.core.model_input import ModelInput, SystemPart
from graph.core.pin import BlockKind, ContextBlock, Pin, cut_at, read_name
from graph.core.snapshot import SessionSnapshot
from graph.core.text import estimate_tokens
from graph.core.turn import label_of
from graph.fold.extract import extract_summary
from graph.fold.review import review_drafts
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits, Strategy
from graph.strategy.compaction import CompactionStrategy
from graph.strategy.fit import Fit, Fitting, Folded, left_out
from graph.strategy.interval import IntervalStrategy
from graph.strategy.rolling import RollingStrategy
from graph.strategy.strategies import WindowStrategy
from graph.value.record import HistoryEntry, Record, to_entry
from prompt.system.framing import BLOCK_CUT, note_cut
from tests.fake.body import faults
from tests.fake.draft import draft_of
from tests.fake.drawn import at_most
from tests.fake.snapshot import adopted, archived, plain_turn, record_of, tool_turn

SCHEMA = '[{"name": "look_up", "description": "Looks it up."}]' * 6
SENTENCE = "구매 담당자 {}번이 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 {}일까지 검토합니다. "
SYSTEM = SystemPart("You help. " * 20, 1, tool_schema=SCHEMA)
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
    system: SystemPart = SYSTEM
    is_failing: bool = False
    specs: list[FoldSpec] = field(default_factory=list)

    @property
    def history(self) -> list[HistoryEntry]:
        return [to_entry(record) for record in self.snapshot.active]

    @property
    def messages(self) -> list[AnyMessage]:
        return [*(entry.message for entry in self.snapshot.raw), *self.opened]

    def build(self, history: Sequence[HistoryEntry], messages: Sequence[AnyMessage]) -> ModelInput:
        return self.strategy.assemble(self.system, history, messages)

    @property
    def fixed_tokens(self) -> int:
        return self.build((), self.opened).sent_tokens

    def fit(self, allowed_tokens: int) -> Fit:
        started = Fit(self.system, self.history, self.messages, self.build(self.history, self.messages))
        if started.model_input.sent_tokens <= allowed_tokens:
            return started
        fitting = Fitting(self.strategy.assemble, self.system, allowed_tokens=allowed_tokens, merged_tokens=600)
        if not self.strategy.sends_records:
            return fitting.by_leaving_out(started)
        return fitting.by_folding(started, self.snapshot, self.fold)

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
    draft = draft_of(extract_summary(spec.messages, spec.target_chars), is_extracted=True)
    text = review_drafts([draft], spec).text
    tokens = estimate_tokens(spec.label + text)
    return adopted(spec, text, record_id).with_changes(summary_tokens=tokens) if text else None


def session_of(
    strategy: Strategy,
    *,
    record_sentences: Sequence[int] = (),
    turn_sentences: Sequence[int] = (),
    question_sentences: int = 1,
    result_sentences: Sequence[Sequence[int]] = (),
    rest_sentences: int = 0,
    system: SystemPart = SYSTEM,
) -> Session:
    """A session of three turns a record, then raw turns, then an open turn with results by its rounds.

    With `rest_sentences` the last record ends inside its last turn, whose answer has so many.
    """
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
    if rest_sentences and active:
        active[-1] = active[-1].with_changes(to_position=active[-1].to_position - 1)
        said.insert(0, [AIMessage(words(rest_sentences), id=f"a{first - 1}")])
        raw = archived(said, first_turn=first - 1, first_position=2 * first - 2)
    else:
        raw = archived(said, first_turn=first, first_position=2 * first - 1)
    opened: list[AnyMessage] = [HumanMessage(words(question_sentences), id="now")]
    for number, counts in enumerate(result_sentences):
        ids = [f"open-{number}-{index}" for index in range(len(counts))]
        opened.append(
            AIMessage("", tool_calls=[tool_call(name="look_up", args={}, id=each) for each in ids], id=ids[0])
        )
        opened += [
            ToolMessage(words(count), tool_call_id=each, name="look_up", id=f"t-{each}")
            for each, count in zip(ids, counts, strict=True)
        ]
    return Session(strategy, SessionSnapshot(first - 1 + len(turn_sentences), active, raw, 0.3), opened, system)


def pin_of(position: int, sentences: int) -> Pin:
    """A question of the session that is pinned."""
    return Pin(f"u{(position + 1) // 2}", position, (position + 1) // 2, "human", words(sentences, position))


def lines(prefix: str, count: int) -> str:
    return "\n".join(f"{prefix} {words(1, number)}" for number in range(count))


def system_of(
    pin_sentences: Mapping[int, int],
    block_lines: Mapping[BlockKind, int],
    fixed_lines: Mapping[BlockKind, int] = MappingProxyType({}),
) -> SystemPart:
    """The system part with pins by their positions, and with blocks of so many lines, some of them fixed."""
    system = replace(SYSTEM, pins=tuple(pin_of(*pin) for pin in sorted(pin_sentences.items())))
    for kind, count in block_lines.items():
        block = ContextBlock(kind, 7, lines(kind, count), fixed_lines=min(count, fixed_lines.get(kind, 0)))
        system = system.with_block(block) if count else system
    return system


KINDS: Final[list[BlockKind]] = ["own", "front", "client", "volatile"]
SYSTEMS = st.builds(
    system_of,
    st.dictionaries(st.integers(0, 20).map(lambda index: 2 * index + 1), st.integers(1, 60), max_size=5),
    st.fixed_dictionaries({kind: st.just(0) | st.integers(1, 120) for kind in KINDS}),
    st.just({}) | st.dictionaries(st.sampled_from(KINDS), st.integers(1, 120)),
)
# Whatever a session holds: it may have been made for a larger window, or be what a program sends.
SESSIONS = st.builds(
    session_of,
    st.sampled_from([*FOLDING, WindowStrategy(Limits())]),
    record_sentences=st.lists(st.integers(1, 40), max_size=12),
    turn_sentences=st.lists(st.integers(0, 60), max_size=8),
    question_sentences=st.integers(1, 80),
    result_sentences=st.lists(st.lists(st.integers(0, 250), min_size=1, max_size=3), max_size=8),
    rest_sentences=st.integers(0, 80),
    system=st.just(SYSTEM) | SYSTEMS,
)


@settings(max_examples=at_most(300))
@given(
    session=SESSIONS,
    window_tokens=st.integers(1_000, 4_096) | st.integers(4_096, 32_768),
    correction=st.floats(1, 2),
    is_failing=st.booleans(),
)
def test_no_input_passes_the_limit_if_the_prompt_the_question_and_its_newest_call_alone_do_not(
    session: Session,
    window_tokens: int,
    correction: float,
    is_failing: bool,  # noqa: FBT001 - drawn
) -> None:
    session.is_failing = is_failing
    allowed_tokens = int(window_tokens * 0.75 / correction)
    fitted = session.fit(allowed_tokens).model_input
    assert fitted.sent_tokens <= max(allowed_tokens, least_tokens(session))
    assert faults(convert_to_openai_messages(list(fitted.messages))) == []
    assert fitted.messages[-1].id == session.opened[-1].id
    assert len(session.specs) <= 4
    retained = [entry.turn for entry in session.snapshot.raw]
    assert not retained or retained[-1] == session.snapshot.complete_turns
    check_names(session, fitted)


def least_tokens(session: Session) -> int:
    """The prompt, the question and its newest call; of results and blocks no more than the note that they are cut."""
    bare = replace(session.system, pins=())
    for block in (bare.own, bare.front, bare.client, bare.volatile):
        if block is not None:
            bare = bare.with_block(block.within(0, "ko"))
    calls = [index for index, message in enumerate(session.opened) if isinstance(message, AIMessage)]
    newest = session.opened[calls[-1] :] if calls else []
    return session.strategy.assemble(bare, (), [session.opened[0], *map(noted, newest)]).sent_tokens


def noted(message: AnyMessage) -> AnyMessage:
    """A tool result of which nothing stays but its note, where that is shorter."""
    note = note_cut(message.text, 0, why="fit the window", language="ko")
    is_longer = isinstance(message, ToolMessage) and estimate_tokens(note) < estimate_tokens(message.text)
    return message.model_copy(update={"content": note}) if is_longer else message


def check_names(session: Session, fitted: ModelInput) -> None:
    """The list of what was sent says what was cut and where; the oldest pins were left out first."""
    system = session.system
    whole = {block.kind: block for block in (*system.standing, system.volatile) if block is not None}
    said = {str(message.id): message for message in session.messages}
    sent = {str(message.id): message.text for message in fitted.messages}
    for item in fitted.items:
        if item.kind == "cut" and item.id in sent:
            whole_result = said[item.id].text
            assert sent[item.id] == note_cut(whole_result, item.version, why="fit the window", language="ko")
        if item.kind == "context":
            kind, sent_lines = read_name(item.id)
            block = whole[kind]
            text = block.text if sent_lines is None else cut_at(block.text, sent_lines, "ko")
            assert any(text in message.text for message in fitted.messages)
            assert (BLOCK_CUT["ko"] in text) is (sent_lines is not None)
            assert sent_lines is None or sent_lines >= block.fixed_lines
    assert {read_name(item.id)[0] for item in fitted.items if item.kind == "context"} == set(whole)
    pinned = [item.id for item in fitted.items if item.kind == "pin"]
    assert pinned == [pin.message_id for pin in session.system.pins if pin.message_id in pinned]
    raw = {item.id for item in fitted.items if item.kind == "message"}
    if pinned:
        newer = session.system.pins[[pin.message_id for pin in session.system.pins].index(pinned[0]) :]
        assert all(pin.message_id in {*pinned, *raw} for pin in newer)


@pytest.mark.parametrize("strategy", FOLDING)
def test_what_goes_once_no_memory_is_left_goes_in_the_order_of_its_weight(strategy: Strategy) -> None:
    system = system_of({1: 4, 3: 4}, {"volatile": 9, "front": 9, "own": 9, "client": 9})
    session = session_of(strategy, record_sentences=[9], result_sentences=[[40, 9]] * 3, system=system)
    session.is_failing = True
    steps = set()
    whole_tokens = session.build(session.history, session.messages).sent_tokens
    for allowed_tokens in range(least_tokens(session), whole_tokens, 45):
        sent = session.fit(allowed_tokens).model_input
        pins = [item.id for item in sent.items if item.kind == "pin"]
        results = [len(message.text.partition("\n\n[cut: ")[0]) for message in sent.messages if message.type == "tool"]
        ids = str([item.id for item in sent.items])
        lost = [kind for kind in ("volatile", "front", "own", "client") if f"{kind}/" in ids]
        assert pins in (["u1", "u2"], ["u2"], [])
        assert not pins or min(results) >= 200
        assert len(results) == 6 or max(results) == 0
        assert not lost or len(results) == 2
        assert lost == ["volatile", "front", "own", "client"][: len(lost)]
        kinds = [item.kind for item in sent.items]
        missing = {"records": "record" not in kinds, "pins": len(pins) < 2}
        missing |= {"tool_results": "cut" in kinds or len(results) < 6}
        missing |= {"recall": "volatile" in lost, "project": "front" in lost}
        missing |= {"instructions": "own" in lost, "system": "client" in lost}
        named = left_out(session.build(session.history, session.messages), sent)
        assert {*named} == {part for part, is_missing in missing.items() if is_missing}
        steps.add((len(pins), min(results) >= 200, len(results), len(lost)))
    assert {step[0] for step in steps} == {0, 1, 2}
    assert {step[1] for step in steps} == {False, True}
    assert {step[2] for step in steps} == {2, 4, 6}
    assert {step[3] for step in steps} == {0, 1, 2, 3, 4}


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
        IntervalStrategy(Limits()), record_sentences=[10], turn_sentences=[5], result_sentences=[[400], [2]]
    )
    fitted = session.fit(6_000).model_input
    assert fitted.sent_tokens <= 6_000
    assert [item.id for item in fitted.items if item.kind == "cut"] == ["t-open-0-0"]
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
