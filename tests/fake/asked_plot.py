"""A played session whose model calls tools of MCP servers, which wait for its user's word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from graph.service import ChatService, open_service
from graph.value.event import Event, ToolAsked, TurnFailed, TurnFinished, TurnStopped
from graph.value.view import TurnOptions, Word
from tests.fake.mcp_servers import ERASE, LOOK, WRITE, ScriptedServers, until_stopped
from tests.fake.plot import Plot
from tests.fake.scripted_model import ScriptedAnswer, scripted_models
from tests.fake.waiting_tool import tools_and_wait

TOOLS: Final = {tool.name: tool for tool in (LOOK, WRITE, ERASE)}


class AskedPlot(Plot):
    """One session with all three tools chosen; each public method but `check` is a step."""

    def __init__(self, folder: Path, url: SecretStr | None = None, *, words: str = "", **settings: object) -> None:
        self.servers = ScriptedServers()
        self._allowed: set[str] = set()  # for all of the chat
        self._granted: set[str] = set()  # the calls that may be made, by their number
        self._call_count = 0
        super().__init__(folder, url, words=words, **settings)

    def check(self) -> None:
        """Checks that each call was made once, if it may be made, and that what waits is what the model called last."""
        super().check()
        made = [str(arguments["text"]) for _, arguments in self.servers.calls]
        assert len(made) == len(set(made)), made
        assert set(made) <= self._granted, (made, self._granted)
        if self.turn_count:
            turn = self.chat.last_turn
            assert (turn.status == "asking") == bool(turn.pending)
            assert self.chat.service.mcp.pending(self._session_id) == turn.pending
            assert [item.is_asking for item in self.chat.service.sessions.list(last=1)] == [bool(turn.pending)]
            assert not {call.call_id for call in turn.pending} & {step.call_id for step in turn.steps}

    def want(self, *names: str) -> None:
        """The model calls these tools; it waits for the user's word on those that ask."""
        self._script_calls(names)
        self._end(names, self._send(self._question()))

    def answer(self, words: Sequence[Word], *again: str) -> None:
        """The user gives his word on all that waits; the model then calls these tools, or answers."""
        if self._give(words, again):
            self._end(again, self.chat.events())

    def stop_asking(self) -> None:
        if self._is_asking:
            self.chat.service.turns.stop(self._session_id)
            assert self.chat.last_turn.status == "stopped"

    def die(self) -> None:
        """The server dies, whatever it waits for; another one goes on with what the files then held."""
        if self.turn_count:
            self._die()

    def die_in_call(self, words: Sequence[Word]) -> None:
        """The server dies while a tool runs that the user has allowed."""
        if self._hang_in_call(words):
            self._die()
            assert self.chat.last_turn.status == "failed"
        self.servers.results.clear()

    def stop_in_call(self, words: Sequence[Word]) -> None:
        if self._hang_in_call(words):
            self.chat.service.turns.stop(self._session_id)
            assert isinstance(self.chat.events()[-1], TurnStopped)
        self.servers.results.clear()

    def fail_behind(self, words: Sequence[Word]) -> None:
        """The model's next call fails behind the tools that the user has allowed."""
        if "no" not in words and self._is_asking:
            self.model.script(ScriptedAnswer(ending="fail"))
            self._give(words, ())
            assert isinstance(self.chat.events()[-1], TurnFailed)

    def repeat(self) -> None:
        """The last turn is run again, and a model that doesn't heed what it is told makes the same calls again.

        What an earlier attempt may have changed asks the user, whatever he has allowed, and he says no.
        """
        turn = self.chat.last_turn if self.turn_count else None
        if turn is None or turn.status not in {"finished", "failed", "stopped"}:
            return
        made = [arguments["text"] for name, arguments in self.servers.calls if name != LOOK.name]
        calls = [
            (step.name, step.arguments)
            for step in turn.steps
            if step.server and step.name != LOOK.offered and json.loads(step.arguments).get("text") in made
        ]
        if not calls:
            return
        (tool, arguments), *beside = calls
        self.model.script(ScriptedAnswer(["다시 해 보겠습니다."], tool=tool, arguments=arguments, beside=beside))
        last = (self.chat.regenerate if turn.status == "finished" else self.chat.retry)()[-1]
        assert isinstance(last, ToolAsked), last
        assert [call.is_repeated for call in last.calls] == [True] * len(calls)
        self._give(["no"], ())
        assert isinstance(self.chat.events()[-1], TurnFinished)
        self._begin_last_again()

    @property
    def _is_asking(self) -> bool:
        return self.turn_count > 0 and bool(self.chat.service.mcp.pending(self._session_id))

    def _hang_in_call(self, words: Sequence[Word]) -> bool:
        """Gives the word, and returns whether a tool runs now, which doesn't end by itself."""
        if "no" in words or not self._is_asking:
            return False
        self.servers.results = dict.fromkeys(TOOLS, until_stopped)
        calls = len(self.servers.calls)
        self._give(words, ())
        self.chat.wait_until(lambda: len(self.servers.calls) > calls)
        return True

    def _give(self, words: Sequence[Word], again: Sequence[str]) -> bool:
        pending = self.chat.service.mcp.pending(self._session_id) if self.turn_count else ()
        if not pending:
            return False
        given: dict[str, Word] = {}
        for index, call in enumerate(pending):
            given[call.call_id] = word = words[index % len(words)]
            if word != "no":
                self._granted.add(json.loads(call.arguments)["text"])
            if word == "always":
                self._allowed.add(call.tool)
        if again:
            self._script_calls(again)
        assert self.chat.service.mcp.answer(self._session_id, given) == self.turn_count
        return True

    def _script_calls(self, names: Sequence[str]) -> None:
        calls: list[tuple[str, str]] = []
        for name in names:
            self._call_count += 1
            calls.append((TOOLS[name].offered, json.dumps({"text": str(self._call_count)})))
            if name in self._allowed | {LOOK.name}:
                self._granted.add(str(self._call_count))
        (tool, arguments), *beside = calls
        self.model.script(ScriptedAnswer(["도구를 써 보겠습니다."], tool=tool, arguments=arguments, beside=beside))

    def _end(self, names: Sequence[str], events: Sequence[Event]) -> None:
        asking = [name for name in names if name not in self._allowed | {LOOK.name}]
        last = events[-1]
        if not asking:
            assert isinstance(last, TurnFinished), last
            return
        assert isinstance(last, ToolAsked), last
        assert [call.tool for call in last.calls] == asking

    def _options(self) -> TurnOptions:
        offered = tuple(tool.offered for tool in TOOLS.values()) if self.turn_count == 1 else None
        return replace(super()._options(), mcp_tools=offered)

    def _served(self) -> AbstractContextManager[ChatService]:
        models, source = scripted_models(self.model, self.summariser), self._project.source
        return open_service(
            self.settings, models=models, tools=tools_and_wait, context=source, mcp=lambda _: self.servers
        )
