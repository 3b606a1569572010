from __future__ import annotations

import pytest

from graph.view import TurnOptions
from tests.fake.body import raw_turns
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI


def test_a_session_that_chose_what_held_anyway_follows_the_servers_model(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    with open_chat(chat_model="first-model") as chat:
        chat.say(question(1), options=TurnOptions(model="first-model", strategy="interval"))
        chosen = Chat(chat.service)
        chosen.say(question(1), options=TurnOptions(model="own-model"))
    with open_chat(chat_model="second-model", context_strategy="rolling") as later:
        view = later.service.sessions.get(chat.session_id)
        assert (view.model, view.strategy) == (
            "second-model",
            "rolling",
        )
        Chat(later.service, chat.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "second-model"
        Chat(later.service, chosen.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "own-model"


def test_window_means_the_same_however_a_session_came_to_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    service = open_chat(app_context_enabled=False).service
    untouched, chosen, detoured = Chat(service), Chat(service), Chat(service)
    untouched.ask(1, 3)
    chosen.say(question(1), options=TurnOptions(strategy="window"))
    chosen.ask(2, 3)
    detoured.ask(1, 1)
    service.sessions.configure(detoured.session_id, strategy="interval")
    detoured.ask(2, 2)
    service.sessions.configure(detoured.session_id, strategy="window")
    detoured.ask(3, 3)
    assert [raw_turns(body) for body in server.bodies("chat")] == [[1], [2], [3], [1], [2], [3], [1], [1, 2], [3]]
    assert {service.sessions.get(chat.session_id).strategy for chat in (untouched, chosen, detoured)} == {"window"}


def test_settings_are_kept_while_no_model_can_be_reached(open_chat: OpenChat, caplog: pytest.LogCaptureFixture) -> None:
    with open_chat(context_strategy="window") as chat:
        chat.ask(1, 3)
    with FakeOpenAI() as ended:
        nowhere = {"openai_base_url": ended.url, "openai_api_key": None, "chat_model": None}
    with open_chat(chat.session_id, context_strategy="interval", **nowhere) as chat:
        view = chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
        assert (view.compression_rate, chat.view.compression_rate) == (0.5, 0.5)
    # An earlier test's server may still be losing its lease.
    told = [record.getMessage() for record in caplog.records if record.name != "graph.store.lease"]
    assert [message for message in told if "unreachable" in message] == [
        f"folds of session={chat.session_id} not prepared: unreachable"
    ]
