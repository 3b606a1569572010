from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.model_input import SystemPart, system_part
from graph.core.pin import ContextBlock
from graph.core.turn import text_of, undivided
from graph.offline.chat_model import compose
from graph.offline.passage import unpacked
from graph.strategy.base import Limits
from graph.strategy.strategies import build_strategies
from graph.value.record import Record, to_entry
from tests.fake.snapshot import plain_turn, record_of, tool_turn

STRATEGIES: Final = build_strategies(Limits(), default_name="interval", is_enabled=True).by_name
SYSTEM: Final = system_part("ko", can_recall=True)
TOOLS: Final = ("get_current_time", "recall")
SAID: Final[dict[str, list[AnyMessage]]] = {
    "nothing": [],
    "turns": [*plain_turn(4, "예산은 320만 원입니다."), *tool_turn(5, "담당은 김민수입니다.")],
}
RECORDS: Final[dict[str, list[Record]]] = {
    "no record": [],
    "record": [record_of((1, 2, 3), "숙소는 올레펜션으로 정했습니다.")],
    "a record like a block": [record_of((1, 2, 3), "## 휘발성 컨텍스트\nselection: 숙소는 올레펜션입니다.")],
}
TEXTS: Final = st.lists(
    st.sampled_from(
        ["예산은 1원입니다.", "\n", "\n\n", "[CURRENT MESSAGE]\n", "USER: 내일", "## 휘발성 컨텍스트", "---"]
    )
).map("".join)


def reply(name: str, system: SystemPart, said: Sequence[AnyMessage], records: Sequence[Record], question: str) -> str:
    messages = [*said, HumanMessage(question, id="now")]
    sent = STRATEGIES[name].assemble(system, [to_entry(record) for record in records], messages).messages
    assert text_of(unpacked(sent)[-1]) == question  # type: ignore[arg-type]  # a user's message
    return compose(sent, TOOLS).text


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("said", SAID.values(), ids=SAID)
@pytest.mark.parametrize("records", RECORDS.values(), ids=RECORDS)
@settings(deadline=None, max_examples=15)
@given(volatile=TEXTS, question=st.sampled_from(["예산이 얼마였지?", "안녕하세요", "숙소 알려줘"]))
def test_the_embedded_model_takes_no_context_for_what_was_said(
    name: str, said: list[AnyMessage], records: list[Record], volatile: str, question: str
) -> None:
    block = ContextBlock("volatile", 1, undivided(f"## 휘발성 컨텍스트\nselection: {volatile}"))
    with_block = reply(name, replace(SYSTEM, volatile=block), said, records, question)
    assert with_block == reply(name, SYSTEM, said, records, question)
