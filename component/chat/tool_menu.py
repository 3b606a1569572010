"""The menu of the tools of MCP servers: which of them the model may use in this chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import streamlit as st

from component import action, page_state, reading, redraw, widget
from component.bridge import delivery
from component.format import escape_label, format_count
from component.page_state import PageState
from component.words.words import Words
from graph.value.mcp import Failure, UnusableTool
from graph.value.view import McpChoice, McpServer, McpTool

_WIDTH_PIXELS: Final = 400
_AWAIT_SECONDS: Final = 1.0
_MOST_UNUSABLE: Final = 12


def draw(now: PageState) -> None:
    labels, choice = now.words.tools, _choice(now)
    if not choice.servers:
        return
    count, tokens = choice.count, format_count(choice.tokens)
    label = labels.menu_on.format(count=count) if count else labels.menu
    icon = "warning" if any(server.state == "failed" for server in choice.servers) else "build"
    # Not one that tells when it is opened: Streamlit would close it whenever its label changes.
    menu = st.popover(label, key="tool_menu", type="tertiary", icon=f":material/{icon}:")
    with menu, st.container(width=_WIDTH_PIXELS, gap="small", key="tool_list"):
        widget.draw_note(labels.sum.format(count=count, tokens=tokens) if count else labels.none)
        if choice.is_too_much:
            st.markdown(f":small[:orange[:material/report: {labels.too_much}]]")
        tools = [tool for server in choice.servers for tool in server.tools]
        only_read, others = ([tool.offered for tool in tools if tool.asks is asks] for asks in (False, True))
        if only_read and others:
            widget.draw_action(labels.reading, "reading_tools", "visibility", action.choose_tools, only_read, others)
        are_to_come = [_draw_server(now, server) for server in choice.servers]
        if any(are_to_come):
            _await(now, choice)


def _choice(now: PageState) -> McpChoice:
    model, identifier = page_state.chosen(page_state.MODEL), page_state.session_id()
    with reading.shared(now.service, identifier, "session"):
        return now.service.mcp.choices(identifier or "", chosen=page_state.new_tools(), model=model)


@delivery.fragment(run_every=_AWAIT_SECONDS)
def _await(now: PageState, drawn: McpChoice) -> None:
    # Without a widget: a press in a fragment with a timer would count as an early one.
    with widget.error_box(now.words):
        if _choice(now) != drawn:
            redraw.ask([redraw.COMPOSER])


def _draw_server(now: PageState, server: McpServer) -> bool:
    """Draws a server and, in its open box, its tools; returns True if they are still to come."""
    labels = now.words.tools
    box = widget.open_box(
        f"**{escape_label(server.name)}**", f"server_{server.name}", "error" if server.state == "failed" else "dns"
    )
    is_coming = server.state == "starting" or (box is not None and server.state == "idle")
    if is_coming:
        widget.draw_note(labels.starting)
    elif server.state == "failed":
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(f":small[:gray[:material/error: {_reason(now.words, server)}]]", width="content")
            widget.draw_action(now.words.retry, f"start_{server.name}", "refresh", action.start_server, server.name)
    if box is not None:
        with box, widget.error_box(now.words):
            if server.state == "idle":
                now.service.mcp.start(server.name)
            if len(server.tools) > 1:  # no tool's offered name has a space
                _draw_box(labels.all, f"all {server.name}", server.tools)
            for tool in server.tools:
                with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                    _draw_box(_label(now.words, tool), tool.offered, [tool], hint=escape_label(tool.description))
                    if tool.title not in {"", tool.name}:
                        widget.draw_note(escape_label(tool.name))
                    if tool.asks and tool.is_allowed:
                        key = f"ask_again_{tool.offered}"
                        widget.draw_action(labels.ask_again, key, "undo", action.ask_again, tool.offered)
            if server.state == "ready" and (server.unusable or not server.tools):
                widget.draw_note(_unusable(now.words, server.unusable) or labels.none_offered)
    return is_coming


def _reason(words: Words, server: McpServer) -> str:
    kind, about, said = server.failure or Failure("other")
    reason = words.tools.failures.get(kind, "").format(about=escape_label(about))
    return " ".join(filter(None, (words.tools.failed, reason, escape_label(said))))


def _unusable(words: Words, tools: Sequence[UnusableTool]) -> str:
    labels = words.tools
    told = [
        f"{escape_label(tool.name)} ({labels.reasons[tool.reason].format(about=escape_label(tool.about))})"
        for tool in tools[:_MOST_UNUSABLE]
    ]
    more = ["…"] if len(tools) > _MOST_UNUSABLE else []
    return labels.unusable.format(tools=", ".join([*told, *more])) if told else ""


def _draw_box(label: str, name: str, tools: Sequence[McpTool], hint: str | None = None) -> None:
    key = f"tool_{page_state.session_id()}_{name}"
    # In each drawing: a menu that is closed hears nothing, and a box that it shows later has the newest drawing alone.
    st.session_state[key] = all(tool.is_on for tool in tools)
    st.checkbox(label, key=key, help=hint, on_change=_choose, args=(key, [tool.offered for tool in tools]))


@delivery.once
def _choose(key: str, tools: Sequence[str]) -> None:
    action.choose_tools(*((tools, ()) if st.session_state[key] else ((), tools)))


def _label(words: Words, tool: McpTool) -> str:
    labels = words.tools
    asks = labels.asks_not if not tool.asks else labels.allowed if tool.is_allowed else labels.asks
    tokens = words.steering.pin_tokens.format(tokens=format_count(tool.tokens))
    # Without colours: a screen reader reads their Markdown.
    return " · ".join([escape_label(tool.title or tool.name), tokens, asks, *([labels.changed] * tool.is_changed)])
