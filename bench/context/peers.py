"""The libraries that the chat is played with beside ours; they are installed for this benchmark alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, get_buffer_string
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph.message import add_messages
from langmem.short_term import SummarizationNode

from bench.context.contenders import SYSTEM, Meter, Prepare, count_messages, render
from graph.core.text import estimate_tokens
from graph.fold.extract import extract_summary

SUMMARY_TOKENS = 1_024
_ASKING = ("Create a summary of the conversation above", "Extend this summary by taking into account")


class ExtractiveChat(BaseChatModel):
    """The libraries' summary model; picks sentences of the source as ours does."""

    meter: Meter

    @property
    def _llm_type(self) -> str:
        return "extractive"

    def _generate(self, messages: list[BaseMessage], *_: object, **__: object) -> ChatResult:
        text = extract(_sources(messages))
        self.meter.summary("\n".join(map(render, messages)), text)
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def extract(source: Sequence[AnyMessage]) -> str:
    """Picks sentences, about 1,024 tokens in all."""
    text = "".join(message.text for message in source)
    chars = int(SUMMARY_TOKENS * len(text) / max(1, estimate_tokens(text)))
    return extract_summary(source, chars)


def _sources(asked: Sequence[BaseMessage]) -> list[AnyMessage]:
    """Returns the messages to summarise, without the instructions around them."""
    found: list[AnyMessage] = []
    for message in asked:
        text = message.text
        if _ASKING[1] in text:
            # langmem's text around the previous summary: "...so far: {summary}\n\nExtend this summary ..."
            found.insert(0, SystemMessage(text.partition(":")[2].rpartition(_ASKING[1])[0].strip()))
        elif _ASKING[0] not in text:
            found.append(message)
    return found


def middleware(budget_tokens: int, meter: Meter) -> Prepare:
    """LangChain's `SummarizationMiddleware`: at the budget, summarises all but the newest half."""

    def summarise(messages: Sequence[BaseMessage]) -> str:
        text = extract(messages)
        prompt = made.summary_prompt.format(messages=get_buffer_string(messages, format="xml"))
        meter.summary(prompt, text)
        return text

    made = SummarizationMiddleware(
        model=ExtractiveChat(meter=meter),
        trigger=("tokens", budget_tokens),
        keep=("tokens", budget_tokens // 2),
        token_counter=count_messages,
        trim_tokens_to_summarize=None,
        summarizer=summarise,
    )
    messages: list[Any] = []
    known = 0

    def prepare(history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Adds the new messages and runs the middleware, as its agent does before each call."""
        nonlocal messages, known
        messages += history[known:]
        known = len(history)
        update = made.before_model({"messages": messages}, None)
        if update is not None:
            messages = add_messages(messages, update["messages"])
        return [SYSTEM, *messages]

    return prepare


def langmem(budget_tokens: int, meter: Meter) -> Prepare:
    """langmem's `SummarizationNode`: at the budget, folds the oldest messages into a running summary."""
    node = SummarizationNode(
        model=ExtractiveChat(meter=meter),
        max_tokens=budget_tokens,
        max_tokens_before_summary=budget_tokens,
        max_summary_tokens=SUMMARY_TOKENS,
        token_counter=count_messages,
        output_messages_key="sent",
    )
    context: dict[str, Any] = {}

    def prepare(history: list[AnyMessage]) -> Sequence[BaseMessage]:
        """Runs the node as a graph would before each call."""
        nonlocal context
        update = node.invoke({"messages": list(history), "context": context})
        context = update.get("context", context)
        return [SYSTEM, *update["sent"]]

    return prepare
