"""The server of `app.py`, which says at `/statements` how many SQL statements it has made so far."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Final

import streamlit as st
from sqlalchemy import event
from sqlalchemy.engine import Engine
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import app as product

_STATEMENTS: Final = count()


@event.listens_for(Engine, "before_cursor_execute")
def _count(*_: object) -> None:
    _Made.statements = next(_STATEMENTS) + 1


class _Made:
    statements = 0


def _tell(_request: Request) -> PlainTextResponse:
    return PlainTextResponse(str(_Made.statements))


app = st.App(
    Path(product.__file__).parent / "component" / "page.py",
    lifespan=product.lifespan,
    routes=[Route("/statements", _tell)],
)
