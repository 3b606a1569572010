"""Helpers of tests with compaction: true token counts as usage, asking until a compaction happens."""

from __future__ import annotations

import json
from typing import Any

from graph.value.event import Folded, TurnFinished
from tests.fake.body import content_of
from tests.fake.caching import count
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_responder import answer_body, kind_of

# Compacts after about a dozen turns.
COMPACTING: dict[str, Any] = {"context_strategy": "compaction", "max_context_tokens": 2_000}


def with_true_usage(body: Body) -> Reply:
    deltas = [json.loads(event)["choices"] for event in answer_body(body).events]
    answer = "".join(choice["delta"].get("content") or "" for choices in deltas for choice in choices)
    asked, said = true_tokens(body), count(answer)
    usage = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
    return text(answer if kind_of(body) == "chat" else f"<summary>{answer}</summary>", usage=usage)


def true_tokens(body: Body) -> int:
    """The exact count of what was sent: messages, tool calls and tools."""
    offered = [json.dumps(body["tools"], ensure_ascii=False)] if body.get("tools") else []
    called = [str(message["tool_calls"]) for message in body["messages"] if message.get("tool_calls")]
    sent = [content_of(message) for message in body["messages"]]
    return sum(map(count, [*sent, *offered, *called]))


def ask_until_compacted(chat: Chat) -> int:
    """Asks questions until a turn begins with a compaction; returns its number."""
    ((last,),) = chat.rows("SELECT coalesce(max(turn), 0) FROM message WHERE session_id = ?", chat.session_id)
    for number in range(last + 1, 60):
        events = chat.say(question(number))
        assert isinstance(events[-1], TurnFinished)
        chat.wait_for_folds()
        if any(isinstance(event, Folded) for event in events):
            return number
    raise AssertionError
