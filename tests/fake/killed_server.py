"""A server process that a test kills in the middle of a turn; knows nothing of the test.

python -m tests.fake.killed_server <data dir> <base url> <session id> <message>
"""

from __future__ import annotations

import sys
from pathlib import Path

from graph.service import open_service
from graph.settings import Settings


def main(data_dir: str, base_url: str, session_id: str, message: str) -> None:
    """Sends one message and follows its turn until somebody kills the process."""
    settings = Settings(  # type: ignore[call-arg]  # the base class's own argument
        _env_file=None,
        openai_base_url=base_url,
        chat_model="scripted-model",
        turnfold_data_dir=Path(data_dir),
        model_window_tokens=100_000,
    )
    with open_service(settings) as service:
        service.send(session_id, message)
        for _ in service.follow(session_id):
            pass


if __name__ == "__main__":
    main(*sys.argv[1:])
