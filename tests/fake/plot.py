"""Plays what may happen to one session, step by step, and checks after each what must hold."""

from __future__ import annotations

from contextlib import nullcontext, suppress

import pytest

from graph.value.error import BusyError, InputError
from graph.value.event import TurnFailed, TurnStopped
from graph.value.view import TurnOptions
from tests.fake.chat import Chat
from tests.fake.rows import change_rows
from tests.fake.scripted_model import ScriptedAnswer
from tests.fake.steered_session import SteeredSession
from tests.fake.titled import wait_for_title

SESSION = "session-1"


class Plot(SteeredSession):
    """What may happen to the session; each method is a step."""

    def ask(self) -> None:
        self._finish(self._send(self._question()))

    def thank(self) -> None:
        # Nothing was prepared behind a turn that its server didn't survive, and small talk waits for no fold.
        is_behind_crash = self._has_crashed
        self._finish(self._send("고마워요!"))
        self._may_lag = is_behind_crash

    def use_tools(self, rounds: int) -> None:
        self.model.script(*[ScriptedAnswer(tool="get_current_time")] * rounds)
        self.ask()

    def fail(self, text: str, rounds: int) -> None:
        """The model fails after some tool rounds and that much of an answer."""
        self.model.script(*[ScriptedAnswer(tool="get_current_time")] * rounds, ScriptedAnswer([text], ending="fail"))
        assert isinstance(self._send(self._question())[-1], TurnFailed)

    def stop(self, text: str, rounds: int) -> None:
        """The user stops the turn after some tool rounds and that much of an answer."""
        self._hang(text, rounds)
        self.chat.service.turns.stop(self._session_id)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def crash(self, text: str, rounds: int) -> None:
        """The server dies in the middle of a turn; another one goes on with what the files then held."""
        self._hang(text, rounds)
        self._die()

    def restart(self) -> None:
        self._open(self.settings.turnfold_data_dir)

    def lose_checkpoints(self) -> None:
        self._stack.close()
        if self._url is not None:
            change_rows(self.settings, "TRUNCATE checkpoints, checkpoint_blobs, checkpoint_writes")
        for file in self.settings.turnfold_data_dir.glob("checkpoint.db*"):
            file.unlink()
        self._open(self.settings.turnfold_data_dir)

    def stop_in_tool(self, rounds: int) -> None:
        """The user stops the turn while a tool runs."""
        self._hang_in_tool(rounds)
        self.chat.service.turns.stop(self._session_id)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def crash_in_tool(self, rounds: int) -> None:
        """The server dies while a tool runs."""
        self._hang_in_tool(rounds)
        self._die()

    def regenerate(self) -> None:
        self._run_again(self.chat.regenerate)

    def choose(self, index: int) -> None:
        """The user has another answer of one of the turns count that have several."""
        turns = [turn for turn in self.chat.turns if turn.attempts] if self.turn_count else []
        if turns:
            turn = turns[index % len(turns)]
            other = next(attempt for attempt in turn.attempts if attempt != turn.attempt)
            self.chat.service.sessions.choose_attempt(self._session_id, turn.number, other)
            self._covered_turns, self._may_lag = min(self._covered_turns, (turn.number - 1) // 3 * 3), True

    def retry(self) -> None:
        self._run_again(self.chat.retry)

    def set_rate(self, rate: float) -> None:
        if self.turn_count:
            self.chat.service.sessions.configure(self._session_id, compression_rate=rate)

    def switch(self, strategy: str) -> None:
        if self.turn_count:
            self.chat.service.sessions.configure(self._session_id, strategy=strategy)
            self._strategy, self._is_plain = strategy, False

    def reset(self) -> None:
        if self.turn_count:
            self.chat.service.folds.reset(self._session_id)
            if self._started < self.turn_count:
                self._resets.append((self.turn_count, self._started))
            self._started, self._is_plain = self.turn_count, False

    def undo_reset(self) -> None:
        """The user undoes the last reset, which is refused once a turn was run."""
        if self.turn_count == 0:
            return
        is_last = bool(self._resets) and self._resets[-1][0] == self.turn_count
        assert self.chat.service.turns.transcript(self._session_id).can_undo_reset == is_last
        with nullcontext() if is_last else pytest.raises(InputError):
            self.chat.service.folds.undo_reset(self._session_id)
        if is_last:
            _, self._started = self._resets.pop()

    def compact(self) -> None:
        if self.turn_count:
            with suppress(InputError):  # too few messages, or the strategy sends no summaries
                self.chat.service.folds.compact(self._session_id)
                self._is_plain = False

    def restore(self, index: int) -> None:
        """The user undoes one of the compactions that the context stands on, however many turns ago it was made."""
        listed = self.chat.service.folds.compactions(self._session_id) if self.turn_count else ()
        if listed:
            self.chat.service.folds.restore(self._session_id, listed[index % len(listed)].id)

    def fork(self, turns_back: int) -> None:
        """The user goes on from an earlier turn in a session of its own; what it was forked from stays as it was."""
        origin, after = self._session_id, max(0, self.turn_count - turns_back)
        if self.turn_count == 0:
            return
        wait_for_title(self.chat)  # which is written behind the turn
        before, resets = self._rows_of(origin), self.chat.service.turns.transcript(origin).reset_after
        self._session_id = self.chat.service.turns.fork(origin, after_turn=after)
        assert self._rows_of(origin) == before
        self.chat = Chat(self.chat.service, self._session_id)
        self.turn_count, self._covered_turns = after, 0
        self._may_lag = True  # a block may be covered already whose next turn isn't asked yet
        self._started = max((turn for turn in resets if turn <= after), default=0)
        self._resets = [(turn, started) for turn, started in self._resets if turn <= after]
        self._pins, self._undone = frozenset(turn for turn in self._pins if turn <= after), ()

    def refuse(self) -> None:
        """A second tab sends while an answer is written, with other settings; then the user stops the answer."""
        self._hang("", 0)
        before, rows = self.chat.view, self.chat.rows("SELECT count(*) FROM message")
        options = TurnOptions(compression_rate=0.45, strategy="window")
        with pytest.raises(BusyError):
            self.chat.service.turns.send(
                self._session_id, "두 번째 탭에서 보냅니다.", message_id="refused", options=options
            )
        after = self.chat.view
        assert (after.compression_rate, after.strategy) == (before.compression_rate, before.strategy)
        assert self.chat.rows("SELECT count(*) FROM message") == rows
        self.chat.service.turns.stop(self._session_id)
        assert isinstance(self.chat.events()[-1], TurnStopped)

    def elsewhere(self) -> None:
        """The next question goes through another server on the same files, while this one is open."""
        here = self.chat
        with self._served() as other:
            self.chat = Chat(other, self._session_id)
            self.ask()
            self.chat.wait_for_folds()
        self.chat = here

    def enter_project(self) -> None:
        self._project.enter(self.chat)

    def leave_project(self) -> None:
        self._project.leave(self.chat)

    def change_rules(self) -> None:
        self._project.change_rules()

    def break_folds(self) -> None:
        self.summariser.is_failing = True

    def mend_folds(self) -> None:
        self.summariser.is_failing = False
