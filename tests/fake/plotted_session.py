"""One session that a story is played in: its service, what was said to it, and what must hold after each step."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages.utils import convert_to_openai_messages
from pydantic import SecretStr

from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.error import InputError
from graph.value.event import Event, TurnFinished
from graph.value.view import TurnOptions
from tests.fake.body import summaries
from tests.fake.chat import Chat, question
from tests.fake.oracle import Span, check_cover, check_request, check_sent, check_state, read_truth, state_ids
from tests.fake.plotted_project import PlottedProject
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat, ScriptedSummariser, scripted_models
from tests.fake.store import cut_off, lay_empty_database, leave_behind
from tests.fake.waiting_tool import tools_and_wait

SESSION = "session-1"


class PlottedSession:
    """One session of a service that can crash, or its newest fork."""

    def __init__(self, folder: Path, url: SecretStr | None = None, *, words: str = "", **settings: object) -> None:
        self._fold_worker = folder
        self._words = words
        self._project = PlottedProject(folder)
        self._changes = {"project_roots": (folder,), **settings}
        self._stack = ExitStack()
        self._opened = 0
        self.chat: Chat
        self._session_id = SESSION
        self.model = self._new_model()
        self.summariser = ScriptedSummariser()
        self.turn_count = 0
        self.has_missed_folds = False
        self._checked_inputs = 0
        self._covered_turns = 0
        self._has_crashed = False
        self._may_lag = False
        self._started = 0
        self._resets: list[tuple[int, int]] = []  # the turn behind which, and `_begun` before
        self._strategy = str(settings.get("context_strategy", "interval"))
        # Only then each block is covered as soon as it's due, and what was covered stays so.
        self._is_plain = self._strategy == "interval" and "model_window_tokens" not in settings
        self._url = url
        if url is None:
            lay_empty_database(folder / "data-0")
        self._open(folder / "data-0")

    def _new_model(self) -> ScriptedChat:
        return ScriptedChat()

    def close(self) -> None:
        self._stack.close()

    def check(self) -> None:
        """Checks every input since the last check, what is shown, what is covered, and what graph state holds."""
        self.chat.wait_for_folds()
        if self.turn_count == 0:
            return
        inputs, turns, truth = self.model.inputs, self.chat.turns, read_truth(self.chat)
        for sent in inputs[self._checked_inputs :]:
            check_request(sent, turns[-1].user_text)
            self._project.check(sent, self.turn_count)
        check_cover(truth, self._started)
        check_state(self.chat)
        if len(inputs) > self._checked_inputs:
            window = self.settings.window_turns if self._strategy == "window" else None
            span = Span(self.turn_count, self._started, window, may_leave_out="model_window_tokens" in self._changes)
            check_sent(truth, inputs[-1], span)
        self.has_missed_folds = self.has_missed_folds or self.summariser.is_failing
        covered = [turn for turns in self.chat.covered for turn in turns]
        if self._is_plain:
            self._check_blocks(covered, is_new=len(inputs) > self._checked_inputs)
        assert [turn.number for turn in turns] == list(range(1, self.turn_count + 1))
        assert self.chat.view.turn_count == self.turn_count
        self._checked_inputs, self._covered_turns = len(inputs), len(covered)

    def check_end(self) -> None:
        """Checks what must hold once the story has gone on well for two turns."""
        running = "SELECT count(*) FROM turn WHERE status = 'running' AND session_id = ?"
        assert self.chat.rows(running, self._session_id) == [(0,)]
        if self._is_plain:
            assert sum(len(turns) for turns in self.chat.covered) == (self.turn_count - 1) // 3 * 3
        first = self.turn_count - self.settings.window_turns if self._strategy == "window" else 1
        truth = read_truth(self.chat)
        raw = [
            message_id
            for position, message_id, turn, *_ in truth.live
            if turn > self._started and turn >= first and not truth.is_covered(position)
        ]
        assert state_ids(self.settings, self._session_id) == raw

    def _check_blocks(self, covered: list[int], *, is_new: bool) -> None:
        """Under "interval" alone: blocks are covered from the first on, in time, and sent under their labels."""
        assert covered == list(range(1, len(covered) + 1))
        assert len(covered) >= self._covered_turns
        if not self.has_missed_folds and not self._may_lag:
            assert len(covered) == (self.turn_count - 1) // 3 * 3
        if is_new:
            sent = self.model.inputs[-1]
            labels = summaries({"messages": convert_to_openai_messages(sent)})
            assert labels == [(turns[0], turns[-1]) for turns in self.chat.covered]

    def _rows_of(self, session_id: str) -> list[object]:
        """All that the file holds of a session."""
        tables = (
            "session",
            "turn",
            "message",
            "record",
            "context_reset",
            "context_block",
            "model_call",
            "pin",
            "attempt",
        )
        return [self.chat.rows(f"SELECT * FROM {table} WHERE session_id = ?", session_id) for table in tables]  # noqa: S608  # names of our own

    def _die(self) -> None:
        self._opened += 1
        self._has_crashed = True
        folder = self._fold_worker / f"data-{self._opened}"
        if self._url is None:
            leave_behind(self.settings, folder)
        else:
            self._url = cut_off(self._url)
        self._open(folder)

    def _send(self, text: str) -> list[Event]:
        self._start(text)
        return self.chat.events()

    def _question(self) -> str:
        return question(self.turn_count + 1) + self._words

    def _start(self, text: str) -> None:
        self.turn_count += 1
        self._has_crashed = self._may_lag = False
        number = self.chat.service.turns.send(
            self._session_id, text, message_id=f"user-{self.turn_count}", options=self._options()
        )
        assert number == self.turn_count

    def _options(self) -> TurnOptions:
        return self._project.options(self.turn_count)

    def _finish(self, events: list[Event]) -> None:
        assert isinstance(events[-1], TurnFinished), events[-1]
        assert events[-1].turn == self.turn_count

    def _hang(self, text: str, rounds: int) -> None:
        """Starts a turn whose model says the text and then nothing more."""
        self.model.script(*[ScriptedAnswer(tool="get_current_time")] * rounds, ScriptedAnswer([text], ending="hang"))
        calls = len(self.model.inputs) + rounds + 1
        self._start(self._question())
        self.chat.wait_until(lambda: len(self.model.inputs) == calls)
        if text.strip():  # blanks alone may stand before thoughts
            self.chat.wait_until_live(lambda live: live.text == text)

    def _hang_in_tool(self, rounds: int) -> None:
        self.model.script(
            *[ScriptedAnswer(tool="get_current_time")] * rounds, ScriptedAnswer(["기다려 보겠습니다."], tool="wait")
        )
        self._start(self._question())
        self.chat.wait_until_live(
            lambda live: bool(live.steps) and (live.steps[-1].name, live.steps[-1].status) == ("wait", "running")
        )

    def _run_again(self, action: Any) -> None:  # noqa: ANN401  # a method of Chat
        if self.turn_count == 0:
            return
        before = self.chat.last_turn
        is_right = before.status == "asking" or (before.status == "finished") == (action == self.chat.regenerate)
        if is_right:
            self._finish(action())
            self._begin_last_again()
            assert self.chat.last_turn.attempt > before.attempt
            return
        with pytest.raises(InputError):
            action()

    def _begin_last_again(self) -> None:
        self._started = min(self._started, self.turn_count - 1)
        self._resets = [(turn, started) for turn, started in self._resets if turn < self.turn_count]
        self._has_crashed = self._may_lag = False
        # In a fork, the block of the turn that is run again may have been covered.
        self._covered_turns = min(self._covered_turns, (self.turn_count - 1) // 3 * 3)

    def _open(self, folder: Path) -> None:
        values: dict[str, Any] = {"turnfold_data_dir": folder, "model_attempts": 1, "fold_wait_seconds": 5}
        values["chat_database_url"] = self._url
        self.settings = Settings(_env_file=None, **{**values, **self._changes})  # type: ignore[call-arg]  # the base class's own argument
        self._stack.close()
        self.chat = Chat(self._stack.enter_context(self._served()), self._session_id)

    def _served(self) -> AbstractContextManager[ChatService]:
        models = scripted_models(self.model, self.summariser)
        return open_service(self.settings, models=models, tools=tools_and_wait, context=self._project.source)
