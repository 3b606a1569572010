"""LangChain's OpenAI client with refusals preserved; the factory imports it late, because that takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Self

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import APIError
from pydantic import model_validator

from graph.model.failure import overflow_window
from graph.model.wire import PlainCompletions
from graph.value.error import BadResponseError


class EndpointChat(ChatOpenAI):
    """`ChatOpenAI` that streams plain JSON, preserves refusals and raises BadResponseError for a malformed stream."""

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
        refusal = (choices[0].get("delta") or {}).get("refusal")
        if generation is not None and refusal:
            generation.message.additional_kwargs["refusal"] = refusal
        return generation
