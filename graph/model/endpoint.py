"""LangChain's OpenAI client with refusals preserved; the factory imports it late, because that takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, Final, Self

from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, AsyncStream
from pydantic import model_validator

from graph.value.error import BadResponseError

_FIRST: Final = {"model": 0, "stream": 1, "messages": 2}


class PlainCompletions:
    """Streams chat completions as plain JSON.

    The SDK would build an object of each chunk, which LangChain takes apart again: nine tenths of the cost of a chunk.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    async def create(self, *, extra_body: Mapping[str, Any] | None = None, **body: Any) -> AsyncStream[object]:  # noqa: ANN401  # JSON
        return await self._client.post(
            "/chat/completions",
            cast_to=object,
            body=_in_order(body) | dict(extra_body or {}),
            stream=True,
            stream_cls=AsyncStream[object],
        )


def _in_order(body: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a body in the SDK's key order, so that requests with the same first messages have a common prefix."""
    return {name: body[name] for name in sorted(body, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))}


class EndpointChat(ChatOpenAI):
    """`ChatOpenAI` that streams plain JSON, preserves refusals and raises BadResponseError for a malformed stream."""

    @model_validator(mode="after")
    def _stream_plainly(self) -> Self:
        self.async_client = PlainCompletions(self.root_async_client)
        return self

    def request_body(
        self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], *, tool_choice: str | None
    ) -> dict[str, Any]:
        """Returns the request body of a call; the key is in a header, not in the body."""
        chosen = {} if tool_choice is None else {"tool_choice": tool_choice}
        offered: dict[str, Any] = {"tools": [dict(tool) for tool in tools], **chosen} if tools else {}
        streamed = {"stream": True, "stream_options": {"include_usage": True}}
        return _in_order(self._get_request_payload(list(messages), **{**streamed, **offered}))

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ANN401  # passed on as they come
        try:
            async for chunk in super()._astream(*args, **kwargs):
                yield chunk
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
