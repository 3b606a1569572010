"""The server of `app.py` on a machine that turns to something else after each run: requests come between two runs.

It pauses in the collection that `runner.postScriptGC` makes there.
"""

from __future__ import annotations

import gc
import time
from pathlib import Path
from typing import Final

import streamlit as st

import app as product

PAUSE_SECONDS: Final = 0.3
_WHOLE_COLLECTION: Final = 2


def _pause(phase: str, about: dict[str, int]) -> None:
    if phase == "start" and about["generation"] == _WHOLE_COLLECTION:
        time.sleep(PAUSE_SECONDS)


gc.callbacks.append(_pause)

app = st.App(Path(product.__file__).parent / "component" / "page.py", lifespan=product.lifespan)
