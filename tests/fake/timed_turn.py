"""Has turns with texts of 200,000 characters, and tells what they cost; a process of its own, which may hang in one.

    python -m tests.fake.timed_turn http://127.0.0.1:8000/v1 /tmp/folder message

Prints as JSON lines what each turn of an ordinary session took, "" before it, then the name of each text before it is
sent and the CPU seconds of the four turns of its session: with the text as the user's message or, with `answer`, as the
model's answer, and three ordinary ones, of which the second folds them all. Over `_DEADLINE` seconds for a text the
system ends the process.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Final

from graph.service import ChatService
from graph.value.event import TurnFinished
from tests.fake.chat import Chat, question
from tests.fake.long_text import long_texts
from tests.fake.open_chat import chat_opener, settings_maker

ANSWER_TO: Final = "Answer with "
"""Begins a question that is answered with the text of this name."""
_TURNS: Final = 4
_DEADLINE: Final = 15
# The limit may count a long process's time a little otherwise than its own clock does.
_CLOCKS_DIFFER: Final = 1.2
# One that took longer is tried once more, as another process may have held this one up.
_SECONDS: Final = 0.8


def seconds_of(service: ChatService, first: str) -> list[float]:
    """Returns the CPU seconds of each turn of a new session, with the folds behind it."""
    chat = Chat(service)
    seconds: list[float] = []
    for said in (first, *map(question, range(2, _TURNS + 1))):
        began = time.process_time()
        ending = chat.say(said)[-1]
        chat.wait_for_folds()
        seconds.append(round(time.process_time() - began, 3))
        assert isinstance(ending, TurnFinished), ending
    assert chat.rows("SELECT id FROM record WHERE session_id = ?", chat.session_id)  # a fold was tried
    return seconds


def main() -> None:
    """Has the turns; arguments: the endpoint, a folder, whose text it is, and names of texts instead of all."""
    url, folder, whose, *names = sys.argv[1:]
    with chat_opener(settings_maker(Path(folder), url)) as open_chat:
        service = open_chat(model_window_tokens=4_000_000).service
        seconds_of(service, question(1))
        _tell(["", seconds_of(service, question(1))])
        texts = long_texts()
        for name in names or texts:
            _tell(name)
            allowed = math.ceil(time.process_time() * _CLOCKS_DIFFER) + _DEADLINE
            resource.setrlimit(resource.RLIMIT_CPU, (allowed, resource.RLIM_INFINITY))
            first = texts[name] if whose == "message" else f"{ANSWER_TO}{name}"
            seconds = seconds_of(service, first)
            if max(seconds) > _SECONDS:
                seconds = list(map(min, seconds, seconds_of(service, first)))
            _tell([name, seconds])


def _tell(said: object) -> None:
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
