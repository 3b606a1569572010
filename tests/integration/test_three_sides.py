from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from pydantic import PrivateAttr

from graph.value.error import BusyError
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.oracle import Span, check_cover, check_request, check_sent, read_truth
from tests.fake.scripted_model import ScriptedAnswer, ScriptedChat, ScriptedSummariser, scripted_models
from tests.fake.served_chat import Answer, ServedChat


class HeldChat(ScriptedChat):
    """Answers only while `free` is set."""

    _free: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def free(self) -> threading.Event:
        return self._free

    def reply_to(self, messages: list[BaseMessage], /) -> ScriptedAnswer:  # type: ignore[override]  # a list is what comes
        assert self._free.wait(60)
        return super().reply_to(messages)


class Sides:
    """One session as the page, a program at `/chat` and one at `/v1` have it; each says something, and is told why not.

    Attributes:
        by_name: What each side says a message with; returns the refusal, None if the message was answered.
        beside: What was answered in a fork, as a turn ran.
    """

    def __init__(self, chat: Chat, model: HeldChat, served: ServedChat) -> None:
        self.chat, self.model, self._served = chat, model, served
        self.beside: list[str] = []
        self.by_name: Mapping[str, Callable[[str], Answer | None]] = {
            "page": self._page,
            "chat": self._chat,
            "v1": self._v1,
        }

    def _page(self, text: str) -> Answer | None:
        try:
            number = self.chat.service.turns.send(self.chat.session_id, text)
        except BusyError:  # as a program would be told
            return Answer(409, {"x-should-retry": "false"}, b'{"error":{"code":"session_busy"}}')
        self.chat.wait_until(lambda: self.chat.turns[number - 1].status == "finished")
        return None

    def _chat(self, text: str) -> Answer | None:
        answer = self._served.send({"message": text, "session_id": self.chat.session_id})
        if answer.status == 200:
            assert answer.received[-1].data == "[DONE]"
            return None
        return answer

    def _v1(self, text: str) -> Answer | None:
        body = {"model": "turnfold", "messages": [{"role": "user", "content": text}]}
        headers = {"X-Turnfold-Session": self.chat.session_id}
        answer = self._served.ask("POST", "/v1/chat/completions", json=body, headers=headers)
        if answer.status == 200:
            if answer.headers["x-turnfold-session"] != self.chat.session_id:
                assert answer.headers["x-turnfold-matched"] == "fork"
                self.beside.append(text)
            return None
        return answer

    def check(self, last: int) -> None:
        """Checks the newest request and what every side reads: each turn stands there once."""
        self.chat.wait_for_folds()
        truth = read_truth(self.chat)
        check_cover(truth, 0)
        sent = self.model.inputs[-1]
        check_request(sent, self.chat.last_turn.user_text)
        check_sent(truth, sent, Span(last, 0, None, may_leave_out=False))
        assert [turn.number for turn in self.chat.turns] == list(range(1, last + 1))
        received = self._served.ask("GET", f"/sessions/{self.chat.session_id}/turns?last=100").json["turns"]
        assert [each["user_text"] for each in received] == [turn.user_text for turn in self.chat.turns]
        assert all(turn.answer_text for turn in self.chat.turns)


@pytest.fixture
def sides(open_chat: OpenChat) -> Iterator[Sides]:
    model = HeldChat()
    model.free.set()
    chat = open_chat(models=scripted_models(model, ScriptedSummariser()))
    with ServedChat(chat.service) as served:
        yield Sides(chat, model, served)
        model.free.set()


def test_three_sides_go_on_in_turns_and_while_one_is_answered_nothing_of_the_others_is_stored(sides: Sides) -> None:
    sides.chat.ask(1, 1)
    for number, holder in enumerate(sides.by_name, start=2):
        sides.model.free.clear()
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(sides.by_name[holder], question(number))
            sides.chat.wait_until(lambda: len(sides.model.inputs) == number)  # noqa: B023  # it ends before
            for name in ("page", "chat"):  # `/v1` has a fork, whose answer this model holds back, too
                refusal = sides.by_name[name](f"{name}의 다른 질문입니다.")
                assert refusal is not None
                assert (refusal.status, refusal.json["error"]["code"]) == (409, "session_busy")
                assert refusal.headers["x-should-retry"] == "false"
                assert len(sides.model.inputs) == number
            sides.model.free.set()
            assert held.result() is None
        sides.check(number)
    assert [turn.user_text for turn in sides.chat.turns] == [question(number) for number in range(1, 5)]
    assert {turn.client for turn in sides.chat.turns} == {"", "editor"}
    assert sides.chat.covered == [(1, 2, 3)]
    assert len(sides.chat.service.sessions.list()) == 1


def test_three_sides_at_once_lose_and_double_nothing(sides: Sides) -> None:
    sides.chat.ask(1, 1)
    start = threading.Barrier(3)

    def go_on(name: str) -> list[Any]:
        refusals = []
        start.wait()
        for number in range(3):
            while (refusal := sides.by_name[name](f"{name} {question(number)}")) is not None:
                refusals.append((refusal.status, refusal.json["error"]["code"], refusal.headers["x-should-retry"]))
                time.sleep(0.01)
        return refusals

    with ThreadPoolExecutor(3) as pool:
        refusals = [refusal for received in pool.map(go_on, sides.by_name) for refusal in received]
    assert set(refusals) <= {(409, "session_busy", "false")}
    sides.check(10 - len(sides.beside))
    said = [turn.user_text for turn in sides.chat.turns[1:]]
    every = {name: [f"{name} {question(number)}" for number in range(3)] for name in sides.by_name}
    assert sorted([*said, *sides.beside]) == sorted(text for texts in every.values() for text in texts)
    for name, texts in every.items():
        assert [text for text in said if text.startswith(name)] == [text for text in texts if text not in sides.beside]
    assert len(sides.chat.service.sessions.list()) == 1 + len(sides.beside)
    assert sides.by_name["v1"](question(11)) is None
    sides.check(11 - len(sides.beside))
