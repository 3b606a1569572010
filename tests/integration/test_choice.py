from __future__ import annotations

from graph.service import open_service
from graph.view import TurnOptions
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
        assert (service.session(chat.session_id).model, service.session(chat.session_id).strategy) == (
            "second-model",
            "rolling",
        )
        Chat(service, chat.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "second-model"
        Chat(service, chosen.session_id).say(question(2))
        assert server.bodies("chat")[-1]["model"] == "own-model"
