"""The names of models on the wire: `turnfold/<name>`, with `:plain` behind it for answers without memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from api.problem import ProblemError, refused

# Clients send `gpt-5…` and `o…` to other addresses, and with other fields.
DEFAULT_ID: Final = "turnfold"
_PREFIX: Final = "turnfold/"
_PLAIN: Final = ":plain"
# When the first version was made: no model tells its own.
_CREATED: Final = 1_767_225_600


def parse_model_id(model_id: str) -> tuple[str, bool]:
    """Returns the model's name, "" for the default one, and whether the answer is to be without memory.

    >>> parse_model_id("turnfold/small:plain")
    ('small', True)
    >>> parse_model_id("small")
    ('small', False)
    """
    name = model_id.removesuffix(_PLAIN)
    return ("" if name == DEFAULT_ID else name.removeprefix(_PREFIX)), name != model_id


def check_known(model_id: str, names: Sequence[str]) -> None:
    """Refuses a model that isn't there, if it is known which are.

    Raises:
        ProblemError: 404.
    """
    name, _ = parse_model_id(model_id)
    if name and names and name not in names:
        raise unknown_model()


def unknown_model() -> ProblemError:
    """Returns what to raise for a model that isn't there; it doesn't repeat the name, which may be anything."""
    return refused("model_not_found", "There is no model of this name. GET /v1/models lists them.", "model", status=404)


def list_models(names: Sequence[str]) -> dict[str, Any]:
    """Returns what `/v1/models` answers: the default model and each one by its name, with and without memory."""
    ids = [DEFAULT_ID, *(f"{_PREFIX}{name}" for name in names)]
    return {"object": "list", "data": [_entry(model_id + suffix) for model_id in ids for suffix in ("", _PLAIN)]}


def model_entry(model_id: str, names: Sequence[str]) -> dict[str, Any]:
    """Returns what `/v1/models/{id}` answers.

    Raises:
        ProblemError: 404: it is known which models there are, and this isn't one.
    """
    check_known(model_id, names)
    return _entry(model_id)


def _entry(model_id: str) -> dict[str, Any]:
    return {"id": model_id, "object": "model", "created": _CREATED, "owned_by": "turnfold"}
