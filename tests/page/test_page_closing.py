from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

import app
from component.bridge import service_provider
from graph.service import ChatService
from graph.value.error import ClosingError
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import page_text


def test_a_page_drawn_while_the_server_ends_says_so_and_opens_no_second_service(
    page: AppTest, service: ScriptedService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNFOLD_DATA_DIR", str(tmp_path / "opened"))
    page.run()
    service_provider.provide(None)
    assert "서버가 종료되는 중입니다" in page_text(page.run())
    with pytest.raises(ClosingError):
        service_provider.current()
    assert not (tmp_path / "opened").exists()
    assert service.stored == {}


def test_the_health_of_a_server_that_ends_is_bad(service: ScriptedService) -> None:
    assert service_provider.current() is cast("ChatService", service)
    service_provider.provide(None)
    answer = TestClient(Starlette(routes=[Route("/health", app.health)])).get("/health")
    assert (answer.status_code, answer.json()) == (503, {"status": "closing"})
