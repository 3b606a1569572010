"""A server process that a test kills in the middle of a turn.

python -m tests.fake.killed_server <data dir> <base url> <session id> <message> [<file>]

Into the file goes a line for each piece of text that was shown: when (monotonic clock, nanoseconds), and the piece.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from graph.service import open_service
from graph.value.event import TokenDelta
from tests.fake.open_chat import settings_maker


def main(data_dir: str, base_url: str, session_id: str, message: str, shown: str = "/dev/null") -> None:
    """Sends one message and follows its turn until the process is killed."""
    settings = settings_maker(Path(data_dir), base_url)()
    with open_service(settings) as service, Path(shown).open("a", encoding="utf-8", buffering=1) as lines:
        service.turns.send(session_id, message)
        for event in service.turns.follow(session_id):
            if isinstance(event, TokenDelta):
                lines.write(json.dumps([time.monotonic_ns(), event.text]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
