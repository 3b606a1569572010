"""The model input of a session in a project: its front is composed and rendered as the product does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import AnyMessage, HumanMessage

from graph.core.context_block import ContextBlock
from graph.core.divider import undivided
from graph.core.model_input import SystemPart, system_part
from graph.layer.prompt_composer import LLMTaskType, PromptComposer
from graph.record import Record, to_entry
from graph.strategy.base import Limits
from graph.strategy.strategies import build_strategies
from prompt.system.framing import Language
from tests.fake.layer import app_context

STRATEGIES = build_strategies(Limits(), default_name="interval", is_enabled=True).by_name


def primed_system(memory: Sequence[str], language: Language = "ko") -> SystemPart:
    """Returns the system part of a session that starts with these lines."""
    front = PromptComposer(language).parts(LLMTaskType.CHAT, app_context(), memory=memory).front
    return replace(system_part(language, can_recall=True), front=ContextBlock("front", 1, undivided(front)))


def primed_input(
    memory: Sequence[str],
    question: str,
    *,
    language: Language = "ko",
    said: Sequence[AnyMessage] = (),
    records: Sequence[Record] = (),
    strategy: str = "interval",
) -> list[AnyMessage]:
    """Returns what is sent for a question behind what was said."""
    messages = [*said, HumanMessage(question, id="now")]
    system = primed_system(memory, language)
    return list(STRATEGIES[strategy].assemble(system, [to_entry(each) for each in records], messages).messages)
