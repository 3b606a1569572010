"""Runs the peers over a script: LangChain's middleware and trimming, langmem's node, the full history."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, cast

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, get_buffer_string, trim_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.message import add_messages
from langmem.short_term import RunningSummary, SummarizationNode

from bench.context.measure import Meter, count_messages, render
from bench.context.script import ScriptedTurn
from graph.core.text import estimate_tokens
from graph.fold.extract import extract_summary
from prompt.system import chat

SUMMARY_TOKENS: Final = 1_024
_ASKING: Final = ("Create a summary of the conversation above", "Extend this summary by taking into account")
_SYSTEM: Final = SystemMessage(chat.get_prompt("ko", can_recall=False))

OnInput = Callable[[int, str], None]


class Contender(Protocol):
    """Decides the input of each model call."""

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Returns the messages to send; `history` is the session so far, the open turn last."""


class ExtractiveChat(BaseChatModel):
    """The peers' summary model; picks sentences of the source as ours does."""

    meter: Meter

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002  # the base class's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002  # the base class's signature
        **kwargs: Any,  # noqa: ANN401, ARG002  # the base class's signature
    ) -> ChatResult:
        text = extract(sources(messages))
        self.meter.summary("\n".join(map(render, messages)), text)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def extract(source: Sequence[AnyMessage]) -> str:
    """Picks sentences, about 1,024 tokens in all."""
    text = "".join(message.text for message in source)
    chars = int(SUMMARY_TOKENS * len(text) / max(1, estimate_tokens(text)))
    return extract_summary(source, chars)


def sources(asked: Sequence[BaseMessage]) -> list[AnyMessage]:
    """Returns the messages to summarise, without the instructions around them."""
    found: list[Any] = []
    for message in asked:
        text = message.text
        if _ASKING[1] in text:
            # langmem's text around the previous summary: "...so far: {summary}\n\nExtend this summary ..."
            found.insert(0, SystemMessage(text.partition(":")[2].rpartition(_ASKING[1])[0].strip()))
        elif _ASKING[0] not in text:
            found.append(message)
    return found


class FullHistory:
    """Sends the full history each time."""

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Returns the whole history."""
        return [_SYSTEM, *history]


class Trimmed:
    """`trim_messages`: sends the newest messages within a budget."""

    def __init__(self, budget_tokens: int) -> None:
        self._budget_tokens = budget_tokens

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Returns the newest messages, starting with a question."""
        return trim_messages(
            [_SYSTEM, *history],
            max_tokens=self._budget_tokens,
            token_counter=count_messages,
            strategy="last",
            start_on="human",
            include_system=True,
        )


class Middleware:
    """LangChain's `SummarizationMiddleware`: at the budget, summarises all but the newest half."""

    def __init__(self, budget_tokens: int, meter: Meter) -> None:
        self._middleware = SummarizationMiddleware(
            model=ExtractiveChat(meter=meter),
            trigger=("tokens", budget_tokens),
            keep=("tokens", budget_tokens // 2),
            token_counter=cast("Any", count_messages),  # its own type is wider than any chat needs
            trim_tokens_to_summarize=None,
            summarizer=self._summarise,
        )
        self._meter = meter
        self._messages: list[AnyMessage] = []
        self._known = 0

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Adds the new messages and runs the middleware, as its agent does before each call."""
        self._messages += history[self._known :]
        self._known = len(history)
        update = self._middleware.before_model({"messages": self._messages}, _NO_RUNTIME)
        if update is not None:
            self._messages = cast("list[AnyMessage]", add_messages(cast("Any", self._messages), update["messages"]))
        return [_SYSTEM, *self._messages]

    def _summarise(self, messages: Sequence[BaseMessage]) -> str:
        text = extract(cast("list[AnyMessage]", messages))
        prompt = self._middleware.summary_prompt.format(messages=get_buffer_string(messages, format="xml"))
        self._meter.summary(prompt, text)
        return text


class Langmem:
    """langmem's `SummarizationNode`: at the budget, folds the oldest messages into a running summary."""

    def __init__(self, budget_tokens: int, meter: Meter) -> None:
        self._node = SummarizationNode(
            model=ExtractiveChat(meter=meter),
            max_tokens=budget_tokens,
            max_tokens_before_summary=budget_tokens,
            max_summary_tokens=SUMMARY_TOKENS,
            token_counter=count_messages,
            output_messages_key="sent",
        )
        self._context: dict[str, RunningSummary] = {}

    def prepare(self, history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Runs the node as a graph would before each call."""
        update = self._node.invoke({"messages": list(history), "context": self._context})
        self._context = update.get("context", self._context)
        return [_SYSTEM, *update["sent"]]


_NO_RUNTIME: Final[Any] = None


def play(contender: Contender, meter: Meter, script: Sequence[ScriptedTurn], on_input: OnInput) -> None:
    """Runs the whole chat; calls `on_input` with each turn's last input."""
    history: list[AnyMessage] = []
    for turn in script:
        history.append(turn.messages[0])
        for reply in turn.messages[1:]:
            if reply.type == "ai":
                began = time.perf_counter()
                sent = contender.prepare(history)
                meter.seconds += time.perf_counter() - began
                text = meter.call(turn.number, sent, reply)
            history.append(reply)
        meter.end_turn()
        on_input(turn.number, text)
