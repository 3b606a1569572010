"""`POST /v1/summarize`: the product's own summaries, of what belongs to no session."""

from __future__ import annotations

from typing import Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from api.body import BODY_BYTES
from api.message import MESSAGES, SentMessage, chat_of
from api.route_table import Call, Operation
from api.session_answer import Exact
from graph.value.client import ClientMessage
from graph.value.record import RecordOutcome

# No prompt asks for more; a longer one is asked for by parts.
_MOST_TARGET_CHARS: Final = 6_000


class Summarize(Exact):
    """What is summarised, `messages` or a `text`, and how short: a `rate` of its characters, or a `target_length`."""

    messages: list[SentMessage] = Field(default=[], max_length=MESSAGES)
    text: str = ""
    rate: float | None = Field(default=None, ge=0.1, le=0.5)
    target_length: int | None = Field(default=None, ge=1, le=_MOST_TARGET_CHARS, description="In characters.")
    language: Literal["ko", "en"] | None = None

    @model_validator(mode="after")
    def _is_either(self) -> Self:
        if bool(self.messages) == bool(self.text):
            kind = "invalid_value"
            message = "Either messages or a text is summarised"
            raise PydanticCustomError(kind, message)
        if self.rate is not None and self.target_length is not None:
            kind = "invalid_value"
            message = "Either a rate or a target_length says how short"
            raise PydanticCustomError(kind, message)
        return self


class SummaryAnswer(BaseModel):
    """A summary and its figures.

    `outcome` is "picked" if sentences of the source stand for drafts that couldn't be taken, and "inflated" if it
    stands word for word. Tokens are those that the provider reported if `is_usage`, else estimates; over all drafts.
    """

    model_config = ConfigDict(from_attributes=True)

    summary: str
    outcome: RecordOutcome
    original_chars: int
    summary_chars: int
    target_chars: int
    model: str
    input_tokens: int
    output_tokens: int
    is_usage: bool
    seconds: float
    kept_facts: tuple[str, ...]
    missing_facts: tuple[str, ...]


def _summarize(call: Call) -> SummaryAnswer:
    sent: Summarize = call.sent
    messages = chat_of(sent.messages) if sent.messages else (ClientMessage("user", sent.text),)
    record = call.service.summaries.make(
        messages, client=call.client.name, rate=sent.rate, target_chars=sent.target_length, language=sent.language
    )
    return SummaryAnswer.model_validate(record)


OPERATIONS: Final = (
    Operation(
        "summarize",
        "POST",
        "/v1/summarize",
        SummaryAnswer,
        body=Summarize,
        body_bytes=BODY_BYTES,
        refusals=(404, 502),
        call=_summarize,
        is_slow=True,
    ),
)
