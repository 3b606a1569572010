from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
    kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "streamlit", "run", str(ROOT / "app.py"), "--server.headless=true", "--server.port=0"],
        cwd=tmp_path,
        env={**kept, name: value.format(folder=tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "Turnfold can't start" in done.stderr
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
