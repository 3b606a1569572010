from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake.served_app import refused_start


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("COMPRESSION_RATE", "9", "COMPRESSION_RATE"),
        ("OPENAI_BASE_URL", "localhost:11434", "OPENAI_BASE_URL: takes a URL that begins with http:// or https://"),
        ("LEASE_SECONDS", "9.5", "LEASE_SECONDS (9.5) must be at least twice HEARTBEAT_SECONDS (5)"),
        ("TURNFOLD_DATA_DIR", "{folder}", "not_a_database"),
    ],
)
def test_server_that_cannot_start_says_why_in_a_sentence(tmp_path: Path, name: str, value: str, sentence: str) -> None:
    (tmp_path / "turnfold.db").write_text("these are plain words, and no database at all")
    assert sentence in refused_start(tmp_path, **{name: value.format(folder=tmp_path)})
