from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from graph.server.settings import load_settings
from graph.service import open_service


def test_the_usage_example_of_the_door_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TURNFOLD_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)  # no developer's `.env` counts
    names = {"open_service": open_service, "load_settings": load_settings}
    (example,) = doctest.DocTestFinder().find(open_service, "open_service", globs=names)
    result = doctest.DocTestRunner().run(example)
    assert (result.failed, result.attempted) == (0, 1)
