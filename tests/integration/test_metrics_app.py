from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_app import ask_health, served

pytestmark = pytest.mark.slow
TOKEN = "canary-0123456789-abcdef"  # noqa: S105  # of this test alone
NAMED = {"Host": "chat.example.com"}
FORWARDED = {"X-Forwarded-For": "192.0.2.7"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}
FIRST_LINES = {"/metrics": "# HELP turnfold_turns_total", "/_stcore/metrics": "# TYPE"}


@pytest.mark.parametrize(
    ("token", "sent", "statuses"),
    [
        ("", [{}, NAMED, FORWARDED, BEARER], [200, 404, 404, 200]),
        (TOKEN, [{}, NAMED, {**NAMED, **BEARER}, BEARER], [401, 401, 200, 200]),
    ],
)
def test_the_whole_server_keeps_its_figures_and_streamlits(
    server: FakeOpenAI, tmp_path: Path, token: str, sent: list[dict[str, str]], statuses: list[int]
) -> None:
    settings = {"TURNFOLD_HOSTS": "chat.example.com", "METRICS_TOKEN": token}
    with (
        served("app.py", tmp_path / "data", server.url, tmp_path / "log", **settings) as (process, port),
        httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        assert ask_health(port, process) == (200, "ok")
        for path, first_line in FIRST_LINES.items():
            answers = [client.get(path, headers=headers) for headers in sent]
            assert [answer.status_code for answer in answers] == statuses, path
            assert all(answer.text.startswith(first_line) for answer in answers if answer.status_code == 200)
