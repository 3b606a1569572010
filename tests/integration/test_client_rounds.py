"""Plays chats in which a program runs tools of its own, over servers that end and are killed, and checks each step."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from graph.value.client import ClientMessage
from graph.value.error import InputError
from graph.value.event import ActionRequired, Event, TurnFinished
from tests.fake.body import faults
from tests.fake.chat import Chat, question
from tests.fake.drawn import at_most
from tests.fake.open_chat import OpenChat, chat_opener, settings_maker
from tests.fake.openai_reply import Reply, ScriptedCall, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.store import leave_behind

OPTIONS: Final = asked_by(tools=(tool("look"),), system="Be brief.")
SESSION: Final = "rounds"


class Rounds:
    """One session; `waiting` is what its last turn waits for, as (call id, result)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._server = self._stack.enter_context(FakeOpenAI())
        self._lives = 0
        self._call_count = 0
        self._statuses: list[str] = []
        self.waiting: dict[str, str] = {}
        self.chat = self._open()

    def close(self) -> None:
        self._stack.close()

    def ask(self, theirs: int, ours: int) -> None:
        """The program's user says something; the answer calls so many tools."""
        if self.waiting:
            self._statuses[-1] = "stopped"
        asked = self._script(theirs, ours)
        self._statuses.append("")
        self._take(self.chat.say(question(len(self._statuses)), options=OPTIONS), asked)

    def ask_on_page(self) -> None:
        if self.waiting:
            self._statuses[-1] = "stopped"
        self._statuses.append("")
        self._take(self.chat.say(question(len(self._statuses))), {})

    def answer(self, theirs: int, ours: int) -> None:
        """The program answers all calls, the last one first; the next answer calls so many tools."""
        if not self.waiting:
            return
        asked = self._script(theirs, ours)
        self._resume()
        self._take(self.chat.events(), asked)

    def answer_badly(self, kind: str) -> None:
        """A refused answer changes nothing."""
        given = list(self.waiting.items())
        sent = {"none": [], "one too few": given[1:], "another": [("call-x", "")]}[kind]
        self.chat.wait_for_folds()  # of the turn before
        before = self._rows()
        with pytest.raises(InputError):
            self._send(sent)
        assert self._rows() == before

    def die_while_answering(self) -> None:
        """The server is killed behind the program's answers; another one is sent them again."""
        if not self.waiting:
            return
        self._server.script(hang("아직 "))
        self._resume()
        self.chat.wait_until_live(lambda live: "아직" in live.text)
        self.kill()
        self._resume()
        self._take(self.chat.events(), {})

    def kill(self) -> None:
        """Goes on with the files as they are now; the server that has them ends later."""
        self._lives += 1
        leave_behind(self.chat.service.settings, self._folder / str(self._lives))
        self.chat = self._open()

    def reopen(self) -> None:
        self.chat.close()
        self.chat = self._open()

    def lose_checkpoints(self) -> None:
        self.chat.close()
        for file in (self._folder / str(self._lives)).glob("checkpoint.db*"):
            file.unlink()
        self.chat = self._open()

    def stop(self) -> None:
        self.chat.service.turns.stop(SESSION)
        if self.waiting:
            self._statuses[-1] = "stopped"
            self.waiting = {}

    def check(self) -> None:
        if not self._statuses:
            return
        turns = self.chat.turns
        assert [turn.status for turn in turns] == self._statuses
        assert {turn.attempt for turn in turns} == {1}
        pending = [step.call_id for step in turns[-1].steps if step.status == "running"]
        assert [f"결과 {call_id}" for call_id in pending] == [*self.waiting.values()]
        assert all(not any(step.status == "running" for step in turn.steps) for turn in turns[:-1])
        results = self.chat.rows("SELECT content FROM message WHERE role = 'tool'")
        ids = [json.loads(content)["tool_call_id"] for (content,) in results]
        assert len(ids) == len(set(ids))
        for body in self._server.bodies("chat"):
            assert faults(body["messages"]) == []

    def _open(self) -> Chat:
        folder = self._folder / str(self._lives)
        opener: OpenChat = self._stack.enter_context(chat_opener(settings_maker(folder, self._server.url)))
        return opener(SESSION)

    def _script(self, theirs: int, ours: int) -> dict[str, str]:
        """Scripts the next answers, and returns the calls that the program will have to answer."""
        mine = [ScriptedCall("get_current_time", "{}", self._call_id()) for _ in range(ours)]
        their_calls = [ScriptedCall("look", '{"path": "a.py"}', self._call_id()) for _ in range(theirs)]
        replies: list[Reply] = [tools(*mine, *their_calls, answer="보겠습니다.")] if mine or their_calls else []
        self._server.script(*replies, *([] if theirs else [text("다 봤습니다.")]))
        return {str(call.id): f"결과 {call.id}" for call in their_calls}

    def _call_id(self) -> str:
        self._call_count += 1
        return f"call-{self._call_count}"

    def _take(self, events: list[Event], asked: dict[str, str]) -> None:
        last = events[-1]
        if asked:
            assert isinstance(last, ActionRequired), events
            assert len(last.calls) == len(asked)
            asked = {call.id: text for call, text in zip(last.calls, asked.values(), strict=True)}
        else:
            assert isinstance(last, TurnFinished), events
        self._statuses[-1] = "requires_action" if asked else "finished"
        self.waiting = asked

    def _resume(self) -> None:
        assert self._send(list(reversed(self.waiting.items()))) == len(self._statuses)

    def _send(self, given: list[tuple[str, str]]) -> int:
        answers = [ClientMessage("tool", result, call_id=call_id) for call_id, result in given]
        return self.chat.service.turns.resume(SESSION, answers, options=OPTIONS)

    def _rows(self) -> list[Any]:
        return [self.chat.rows(f"SELECT * FROM {table}") for table in ("turn", "message", "record")]  # noqa: S608  # names of our own


Step = tuple[Any, ...]
CALLS = st.integers(0, 2)
STEPS = st.one_of(
    st.tuples(st.just("ask"), st.integers(1, 3), CALLS),
    st.tuples(st.just("answer"), CALLS, CALLS),
    st.tuples(st.just("answer"), CALLS, CALLS),
    st.tuples(st.just("answer_badly"), st.sampled_from(["none", "one too few", "another"])),
    st.just(("ask_on_page",)),
    st.just(("die_while_answering",)),
    st.just(("kill",)),
    st.just(("reopen",)),
    st.just(("lose_checkpoints",)),
    st.just(("stop",)),
)
EVERYTHING: list[Step] = [
    ("ask", 2, 1),
    ("kill",),
    ("answer_badly", "one too few"),
    ("answer", 1, 2),
    ("lose_checkpoints",),
    ("answer", 1, 0),
    ("die_while_answering",),
    ("ask", 1, 0),
    ("reopen",),
    ("stop",),
    ("answer_badly", "another"),
    ("ask", 1, 1),
    ("ask_on_page",),
]


def play(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(Path(folder))
        try:
            rounds.ask_on_page()
            for name, *arguments in steps:
                getattr(rounds, name)(*arguments)
                rounds.check()
            rounds.ask(0, 1)
            rounds.check()
        finally:
            rounds.close()


def test_rounds_of_a_program_lose_and_repeat_nothing_whatever_happens_between_them() -> None:
    play(EVERYTHING)


@pytest.mark.slow
@settings(
    max_examples=at_most(30),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(STEPS, min_size=3, max_size=9))
def test_drawn_rounds_of_a_program_lose_and_repeat_nothing(steps: list[Step]) -> None:
    play(steps)
