"""The embedded model without its pauses, and the settings under which it answers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from graph.model.factory import ChatModels, open_models
from graph.offline.chat_model import OfflineChat
from graph.server.settings import Settings

KEYLESS: Final[dict[str, Any]] = {"openai_api_key": None, "openai_base_url": None, "chat_model": None}


@contextmanager
def models_without_pauses(settings: Settings) -> Iterator[ChatModels]:
    with open_models(settings) as models:
        model = models.chat("")
        assert isinstance(model, OfflineChat)
        model.pause_seconds = 0
        yield models
