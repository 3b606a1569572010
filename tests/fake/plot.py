"""Plays what may happen to one session, step by step, and checks after each what must hold; knows no network."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.messages.utils import convert_to_openai_messages
from langchain_core.tools import BaseTool, StructuredTool

from graph.error import InputError
from graph.event import Event, TurnFailed, TurnFinished, TurnStopped
from graph.service import open_service
from graph.settings import Settings
from graph.store.checkpoint import open_checkpointer
from graph.tool.registry import ToolContext, build_tools
from tests.fake.body import faults, summaries
from tests.fake.chat import Chat, question
from tests.fake.scripted_model import Said, ScriptedChat, ScriptedSummariser, scripted_models

SESSION = "session-1"
_LIVE = """
    SELECT message.message_id FROM message JOIN turn
    ON turn.session_id = message.session_id AND turn.number = message.turn
    WHERE (message.attempt = turn.attempt OR message.role = 'human') AND message.position > (
        SELECT coalesce(max(to_position), 0) FROM record
        WHERE status = 'COMPLETED' AND adopted_at IS NOT NULL AND superseded_by IS NULL
    )
    ORDER BY message.position
"""


class Plot:
    """One session of a service that can crash; each public method but `check` is a step of a story."""

    def __init__(self, folder: Path, *, words: str = "", **settings: object) -> None:
        self._folder = folder
        self._words = words
        self._changes = settings
        self._stack = ExitStack()
        self._opened = 0
        self.model = ScriptedChat()
        self.summariser = ScriptedSummariser()
        self.turn_count = 0
        self.has_missed_folds = False
        self._checked_inputs = 0
        self._covered_turns = 0
        self._has_crashed = False
        self._may_lag = False
        self._open(folder / "data-0")

    def close(self) -> None:
        self._stack.close()

    def ask(self) -> None:
        self._finish(self._send(self._question()))

    def thank(self) -> None:
        # Nothing was prepared behind a turn that its server didn't survive, and small talk waits for no fold.
        is_behind_crash = self._has_crashed
        self._finish(self._send("고마워요!"))
        self._may_lag = is_behind_crash

    def use_tools(self, rounds: int) -> None:
        self.model.script(*[Said("", tool="get_current_time")] * rounds)
        self.ask()

    def fail(self, text: str, rounds: int) -> None:
        """The model fails after some tool rounds and that much of an answer."""
        self.model.script(*[Said("", tool="get_current_time")] * rounds, Said(text, ending="fail"))
        assert isinstance(self._send(self._question())[-1], TurnFailed)

    def stop(self, text: str, rounds: int) -> None:
        """The user stops the turn after some tool rounds and that much of an answer."""
        self._hang(text, rounds)
        self.chat.service.stop(SESSION)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def crash(self, text: str, rounds: int) -> None:
        """The server dies in the middle of a turn; another one goes on with what the files then held."""
        self._hang(text, rounds)
        self._die()

    def restart(self) -> None:
        self._stack.close()
        self._open(self.settings.turnfold_data_dir)

    def lose_checkpoints(self) -> None:
        self._stack.close()
        for file in self.settings.turnfold_data_dir.glob("checkpoint.db*"):
            file.unlink()
        self._open(self.settings.turnfold_data_dir)

    def stop_in_tool(self, rounds: int) -> None:
        """The user stops the turn while a tool runs."""
        self._hang_in_tool(rounds)
        self.chat.service.stop(SESSION)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def crash_in_tool(self, rounds: int) -> None:
        """The server dies while a tool runs."""
        self._hang_in_tool(rounds)
        self._die()

    def regenerate(self) -> None:
        self._run_again(self.chat.regenerate)

    def retry(self) -> None:
        self._run_again(self.chat.retry)

    def set_rate(self, rate: float) -> None:
        if self.turn_count:
            self.chat.service.configure(SESSION, compression_rate=rate)

    def break_folds(self) -> None:
        self.summariser.is_failing = True

    def mend_folds(self) -> None:
        self.summariser.is_failing = False

    def check(self) -> None:
        """Checks every input since the last check, what is shown, what is covered, and what graph state holds."""
        self.chat.wait_for_folds()
        if self.turn_count == 0:
            return
        inputs = self.model.inputs
        for sent in inputs[self._checked_inputs :]:
            _check_input(sent)
        covered = [turn for turns in self.chat.covered for turn in turns]
        assert covered == list(range(1, len(covered) + 1))
        assert len(covered) >= self._covered_turns
        self.has_missed_folds = self.has_missed_folds or self.summariser.is_failing
        if not self.has_missed_folds and not self._may_lag:
            assert len(covered) == (self.turn_count - 1) // 3 * 3
        if len(inputs) > self._checked_inputs:
            labels = summaries(_as_body(inputs[-1]))
            assert labels == [(turns[0], turns[-1]) for turns in self.chat.covered]
        assert [turn.number for turn in self.chat.turns] == list(range(1, self.turn_count + 1))
        assert self.chat.view.turn_count == self.turn_count
        self._checked_inputs, self._covered_turns = len(inputs), len(covered)

    def check_state(self) -> None:
        """Checks that graph state holds just the live messages that no record covers (not so behind a crash)."""
        if self.turn_count:
            assert _state_ids(self.settings) == [message_id for (message_id,) in self.chat.rows(_LIVE)]

    def _die(self) -> None:
        self._opened += 1
        self._has_crashed = True
        folder = self._folder / f"data-{self._opened}"
        folder.mkdir()
        for file in (self.settings.database_path, self.settings.checkpoint_path):
            with closing(sqlite3.connect(file)) as living, closing(sqlite3.connect(folder / file.name)) as dead:
                living.backup(dead)
        self._stack.close()
        # The lease of a process that is gone is free; the process of this test isn't gone.
        with closing(sqlite3.connect(folder / "turnfold.db")) as dead, dead:
            dead.execute("UPDATE lease SET expires_at = NULL")
        self._open(folder)

    def _send(self, text: str) -> list[Event]:
        self._start(text)
        return self.chat.events()

    def _question(self) -> str:
        return question(self.turn_count + 1) + self._words

    def _start(self, text: str) -> None:
        self.turn_count += 1
        self._has_crashed = self._may_lag = False
        number = self.chat.service.send(SESSION, text, message_id=f"user-{self.turn_count}")
        assert number == self.turn_count

    def _finish(self, events: list[Event]) -> None:
        assert isinstance(events[-1], TurnFinished), events[-1]
        assert events[-1].turn == self.turn_count

    def _hang(self, text: str, rounds: int) -> None:
        """Starts a turn whose model says the text and then nothing more."""
        self.model.script(*[Said("", tool="get_current_time")] * rounds, Said(text, ending="hang"))
        calls = len(self.model.inputs) + rounds + 1
        self._start(self._question())
        self.chat.wait_until(lambda: len(self.model.inputs) == calls)
        if text:
            self.chat.wait_until(lambda: (live := self.chat.service.live(SESSION)) is not None and live.text == text)

    def _hang_in_tool(self, rounds: int) -> None:
        self.model.script(*[Said("", tool="get_current_time")] * rounds, Said("기다려 보겠습니다.", tool="wait"))
        self._start(self._question())
        self.chat.wait_until(
            lambda: (
                (live := self.chat.service.live(SESSION)) is not None
                and bool(live.steps)
                and (live.steps[-1].name, live.steps[-1].status) == ("wait", "running")
            )
        )

    def _run_again(self, action: Any) -> None:  # noqa: ANN401  # a method of Chat
        if self.turn_count == 0:
            return
        before = self.chat.last_turn
        is_right = (before.status == "finished") == (action == self.chat.regenerate)
        if is_right:
            self._finish(action())
            self._has_crashed = self._may_lag = False
            assert self.chat.last_turn.attempt == before.attempt + 1
            return
        try:
            action()
        except InputError:
            return
        raise AssertionError

    def _open(self, folder: Path) -> None:
        values: dict[str, Any] = {"turnfold_data_dir": folder, "model_attempts": 1, "fold_wait_seconds": 5}
        self.settings = Settings(_env_file=None, **{**values, **self._changes})  # type: ignore[call-arg]  # the base class's own argument
        self._stack = ExitStack()
        service = self._stack.enter_context(
            open_service(self.settings, models=scripted_models(self.model, self.summariser), tools=_tools)
        )
        self.chat = Chat(service, SESSION)


def _tools(context: ToolContext) -> list[BaseTool]:
    """The product's tools and one that takes as long as the turn."""

    def wait() -> str:
        context.stop.wait(60)
        return "끝"

    return [*build_tools(context), StructuredTool.from_function(wait, name="wait", description="Waits.")]


def _as_body(sent: list[AnyMessage]) -> dict[str, Any]:
    return {"messages": convert_to_openai_messages(sent)}


def _check_input(sent: list[AnyMessage]) -> None:
    """An input must be one that a provider takes, and have each turn up to the open one once."""
    body = _as_body(sent)
    assert faults(body["messages"]) == []
    covered = [turn for first, last in summaries(body) for turn in range(first, last + 1)]
    raw = [int(str(message.id).removeprefix("user-")) for message in sent if isinstance(message, HumanMessage)]
    assert [*covered, *raw] == list(range(1, len(covered) + len(raw) + 1))


def _state_ids(settings: Settings) -> list[str]:
    checkpointer = open_checkpointer(settings.checkpoint_path, busy_timeout_seconds=30)
    with closing(checkpointer):
        kept = checkpointer.get_tuple({"configurable": {"thread_id": SESSION}})
    return [] if kept is None else [str(message.id) for message in kept.checkpoint["channel_values"]["messages"]]
