"""The tool that searches the web without a key; it opens no page and marks its results as untrusted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from langchain_core.tools import BaseTool, ToolException

from graph.fold.extract import cut_at_word
from graph.tool.tool_context import ToolContext, build_tool
from graph.value.error import ModelError, UnreachableError
from prompt.system.framing import Language
from prompt.tool import words
from prompt.tool.words import DESCRIPTIONS

_MAX_RESULTS: Final = 10
_USUAL_RESULTS: Final = 5
_SEARCH_SECONDS: Final = 10.0
_TITLE_CHARS: Final = 200
_BODY_CHARS: Final = 500


def build_web_search(context: ToolContext) -> BaseTool:
    """Returns `web_search`; a failed search is a result with error status and a text for the model."""
    search, language, described = context.search or search_duckduckgo, context.language, DESCRIPTIONS[context.language]

    def web_search(query: str, max_results: int = _USUAL_RESULTS) -> str:
        count = min(max(1, max_results), _MAX_RESULTS)
        try:
            results = search(query, count, min(_SEARCH_SECONDS, context.deadline_seconds))
        except ModelError as error:
            raise ToolException(words.search_failed(error.code, language)) from None
        return render_results(results[:count], language) if results else words.SEARCH_NOTHING[language]

    counted = described.search_count.format(most=_MAX_RESULTS)
    return build_tool(web_search, described.search, query=described.search_query, max_results=counted)


def render_results(results: Sequence[Mapping[str, str]], language: Language) -> str:
    """Renders results inside a fence that no result can close."""
    entries = [
        f"{number}. {_clean(result.get('title', ''), _TITLE_CHARS)}\n"
        f"   {_clean(result.get('href', ''), _BODY_CHARS)}\n"
        f"   {_clean(result.get('body', ''), _BODY_CHARS)}"
        for number, result in enumerate(results, start=1)
    ]
    return "\n".join([words.SEARCH_WARNING[language], "<untrusted>", *entries, "</untrusted>"])


def _clean(text: str, limit_chars: int) -> str:
    return cut_at_word(" ".join(text.split()), limit_chars).replace("<", "‹")


def search_duckduckgo(query: str, count: int, deadline_seconds: float) -> list[Mapping[str, str]]:
    """Searches with the engines of ddgs; raises `UnreachableError`."""
    from ddgs import DDGS  # noqa: PLC0415  # slow to import, and most conversations never search
    from ddgs.exceptions import DDGSException  # noqa: PLC0415  # belongs to DDGS

    try:
        return list(DDGS(timeout=max(1, int(deadline_seconds))).text(query, max_results=count))
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise UnreachableError from None
    except OSError:
        raise UnreachableError from None
