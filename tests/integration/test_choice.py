from __future__ import annotations

import pytest

from graph.service import open_service
from graph.view import TurnOptions
from tests.fake.body import raw_turns
from tests.fake.chat import Chat, question
from tests.fake.openai_server import FakeOpenAI
from tests.integration.conftest import MakeSettings


def test_a_session_that_chose_what_held_anyway_follows_the_servers_model(
    make_settings: MakeSettings, server: FakeOpenAI
) -> None:
    with open_service(make_settings(chat_model="first-model")) as service:
        chat = Chat(service)
        chat.say(question(1), options=TurnOptions(model="first-model", strategy="interval"))
        chosen = Chat(service)
        chosen.say(question(1), options=TurnOptions(model="own-model"))
    with open_service(make_settings(chat_model="second-model", context_strategy="rolling")) as service:
        assert (service.sessions.get(chat.session_id).model, service.sessions.get(chat.session_id).strategy) == (
            "second-model",
            "rolling",
        )
        Chat(service, chat.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "second-model"
        Chat(service, chosen.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "own-model"


def test_window_means_the_same_however_a_session_came_to_it(make_settings: MakeSettings, server: FakeOpenAI) -> None:
    with open_service(make_settings(app_context_enabled=False)) as service:
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


def test_settings_are_kept_while_no_model_can_be_reached(
    make_settings: MakeSettings, caplog: pytest.LogCaptureFixture
) -> None:
    with open_service(make_settings(context_strategy="window")) as service:
        chat = Chat(service)
        chat.ask(1, 3)
    with FakeOpenAI() as ended:
        nowhere = {"openai_base_url": ended.url, "openai_api_key": None, "chat_model": None}
    with open_service(make_settings(context_strategy="interval", **nowhere)) as service:
        view = service.sessions.configure(chat.session_id, compression_rate=0.5)
        assert (view.compression_rate, service.sessions.get(chat.session_id).compression_rate) == (0.5, 0.5)
    assert [record.getMessage() for record in caplog.records if "unreachable" in record.getMessage()] == [
        f"folds of session={chat.session_id} not prepared: unreachable"
    ]
