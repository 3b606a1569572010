"""LangChain's OpenAI client, with refusals kept; the factory imports it late, because that takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, Self

from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI, AsyncStream
from pydantic import model_validator

from graph.model_error import BadResponseError

_FIRST: Final = {"model": 0, "stream": 1, "messages": 2}


class PlainCompletions:
    """Streams chat completions as the JSON that they are.

    The SDK would make an object of each chunk, which LangChain takes apart again: nine tenths of what a chunk costs.
    """

    def __init__(self, client: AsyncOpenAI) -> None:
        self._client = client

    async def create(self, *, extra_body: Mapping[str, Any] | None = None, **body: Any) -> AsyncStream[object]:  # noqa: ANN401  # JSON
        """Posts the request, and returns its chunks."""
        # In the SDK's order: of two requests that begin with the same messages, the bytes begin alike too.
        in_order = sorted(body, key=lambda name: (_FIRST.get(name, len(_FIRST)), name))
        return await self._client.post(
            "/chat/completions",
            cast_to=object,
            body={name: body[name] for name in in_order} | dict(extra_body or {}),
            stream=True,
            stream_cls=AsyncStream[object],
        )


class EndpointChat(ChatOpenAI):
    """`ChatOpenAI` that streams plain JSON, keeps refusals and raises BadResponseError for a malformed stream."""

    @model_validator(mode="after")
    def _stream_plainly(self) -> Self:
        self.async_client = PlainCompletions(self.root_async_client)
        return self

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
