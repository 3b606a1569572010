"""The page's texts on what the model was sent, with English defaults; `word_input_ko` has the Korean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class InputWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    tab: str = "Model input"
    title: str = "🔎 What the model is sent"
    nothing: str = "After the first answer, this shows block by block what the model was sent."
    not_called: str = "No model was asked in this turn: there is nothing to show."
    choose_turn: str = "Turn"
    newest: str = "Sent most recently"
    in_turn: str = "Sent in turn {turn}"
    choose_call: str = "Call"
    call: str = "Call {number} of {count}"
    call_again: str = "Attempt {attempt}, call {number}"
    call_by_tool: str = "{call} · by the tool `reasoning`"
    call_failed: str = "{call} · failed"
    sent: str = "Sent in turn {turn}"
    full: str = "Full history"
    bar: str = "Sent: about {sent} tokens. The full history: about {full}. {blocks}."
    cacheable: str = "≈{tokens} cacheable ({percent}%)"
    cacheable_help: str = "What was the same as in the call before, from the beginning on."
    saved: str = "{percent}% less than the full history"
    grown: str = "{percent}% more than the full history"
    reported: str = "The provider reported {tokens} tokens"
    reported_cached: str = "The provider reported {tokens} tokens, {cached} of them from its cache"
    verified: str = "Rebuilt and checked: these are the bytes that were sent."
    unverified: str = "This couldn't be rebuilt as it was sent: the stored hash differs. What is known is shown."
    groups: Mapping[str, str] = field(
        default_factory=lambda: {
            "system": "System prompt",
            "layers": "Standing context",
            "records": "Summaries: {count}",
            "pins": "Pinned messages: {count}",
            "tools": "Descriptions of the tools",
            "note": "Headings between the parts",
            "raw": "Turns word for word: {count}",
            "volatile": "Context of this turn",
            "current": "Current turn {turn}",
            "call": "Question of the tool",
        }
    )
    roles: Mapping[str, str] = field(
        default_factory=lambda: {"user": "User", "assistant": "Assistant", "tool": "Tool", "": "Text"}
    )
    contexts: Mapping[str, str] = field(
        default_factory=lambda: {"front": "Project and rules", "client": "Instructions of the program"}
    )
    record: str = "[Turns {turns}]"
    turn: str = "Turn {turn}"
    gone: str = "Its text isn't stored any more."
    no_schema: str = "Only their size is known: they aren't this version's, or a program brought its own."
    same_words: str = "These words are always the same. Only their size is stored."
    tools: str = "Tools: {count}"
    request: str = "Show the request as sent"
    request_gone: str = "This request can't be built again: too little of it is stored."
    request_verified: str = "The messages are checked by their hash: these are the ones that were sent."
    request_unverified: str = "The messages couldn't be rebuilt as they were sent: the stored hash differs."
    request_of_program: str = (
        "A program asked here. The tools and parameters that it added aren't stored and are missing."
    )
    request_without_tools: str = "The tools are missing: they aren't those of this version."
    request_rest: str = "All else is made of today's settings. The key isn't shown; it goes in a header of the request."
    request_embedded: str = "The embedded model was handed this on the server itself; nothing was sent over a network."
    request_cut: str = "The file has all of it; this is the beginning."
    request_file: str = "Save as JSON"
    lost: str = "Cache lost through folding: {tokens}"
    history: str = "Full history, turn by turn"
    history_more: str = "Show earlier turns"
    ways: Mapping[str, str] = field(
        default_factory=lambda: {
            "record": "as a summary",
            "raw": "word for word",
            "current": "current turn",
            "none": "not sent",
        }
    )
