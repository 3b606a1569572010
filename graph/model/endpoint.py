"""LangChain's OpenAI client with refusals and thoughts preserved; imported late, because that takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Self

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import APIError
from pydantic import Field, model_validator

from graph.core.thinking import THOUGHT_FIELDS
from graph.core.turn import RETURNED
from graph.model.failure import overflow_window
from graph.model.wire import PlainCompletions
from graph.value.error import BadResponseError

# Fields of a piece of an answer that LangChain drops.
_KEPT_FIELDS: Final = ("refusal", *THOUGHT_FIELDS)
# Fields of an answer with calls that its provider wants back.
_WITH_CALLS: Final = ("reasoning_content", "reasoning_details")


class EndpointChat(ChatOpenAI):
    """`ChatOpenAI` that streams plain JSON, preserves refusals and raises BadResponseError for a malformed stream.

    Attributes:
        options: Added to the body of each request, unless the call itself says otherwise.
    """

    options: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _stream_plainly(self) -> Self:
        self.async_client = PlainCompletions(self.root_async_client)
        return self

    @property
    def completions(self) -> PlainCompletions:
        completions: PlainCompletions = self.async_client
        return completions

    def request_body(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, tool_choice: str | None
    ) -> dict[str, Any]:
        """Returns the request body of a call; the key is in a header, not in the body."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        offered: dict[str, Any] = {"tools": [dict(tool) for tool in tools], **chosen} if tools else {}
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        return self.completions.adapted(self._get_request_payload(list(messages), **{**streamed, **offered}))

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ANN401  # passed on as they come
        try:
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk
        except APIError as error:
            if (window := overflow_window(error)) is not None:
                self.completions.on_window(window)
            raise
        except (AttributeError, IndexError, KeyError, TypeError):
            # The client doesn't check the shape of the JSON: another shape fails like a programming error.
            raise BadResponseError from None

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices") or [{}]
        delta = choices[0].get("delta") or {}
        if generation is not None:
            retained = {name: delta[name] for name in _KEPT_FIELDS if delta.get(name)}
            extras = [call.get("extra_content") for call in delta.get("tool_calls") or []]
            if any(extras):
                retained["extra_content"] = extras
            generation.message.additional_kwargs.update(retained)
        return generation

    def _get_request_payload(
        self,
        input_: LanguageModelInput,
        *,
        stop: list[str] | None = None,
        **kwargs: Any,  # noqa: ANN401  # passed on as they come
    ) -> dict[str, Any]:
        payload: dict[str, Any] = super()._get_request_payload(input_, stop=stop, **kwargs)
        payload = {**self.options, **payload}
        messages = self._convert_input(input_).to_messages()
        for message, sent in zip(messages, payload["messages"], strict=True):
            if isinstance(message, AIMessage):
                _give_back(message.additional_kwargs.get(RETURNED, {}), sent)
        return payload


def _give_back(returned: Mapping[str, Any], sent: dict[str, Any]) -> None:
    """Adds to an answer with calls what its provider wants back with them in all later requests; LangChain drops it."""
    calls = sent.get("tool_calls", [])
    if calls:
        sent.update((name, value) for name, value in returned.items() if name in _WITH_CALLS)
    for call, extra_content in zip(calls, returned.get("extra_content", []), strict=False):
        if extra_content:
            call["extra_content"] = extra_content
