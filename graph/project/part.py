"""What every object in the files of a project's memory has in common: frozen, checked, unknown fields kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints

VERSION: Final = "1.0"
ID_CHARS: Final = 64
TITLE_CHARS: Final = 300
TEXT_CHARS: Final = 1_000
PATH_CHARS: Final = 1_024


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        message = "no time in UTC"
        raise ValueError(message) from error


Time = Annotated[datetime, AfterValidator(_in_utc)]
"""A time in UTC; one without a zone is taken as UTC."""
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=ID_CHARS)]
Title = Annotated[str, StringConstraints(max_length=TITLE_CHARS)]
Text = Annotated[str, StringConstraints(max_length=TEXT_CHARS)]
PathText = Annotated[str, StringConstraints(max_length=PATH_CHARS)]
Version = Annotated[str, StringConstraints(max_length=ID_CHARS)]


class Part(BaseModel):
    """A frozen object of a file; every way to a new one runs the same checks, and fields of others stay in it."""

    # A message of pydantic would quote what the user wrote.
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    def changed(self, **changes: Any) -> Self:  # noqa: ANN401  # any field's value; it is checked
        """Returns a copy with these fields changed.

        Raises:
            ValidationError: A value is over its limit.
        """
        return self.model_validate({**dict(self), **changes})


def next_id(kind: str, taken: list[str]) -> str:
    """Returns the id after the highest one of its kind: `plan_002` after `plan_001`."""
    numbers = [int(digits) for each in taken if (digits := each.removeprefix(f"{kind}_")).isdecimal()]
    return f"{kind}_{max(numbers, default=0) + 1:03}"
