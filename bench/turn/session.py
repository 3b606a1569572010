"""Holds chats with a service in this process."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from bench.server import model_settings
from bench.store import SpeakingModel
from bench.turn.counted import Turn, kind_of, records_of
from bench.turn.statement import counting
from graph.model.summariser import ExtractiveSummariser
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.event import TurnFinished
from tests.fake.scripted_model import scripted_models

_PATIENCE_SECONDS = 60


class Session:
    """Runs turns in a session, each until all that it has caused is done; `pace` is one of the endpoint's."""

    def __init__(self, service: ChatService, session_id: str, *, pace: str = "now") -> None:
        self._service = service
        self._session_id = session_id
        self._pace = pace
        self._number = 0

    def turn(self) -> None:
        """Runs the next turn with its folds."""
        self._number += 1
        turns, text = self._service.turns, question(self._number, self._pace)
        message_id = f"user-{uuid.uuid4().hex}"  # as the page has one for each message
        turns.send(self._session_id, text, message_id=message_id, wait_seconds=_PATIENCE_SECONDS)
        ending = list(turns.follow(self._session_id, timeout_seconds=_PATIENCE_SECONDS))[-1]
        if not isinstance(ending, TurnFinished):
            sys.exit(f"turn {self._number} of {self._session_id} ended as {type(ending).__name__}")
        while not self._service._engine.fold_worker.is_idle(self._session_id):
            time.sleep(0.001)

    def counted(self) -> Turn:
        """Runs the next turn, and counts what is sent for it."""
        before = records_of(self._service.settings)
        with counting() as counts:
            self.turn()
        return Turn(kind_of(before, records_of(self._service.settings)), counts)

    def name(self) -> None:
        """Gives it a title: without one, each turn looks whether it can have one by now."""
        self._service.sessions.rename(self._session_id, self._session_id)


def question(number: int, pace: str) -> str:
    return f"{pace}-{number} 다음 단계와 남은 예산을 정리해 주세요. ({number})"


def settings_of(folder: Path, url: str) -> Settings:
    """Returns the settings of a product in a folder, as `bench.server.started` gives them to a server."""
    values = {name.lower(): value for name, value in model_settings(url).items()}
    return Settings.model_validate({**values, "turnfold_data_dir": folder / "data"})


def fill(settings: Settings, session_ids: Iterable[str], turns: int) -> None:
    """Writes sessions by turns of the product, with a chat model and a summariser that run in this process."""
    with open_service(settings, models=scripted_models(SpeakingModel(), ExtractiveSummariser())) as service:
        for session_id in session_ids:
            session = Session(service, session_id)
            for _ in range(turns):
                session.turn()
            session.name()
