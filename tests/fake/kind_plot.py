"""Plays a session against servers of many kinds, over real sockets, and checks that no thought goes anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import BaseMessage
from langchain_core.messages.utils import convert_to_openai_messages
from pydantic import SecretStr

from graph.model.caller import ModelCaller
from graph.model.factory import ChatModels
from graph.server.settings import Settings
from graph.service import ChatService, open_service
from graph.value.event import Event, TurnFinished
from tests.fake.openai_reply import Body, Reply, as_whole, failure
from tests.fake.openai_responder import answer_body, kind_of
from tests.fake.openai_server import FakeOpenAI
from tests.fake.plot import Plot
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat
from tests.fake.server_kind import THOUGHT, THOUGHT_WORD, ServerKind
from tests.fake.waiting_tool import tools_and_wait

_TABLES: Final = ("message", "record", "session")


class KindPlot(Plot):
    """One session of a service whose endpoint is of some kind; each public method but `check` is a step."""

    def __init__(
        self, folder: Path, url: SecretStr | None, server: FakeOpenAI, kind: ServerKind, **settings: object
    ) -> None:
        self._server = server
        self._kind = kind
        self._checked_bodies = len(server.exchanges)
        self._said = ""
        kind.settle(server)
        server.respond_with(self._respond)
        endpoint = {"openai_base_url": server.url, "openai_api_key": "k", "chat_model": "scripted-model"}
        super().__init__(folder, url, **endpoint, model_slots=16, **settings)  # type: ignore[arg-type]  # the words and settings of a story
        self._is_plain = self._is_plain and not kind.has_small_window

    def serve(self, kind: ServerKind) -> None:
        """The user goes on with a server of another kind."""
        self._kind = kind
        self._is_plain = self._is_plain and not kind.has_small_window
        kind.settle(self._server)
        self.restart()

    def use_tools(self, rounds: int) -> None:
        super().use_tools(0 if self._kind.no_tools else rounds)

    def fail(self, text: str, rounds: int) -> None:
        super().fail(text, 0 if self._kind.no_tools else rounds)

    def stop_in_tool(self, rounds: int) -> None:
        if not self._kind.no_tools:
            super().stop_in_tool(rounds)

    def crash_in_tool(self, rounds: int) -> None:
        if not self._kind.no_tools:
            super().crash_in_tool(rounds)

    def check(self) -> None:
        super().check()
        for exchange in self._server.exchanges[self._checked_bodies :]:
            assert THOUGHT_WORD not in json.dumps(_lasting(exchange.body), ensure_ascii=False)
        self._checked_bodies = len(self._server.exchanges)

    def check_end(self) -> None:
        super().check_end()
        for table in _TABLES:
            assert THOUGHT_WORD not in repr(self._rows_in(table))
        assert THOUGHT_WORD not in repr(self.chat.service.folds.records(self._session_id))  # with its facts
        assert self.chat.service.sessions.list(search=THOUGHT_WORD) == ()
        inputs = self.chat.service.inputs.of_turn(self._session_id, self.turn_count)
        assert all(call.is_verified for call in inputs)

    def _finish(self, events: list[Event]) -> None:
        super()._finish(events)
        assert isinstance(events[-1], TurnFinished)
        assert events[-1].text.strip() == self.chat.last_turn.answer_text.strip() == self._said.strip()
        thoughts = self.chat.service.turns.thoughts(self._session_id, self.turn_count)
        assert (bool(thoughts), thoughts.replace(THOUGHT, "").strip()) == (bool(self._kind.thinks), "")

    def _hang(self, text: str, rounds: int) -> None:
        rounds = 0 if self._kind.no_tools else rounds
        self.model.script(*[ScriptedAnswer(tool="get_current_time")] * rounds, ScriptedAnswer([text], ending="hang"))
        self._start(self._question())
        self._server.wait_until(lambda server: server.hanging_count == 1)
        if text.strip():
            self.chat.wait_until_live(lambda live: live.text == text)

    def _rows_in(self, table: str) -> list[Any]:
        return self.chat.rows(f"SELECT * FROM {table}")  # noqa: S608  # names of our own

    def _respond(self, body: Body) -> Reply:
        if (refusal := self._kind.refusal_of(body)) is not None:
            return refusal
        kind = kind_of(body)
        if kind == "summary" and self.summariser.is_failing:
            return failure(500)
        if kind == "chat":
            answer = self.model.reply_to([])
            self._said = "".join(answer.pieces)
        else:
            answer = ScriptedAnswer([as_whole(answer_body(body))["choices"][0]["message"]["content"]])
        return self._kind.reply(answer)

    def _served(self) -> AbstractContextManager[ChatService]:
        return open_service(self.settings, models=self._open_models, tools=tools_and_wait, context=self._project.source)

    @contextmanager
    def _open_models(self, settings: Settings) -> Iterator[ChatModels]:
        with ModelCaller(silence_seconds=settings.model_silence_seconds) as caller:
            models = ChatModels(settings, caller)
            models.chat("").callbacks = [_Recorder(self.model)]
            try:
                yield models
            finally:
                models.close()


class _Recorder(BaseCallbackHandler):
    """Keeps what the chat's calls are sent, with the messages' ids."""

    def __init__(self, model: ScriptedChat) -> None:
        self._model = model

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002  # the base class's signature
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,  # noqa: ARG002  # the base class's signature
        **rest: Any,  # noqa: ANN401, ARG002  # the base class's signature
    ) -> None:
        if kind_of({"messages": convert_to_openai_messages(messages[0])}) == "chat":
            self._model.hear(messages[0])


def _lasting(body: Body) -> Body:
    """The body without the thoughts that go back with calls."""
    given_back = ("reasoning_content", "reasoning_details")
    sent = [
        {name: value for name, value in message.items() if not message.get("tool_calls") or name not in given_back}
        for message in body["messages"]
    ]
    return {**body, "messages": sent}
