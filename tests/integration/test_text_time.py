"""Turns of 200,000 characters of anything cost a second or so, and the turns behind them what others do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake.long_text import long_texts
from tests.fake.openai_reply import Body, Reply, text
from tests.fake.openai_responder import answer_body, asked_in, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.timed_turn import ANSWER_TO
from tests.fake.yardstick import cpu_seconds

# Of the yardstick, of which eight were a second on the machine that this was written on.
MOST_YARDS = 12
# An ordinary turn reads none of 200,000 characters, which the next one sends once more.
MOST_TIMES = 10


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("whose", ["message", "answer"])
def test_a_text_of_200000_characters_costs_a_second_or_so(server: FakeOpenAI, tmp_path: Path, whose: str) -> None:
    texts = long_texts()

    def respond(body: Body) -> Reply:
        asked = asked_in(body)
        if kind_of(body) != "chat":
            return answer_body(body)
        if asked.startswith(ANSWER_TO):
            answer = texts[asked.removeprefix(ANSWER_TO)]
            return text(*(answer[start : start + 40_000] for start in range(0, len(answer), 40_000)))
        return text("알겠습니다. 그렇게 적어 두었습니다. 다음 질문을 해 주세요.")

    server.respond_with(respond)
    # Every other text is the user's, the others are the model's.
    names = list(texts)[whose == "answer" :: 2]
    command = [sys.executable, "-m", "tests.fake.timed_turn", server.url, str(tmp_path), whose, *names]
    child = subprocess.run(command, capture_output=True, text=True, check=False)
    *_, last = lines = [json.loads(line) for line in child.stdout.splitlines()]
    assert child.returncode == 0, (last, child.stderr)
    (_, ordinary), *measured = (line for line in lines if isinstance(line, list))
    usual, most = max(ordinary), MOST_YARDS * cpu_seconds()
    assert [(name, seconds) for name, seconds in measured if max(seconds) > usual + most] == []
    assert [(name, seconds) for name, seconds in measured if seconds[1] > usual * MOST_TIMES] == []
