"""Runs the page's script against a scripted service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from streamlit.testing.v1 import AppTest

from component.bridge import service_provider
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from tests.fake.scripted_service import ScriptedService
from tests.fake.shown_project import VIEW
from tests.page.reading import new_page


@pytest.fixture
def service(tmp_path: Path) -> Iterator[ScriptedService]:
    scripted = ScriptedService(tmp_path)
    service_provider.provide(cast("ChatService", scripted))
    yield scripted
    service_provider.provide(None)


@pytest.fixture
def page(service: ScriptedService) -> AppTest:
    assert service_provider.current() is cast("ChatService", service)
    return new_page()


@pytest.fixture
def project(service: ScriptedService) -> ScriptedService:
    service.projects.view = VIEW
    return service


@pytest.fixture
def real_service(tmp_path: Path) -> Iterator[ChatService]:
    """A service over files, with the offline model and one folder for projects."""
    (tmp_path / "allowed" / "shop").mkdir(parents=True)
    settings = Settings(_env_file=None, turnfold_data_dir=tmp_path / "data", project_roots=(tmp_path / "allowed",))  # type: ignore[call-arg]  # the base class's own argument
    with open_service(settings) as opened:
        service_provider.provide(opened)
        yield opened
    service_provider.provide(None)
