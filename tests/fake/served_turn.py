"""The product's own app with a turn already running in it, for tests of how a server ends.

TURNFOLD_TEST_MESSAGE=… streamlit run tests/fake/served_turn.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from starlette.routing import Route

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from app import health, lifespan
from component.bridge import service_provider
from graph.value.view import TurnOptions


@asynccontextmanager
async def with_a_turn(inner: st.App) -> AsyncIterator[dict[str, Any]]:
    """Sends a message as soon as the product's service is open."""
    async with lifespan(inner) as state:
        service_provider.current().turns.send(
            "served", os.environ["TURNFOLD_TEST_MESSAGE"], message_id="served-1", options=TurnOptions()
        )
        yield state


app = st.App(
    Path(__file__).resolve().parents[2] / "component" / "page.py",
    lifespan=with_a_turn,
    routes=[Route("/health", health)],
)
