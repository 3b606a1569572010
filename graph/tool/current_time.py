"""Tools for the current time in a zone and for reasoning in a separate model call."""

from __future__ import annotations

import time
from datetime import datetime, tzinfo
from typing import Annotated, Final
from zoneinfo import ZoneInfo

from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException

from graph.core.snapshot import find_zone
from graph.core.turn import text_of
from graph.tool.tool_context import SideCall, ToolContext, build_tool
from graph.value.error import TurnfoldError
from prompt.system.framing import Language
from prompt.tool import words as prompt
from prompt.tool.words import CLOCK_ZONES, DESCRIPTIONS, WEEKDAYS, no_zone


def build_current_time(context: ToolContext) -> BaseTool:
    """Returns `get_current_time`; its default is the user's own zone, and an unknown zone is an error."""
    language, words = context.language, DESCRIPTIONS[context.language]

    def get_current_time(timezone: str = "") -> str:
        name = timezone.strip() or context.time_zone or "UTC"
        zone, found = _open_zone(name), find_zone(name)
        if zone is None:
            is_offset = found.startswith(("UTC+", "UTC-"))
            zone = datetime.strptime(found, "UTC%z").tzinfo if is_offset else _open_zone(found)
        if zone is None:
            raise ToolException(no_zone(name[:60], CLOCK_ZONES, language))
        return format_time(context.clock().astimezone(zone), str(zone), language)

    return build_tool(get_current_time, words.clock, timezone=words.clock_zone)


def format_time(moment: datetime, zone: str, language: Language) -> str:
    """Renders a moment as `2026-11-21 08:50:12 Saturday, Asia/Seoul (UTC+09:00)`, the weekday in `language`."""
    offset = f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {WEEKDAYS[language][moment.weekday()]}, {zone} (UTC{offset[:3]}:{offset[3:5]})"


def _open_zone(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


_ATTEMPTS: Final = 2
# The call ends before the tool's own deadline, so that its row is stored while the turn is in progress.
_DEADLINE_SHARE: Final = 0.9


def build_reasoning(context: ToolContext) -> BaseTool:
    """Returns `reasoning`, which sends material and question to the turn's model; the answer is the tool's result."""
    words = DESCRIPTIONS[context.language]

    def reasoning(material: str, question: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        messages = SystemMessage(prompt.SYSTEM), HumanMessage(prompt.get_prompt(material, question))
        began = time.monotonic()
        try:
            answer = context.caller.call(
                context.model,
                messages,
                stop=context.stop,
                deadline_seconds=context.deadline_seconds * _DEADLINE_SHARE,
                attempts=_ATTEMPTS,
            )
        except TurnfoldError as error:
            context.keep(SideCall(tool_call_id, messages, None, time.monotonic() - began, error.code))
            raise
        context.keep(SideCall(tool_call_id, messages, answer.usage, time.monotonic() - began))
        return text_of(answer.message)

    described = {"material": words.reasoning_material, "question": words.reasoning_question}
    return build_tool(reasoning, words.reasoning, **described)
