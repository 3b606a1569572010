"""The server of `app.py` on a machine with too much to do: its event loop stands still most of the time."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import streamlit as st

import app as product

STILL_SECONDS: Final = 0.02
AWAKE_SECONDS: Final = 0


async def _stand_still() -> None:
    while True:
        time.sleep(STILL_SECONDS)  # noqa: ASYNC251  # the point of it
        await asyncio.sleep(AWAKE_SECONDS)


@asynccontextmanager
async def _lifespan(server: st.App) -> AsyncIterator[dict[str, Any]]:
    async with product.lifespan(server) as state:
        standing = asyncio.create_task(_stand_still())
        yield state
        standing.cancel()


app = st.App(Path(product.__file__).parent / "component" / "page.py", lifespan=_lifespan)
