"""Kinds of servers: how a model's thoughts, calls and streams come, what it refuses, and where its window is told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from hypothesis import strategies as st

from tests.fake.body import tokens_of
from tests.fake.openai_dialect import NO_TOOLS, pages_of
from tests.fake.openai_reply import (
    DEFAULT_USAGE,
    THINKING,
    Body,
    Reply,
    ScriptedCall,
    Thinking,
    chunk,
    failure,
    in_pieces,
    thinking,
    tools,
)
from tests.fake.openai_server import FakeOpenAI
from tests.fake.scripted_model import ScriptedAnswer

# A word that only thoughts say.
THOUGHT_WORD: Final = "Zebrafish"
THOUGHT: Final = f"{THOUGHT_WORD} Lane 7777은 미끼입니다.\n\n- `hunter2`는 쓰지 않습니다."

# What stands round each event of a stream.
FRAMES: Final[Mapping[str, str]] = {
    "plain": "data: {}\n\n",
    "ids and pings": "id: 1\ndata: {}\n\n: ping\n\n",
    "comments": ": OPENROUTER PROCESSING\n\ndata: {}\n\n",
    "named pings": "event: ping\ndata: {{}}\n\nevent: chunk\ndata: {}\n\n".replace("{{}}", '{"type": "ping"}'),
    "retry first": "retry: 3000\n\ndata: {}\n\n",
    "CRLF": "data: {}\r\n\r\n",
}
Calls = Literal["plain", "no id", "no index", "an object"]
WINDOWS: Final = ("", "llama.cpp", "lm studio", "ollama", "the list", "its errors")
_MODEL: Final = "scripted-model"


@dataclass(frozen=True)
class ServerKind:
    """A kind of server.

    Attributes:
        thinks: The form of its model's thoughts; "" for a model that doesn't think.
        no_tools: In whose words it refuses tools; "" if it takes them.
        refuses: A parameter that it refuses besides; "" for none.
        frame: What stands round each event of its streams; see `FRAMES`.
        calls: What its tool calls lack.
        window_in: Where it tells its window; "" if it doesn't.
        window_tokens: The window in force.
    """

    thinks: Thinking | Literal[""] = ""
    no_tools: str = ""
    refuses: str = ""
    frame: str = "plain"
    calls: Calls = "plain"
    window_in: str = ""
    window_tokens: int = 100_000

    @property
    def has_small_window(self) -> bool:
        return bool(self.window_in) and self.window_tokens < 8_192

    def settle(self, server: FakeOpenAI) -> None:
        """Has the server list its model as this kind does."""
        told = {"context_length": self.window_tokens} if self.window_in == "the list" else {}
        server.models = [{"id": _MODEL, **told}]
        has_page = self.window_in in ("llama.cpp", "lm studio", "ollama")
        server.pages = dict(pages_of(self.window_in, self.window_tokens)) if has_page else {}
        if self.window_in == "ollama" and not self.no_tools:
            server.pages["/api/show"] = {"capabilities": ["completion", "tools"]}

    def refusal_of(self, body: Body) -> Reply | None:
        """What it says to a request that it refuses; None if it answers."""
        if self.no_tools and body.get("tools"):
            return NO_TOOLS[self.no_tools]
        if self.refuses in body:
            return failure(400, f"Unsupported parameter: '{self.refuses}' is not supported with this model.")
        if self.window_in == "its errors" and (sent := tokens_of(body)) > self.window_tokens:
            words = f"This model's maximum context length is {self.window_tokens} tokens. You requested {sent} tokens."
            return failure(400, words)
        return None

    def reply(self, answer: ScriptedAnswer) -> Reply:
        """The answer as this kind sends it, behind thoughts if its model thinks."""
        said = "".join(answer.pieces)
        has_answer = bool(said.strip() or answer.tool)
        # Nobody can tell unended thoughts from an answer if only their end is marked.
        thought = "" if self.thinks == "end_tag" and not has_answer else THOUGHT
        if self.thinks and thought:
            events = thinking(self.thinks, thought, said or "\n" * bool(answer.tool), most=4).events[:-2]
        else:
            events = (chunk({"role": "assistant", "content": ""}), *(chunk({"content": part}) for part in _cut(said)))
        if answer.tool:
            call = ScriptedCall(answer.tool, answer.arguments, answer.call_id or None)
            events = (*events, *self._calling(call, number=len(events)))
        if answer.ending == "stop":
            reason = "tool_calls" if answer.tool else "stop"
            events = (*events, chunk({}, finish_reason=reason), chunk(None, usage=DEFAULT_USAGE))
        endings: Mapping[str, Literal["done", "close", "hang"]] = {"stop": "done", "fail": "close", "hang": "hang"}
        return Reply(events=events, frame=FRAMES[self.frame], ending=endings[answer.ending])

    def _calling(self, call: ScriptedCall, *, number: int) -> Sequence[str]:
        call = replace(call, id=None if self.calls == "no id" else call.id or f"call-{number}")
        if self.calls in ("plain", "no id"):
            return tools(call).events[1:-2]
        arguments: Any = json.loads(call.arguments) if self.calls == "an object" else call.arguments
        place = {} if self.calls == "no index" else {"index": 0}
        function = {"name": call.name, "arguments": arguments}
        return [chunk({"tool_calls": [{**place, "id": call.id, "type": "function", "function": function}]})]


def _cut(said: str) -> Sequence[str]:
    return in_pieces(said) if said else ()


KINDS: Final[st.SearchStrategy[ServerKind]] = st.builds(
    ServerKind,
    thinks=st.sampled_from(["", *THINKING, *THINKING]),
    no_tools=st.just("") | st.sampled_from(list(NO_TOOLS)),
    refuses=st.sampled_from(["", "", "stream_options", "tool_choice"]),
    frame=st.sampled_from(list(FRAMES)),
    calls=st.sampled_from(["plain", "no id", "no index", "an object"]),
    window_in=st.sampled_from(WINDOWS),
    window_tokens=st.sampled_from([100_000, 3_000]),
)
