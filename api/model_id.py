"""Model ids on the wire: `turnfold/<name>`, with the suffix `:plain` for answers without memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from api.problem import ProblemError, refused

# Not named like OpenAI's models: clients send `gpt-5…` and `o…` to other routes, with other fields.
DEFAULT_ID: Final = "turnfold"
_PREFIX: Final = "turnfold/"
_PLAIN: Final = ":plain"
# The date of the first version: models don't report their own.
_CREATED: Final = 1_767_225_600


def parse_model_id(model_id: str) -> tuple[str, bool]:
    """Returns the model's name, "" for the default, and whether the answer is made without memory.

    >>> parse_model_id("turnfold/small:plain")
    ('small', True)
    >>> parse_model_id("small")
    ('small', False)
    """
    name = model_id.removesuffix(_PLAIN)
    return ("" if name == DEFAULT_ID else name.removeprefix(_PREFIX)), name != model_id


def check_known(model_id: str, names: Sequence[str]) -> None:
    """Refuses an unknown model; any name passes if the models can't be listed.

    Raises:
        ProblemError: 404.
    """
    name, _ = parse_model_id(model_id)
    if name and names and name not in names:
        raise unknown_model()


def unknown_model() -> ProblemError:
    """Returns the error for an unknown model; doesn't repeat the name, which may be anything."""
    return refused("model_not_found", "There is no model of this name. GET /v1/models lists them.", "model", status=404)


def list_models(names: Sequence[str]) -> dict[str, Any]:
    """Returns the body of `/v1/models`: the default and each model, with and without memory."""
    ids = [DEFAULT_ID, *(f"{_PREFIX}{name}" for name in names)]
    return {"object": "list", "data": [_entry(model_id + suffix) for model_id in ids for suffix in ("", _PLAIN)]}


def model_entry(model_id: str, names: Sequence[str]) -> dict[str, Any]:
    """Returns the body of `/v1/models/{id}`.

    Raises:
        ProblemError: 404: the model isn't in the known list.
    """
    check_known(model_id, names)
    return _entry(model_id)


def _entry(model_id: str) -> dict[str, Any]:
    return {"id": model_id, "object": "model", "created": _CREATED, "owned_by": "turnfold"}
