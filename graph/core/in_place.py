"""The request for a summary behind the chat itself, on the prefix that the provider or a local server has cached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage

from graph.core.fold_spec import FoldSpec
from graph.core.model_input import ModelInput
from graph.core.summary_request import SummaryRequest, language_of, lengths_of, requests_for, with_facts
from graph.core.token import estimate_tokens, message_tokens
from graph.core.turn import text_of
from prompt.summary import in_place_generator
from prompt.summary.summary_generator import MAX_TARGET_CHARS

# Providers ask a tenth of the price for input that they have cached.
CACHED_PRICE: Final = 0.1
# What is said behind a draft to have it mended.
_REPAIR_TOKENS: Final = 200


@dataclass(frozen=True)
class LastInput:
    """What the chat model of a session was last sent for an answer without tool calls, and that answer.

    Attributes:
        model: The name that the endpoint knows the model by.
        tools: The schemas sent beside the messages.
    """

    model: str
    model_input: ModelInput
    tools: tuple[Mapping[str, Any], ...]
    answer: AIMessage

    def holds(self, spec: FoldSpec) -> bool:
        """Whether all that a fold covers stands in it: its messages word for word, the records that it replaces."""
        items = self.model_input.items
        sent = {item.id for item in items if item.kind == "message"} | {str(self.answer.id)}
        if not {item.id for item in items if item.kind == "record"}.issuperset(spec.sources):
            return False
        texts = {str(m.id): _squeeze(text_of(m)) for m in [*self.model_input.messages, self.answer]}

        def is_held(source_id: str, message: AnyMessage) -> bool:
            # A message without a place of its own stands in one that joins several.
            places = [texts[source_id]] if source_id in texts else texts.values()
            return source_id in sent and any(_squeeze(text_of(message)) in place for place in places)

        return all(
            isinstance(message, SystemMessage) or is_held(source_id, message)
            for source_id, message in zip(spec.source_ids, spec.messages, strict=True)
        )


def request_in_place(last: LastInput, spec: FoldSpec) -> SummaryRequest | None:
    """Returns the last input with its answer and the instruction behind it; None if the fold must be quoted.

    A merge is quoted, and so is a block with anything in it that the input doesn't hold whole.
    """
    style = spec.style
    if style == "merge" or (style == "plain" and spec.sources) or not last.holds(spec):
        return None
    said = [message for message in spec.messages if not isinstance(message, SystemMessage)]
    asked = [message for message in said if isinstance(message, HumanMessage)]
    if not said:
        return None
    language = language_of(spec.messages, spec.asked)
    aim_chars, most_chars = lengths_of(spec.target_chars, style)
    ends_with_answer = spec.source_ids[-1] == str(last.answer.id)
    instruction = in_place_generator.get_prompt(
        style,
        aim_chars=aim_chars,
        most_chars=most_chars,
        turns=spec.turns,
        opening=text_of(said[0]),
        closing="" if ends_with_answer or not asked else text_of(asked[-1]),
        language=language,
        has_previous=bool(spec.sources),
    )
    # The user's alone: what else is named stands above, and each token of the list is one that isn't cached.
    told = with_facts(instruction, asked, min(spec.target_chars, MAX_TARGET_CHARS), spec.asked)
    sent: list[BaseMessage] = [*last.model_input.messages, last.answer, HumanMessage(told)]
    return SummaryRequest(sent, aim_chars, most_chars, language, last.tools)


def price_in_place(last: LastInput, request: SummaryRequest) -> float:
    """Estimates what a first draft in place reads, in tokens at full price; the last input is cached."""
    cached_tokens = last.model_input.sent_tokens
    return CACHED_PRICE * cached_tokens + _new_tokens(last, request)


def price_quoted(spec: FoldSpec, source_tokens: int) -> int:
    """Estimates what a first draft reads if its source is quoted.

    Args:
        spec: The fold.
        source_tokens: How many tokens of the source fit into one request.
    """
    requests = requests_for(spec.messages, spec.target_chars, spec.asked, source_tokens)
    return sum(estimate_tokens(message.text) for request in requests for message in request.messages)


def input_tokens_in_place(last: LastInput, request: SummaryRequest) -> int:
    """Estimates the largest input of a request in place: with a draft behind it, and what is wrong with that.

    A character is counted as a token: more than that no draft has.
    """
    return last.model_input.sent_tokens + _new_tokens(last, request) + request.most_chars + _REPAIR_TOKENS


def _new_tokens(last: LastInput, request: SummaryRequest) -> int:
    """Estimates what isn't cached: the answer and the instruction."""
    return message_tokens(last.answer) + estimate_tokens(request.messages[-1].text)


def _squeeze(text: str) -> str:
    """Returns a text without white space: where messages stand in one text, further lines are indented."""
    return "".join(text.split())
