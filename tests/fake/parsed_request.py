"""Requests for completions, as the door reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import pytest
from starlette.datastructures import Headers

from api.problem import ProblemError
from api.request import ParsedRequest, parse_request
from api.token_guard import ApiClient
from graph.client import ClientMessage

CLIENT: Final = ApiClient("editor", "kim", frozenset({"recall"}))
QUESTION: Final = {"role": "user", "content": "안녕"}


def parsed(headers: Mapping[str, str] | None = None, /, **fields: Any) -> ParsedRequest:  # noqa: ANN401  # any JSON
    body = {"model": "turnfold", "messages": [QUESTION], **fields}
    return parse_request(json.dumps(body).encode(), Headers(headers or {}), CLIENT)


def problem(headers: Mapping[str, str] | None = None, /, **fields: Any) -> tuple[int, str, str | None]:  # noqa: ANN401  # any JSON
    with pytest.raises(ProblemError) as refused:
        parsed(headers, **fields)
    told = refused.value.problem
    return told.status, told.code, told.param


def messages(*sent: Mapping[str, object]) -> tuple[ClientMessage, ...]:
    return parsed(messages=[*sent, QUESTION]).request.messages[:-1]
