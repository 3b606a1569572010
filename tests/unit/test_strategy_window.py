from __future__ import annotations

import pytest
from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.model_input import SystemPart
from graph.strategy.base import Limits
from graph.strategy.strategies import WindowStrategy, build_strategies
from graph.value.record import to_entry
from tests.fake.snapshot import plain_turn, record_of, snapshot_of, tool_turn

SYSTEM = SystemPart("You help.", 1)


def sent_ids(turns: int, messages: list[AnyMessage]) -> list[str | None]:
    history = [to_entry(record_of((1, 2, 3), "S"))]
    built = WindowStrategy(Limits(window_turns=turns)).assemble(SYSTEM, history, messages)
    assert built.messages[0].text == "You help."
    return [message.id for message in built.messages[1:]]


@pytest.mark.parametrize(("turns", "first"), [(0, None), (1, "u5"), (2, "u4"), (5, "u1"), (99, "u1")])
def test_the_last_turns_and_the_open_one(turns: int, first: str | None) -> None:
    messages = [message for number in range(1, 6) for message in plain_turn(number)]
    sent = sent_ids(turns, [*messages, HumanMessage("now", id="now")])
    assert sent[-1] == "now"
    assert (sent[0] if len(sent) > 1 else None) == first
    assert len(sent) == 2 * min(turns, 5) + 1


def test_a_tool_turn_goes_whole() -> None:
    messages = [*plain_turn(1), *tool_turn(2, calls=2), HumanMessage("now", id="now")]
    assert sent_ids(1, messages) == ["u2", "k2", "tc2-0", "tc2-1", "a2", "now"]
    assert sent_ids(0, [*plain_turn(1), *tool_turn(2)[:-1]]) == ["u2", "k2", "tc2-0"]


def test_it_folds_nothing() -> None:
    assert WindowStrategy(Limits()).due_folds(snapshot_of([plain_turn(n, "x" * 9_000) for n in range(1, 50)])) == ()


def test_context_switched_off_is_the_current_message_alone_for_sessions_that_chose_nothing() -> None:
    strategies = build_strategies(Limits(), default_name="interval", is_enabled=False)
    built = strategies.of("").assemble(SYSTEM, [], [*plain_turn(1), HumanMessage("now")])
    assert [message.text for message in built.messages[1:]] == ["now"]
    assert strategies.of("").name == "window"
    assert strategies.of("rolling").name == "rolling"


def test_a_strategy_that_is_no_more_gives_way_to_the_default() -> None:
    strategies = build_strategies(Limits(), default_name="compaction", is_enabled=True)
    assert strategies.of("gone") is strategies.of("") is strategies.default
    assert list(strategies.by_name) == ["interval", "rolling", "compaction", "window"]
