"""LangChain's OpenAI client, with refusals kept; the factory imports it late, because that takes seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from langchain_core.outputs import ChatGenerationChunk
from langchain_openai import ChatOpenAI

from graph.model_error import BadResponseError


class EndpointChat(ChatOpenAI):
    """`ChatOpenAI` that keeps refusals and raises BadResponseError for a malformed stream."""

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
