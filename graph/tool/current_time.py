"""The tool that returns the current time in a zone."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from zoneinfo import ZoneInfo

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, Field, create_model

from graph.core.zone import find_zone
from graph.tool.tool_context import ToolContext
from prompt.system.framing import Language
from prompt.tool.description import CLOCK_ZONES, DESCRIPTIONS
from prompt.tool.result import WEEKDAYS, no_zone


def build_current_time(context: ToolContext) -> BaseTool:
    """Returns `get_current_time`; its default is the user's own zone, and an unknown zone is an error."""
    language, words = context.language, DESCRIPTIONS[context.language]

    def get_current_time(timezone: str = "") -> str:
        name = timezone.strip() or context.time_zone or "UTC"
        zone = _open_zone(name) or _open_zone(find_zone(name))
        if zone is None:
            raise ToolException(no_zone(name[:60], CLOCK_ZONES, language))
        return tell_time(context.clock().astimezone(zone), zone.key, language)

    return StructuredTool(
        name="get_current_time",
        description=words.clock,
        args_schema=_arguments(language),
        func=get_current_time,
        handle_tool_error=True,
    )


@cache  # see `graph.tool.recall`
def _arguments(language: Language) -> type[BaseModel]:
    return create_model("Arguments", timezone=(str, Field("", description=DESCRIPTIONS[language].clock_zone)))


def tell_time(moment: datetime, zone: str, language: Language) -> str:
    """Renders a moment as `2026-11-21 08:50:12 Saturday, Asia/Seoul (UTC+09:00)`; the weekday is in this language."""
    offset = f"{moment:%z}"
    return f"{moment:%Y-%m-%d %H:%M:%S} {WEEKDAYS[language][moment.weekday()]}, {zone} (UTC{offset[:3]}:{offset[3:5]})"


def _open_zone(name: str) -> ZoneInfo | None:
    """Returns the zone of an IANA name, or None: the model may pass any text."""
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
