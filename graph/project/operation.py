"""What every change of a project's memory is: an operation with an id, applied to the files as they stand."""

from __future__ import annotations

import uuid
from abc import ABC, abstractmethod
from typing import Annotated

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from graph.core.text import check_text, plain_text
from graph.error import InputError
from graph.project.part import ID_CHARS, PATH_CHARS, TEXT_CHARS, TITLE_CHARS, Time
from graph.project.project_state import ProjectState
from graph.project.secret import find_secret, mask_secrets


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())


def _check(text: str, max_chars: int) -> str:
    check_text(text, max_chars=max_chars)
    return _refuse_secrets(text)


def _refuse_secrets(text: str) -> str:
    """Returns the text as it is.

    Raises:
        InputError: `secret`; `detail` is its kind.
    """
    if (found := find_secret(text)) is not None:
        raise InputError("secret", found.kind)
    return text


def _mask(text: str) -> str:
    return mask_secrets(plain_text(text))


# One line each, refused with an `InputError` if it is empty, too long or has a secret.
TitleLine = Annotated[str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TITLE_CHARS))]
TextLine = Annotated[str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TEXT_CHARS))]
PathLine = Annotated[str, BeforeValidator(plain_text), AfterValidator(lambda text: _check(text, PATH_CHARS))]
Description = Annotated[
    str, BeforeValidator(_line), AfterValidator(lambda text: _check(text, TEXT_CHARS) if text else text)
]
# It is looked up as it is, so that one of any kind is found or not found.
ItemId = Annotated[str, BeforeValidator(plain_text)]
# What was said is kept without its secrets.
MaskedText = Annotated[str, BeforeValidator(_mask)]
OperationId = Annotated[str, StringConstraints(min_length=1, max_length=ID_CHARS)]

Change = tuple[ProjectState, str]
"""The state after an operation, and the id of what it made or changed, or ""."""


class Operation(BaseModel, ABC):
    """A change; whatever it needs from outside, such as the time, stands in it.

    Attributes:
        id: An operation that was applied already changes nothing.
        at: When it was asked for, UTC.
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True)

    id: OperationId = Field(default_factory=lambda: uuid.uuid4().hex)
    at: Time

    @abstractmethod
    def change(self, state: ProjectState) -> Change | None:
        """Returns the changed state; None if there is nothing to change.

        Raises:
            NotFoundError: It names something that isn't there.
            ValidationError: The changed state is over a limit.
        """
