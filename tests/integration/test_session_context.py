from __future__ import annotations

import pytest

from graph.value.error import InputError, NotFoundError
from graph.value.view import TurnOptions
from prompt.system.framing import VOLATILE_HEADING
from tests.fake.body import content_of
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.rooted import Rooted

IN_FILE = {"currentFile": "src/app.py", "selection": "def main():\n    return 1"}
BLOCK = f"{VOLATILE_HEADING}\ncurrentFile: src/app.py\nselection:\n    def main():\n        return 1"


def last_words(server: FakeOpenAI) -> str:
    return content_of(server.bodies("chat")[-1]["messages"][-1])


def ask_in(chat: Chat, number: int, context: dict[str, str] | None = None) -> None:
    chat.say(question(number), options=TurnOptions(context=context or {}))
    chat.wait_for_folds()


def test_context_of_a_request_holds_until_it_is_taken_back(chat: Chat, server: FakeOpenAI) -> None:
    ask_in(chat, 1, {**IN_FILE, "workingDirectory": "/etc", "projectRoot": "/etc", "unknown": "x"})
    assert last_words(server) == f"{BLOCK}\n\n[CURRENT MESSAGE]\n{question(1)}"
    query = "SELECT kind, version, text FROM context_block WHERE session_id = ?"
    assert chat.rows(query, chat.session_id) == [("volatile", 1, BLOCK)]
    call = chat.service.inputs.of_turn(chat.session_id, 1)[-1]
    assert ("context", "volatile") in [(block.kind, block.id) for block in call.blocks]
    assert call.is_verified
    ask_in(chat, 2)
    assert last_words(server) == f"{BLOCK}\n\n[CURRENT MESSAGE]\n{question(2)}"
    ask_in(chat, 3, {"currentFile": "/b.py"})
    assert last_words(server).startswith(f"{VOLATILE_HEADING}\ncurrentFile: /b.py\n\n")
    ask_in(chat, 4, {"currentFile": " "})
    assert last_words(server) == question(4)
    ask_in(chat, 5)
    assert last_words(server) == question(5)


def test_update_between_turns_holds_from_the_next_one_on(chat: Chat, server: FakeOpenAI) -> None:
    update = chat.service.sessions.update_context
    with pytest.raises(NotFoundError):
        update(chat.session_id, IN_FILE)
    ask_in(chat, 1)
    assert last_words(server) == question(1)
    for context in ({"selection": 3}, {3: "x"}):
        with pytest.raises(InputError) as refused:
            update(chat.session_id, context)  # type: ignore[arg-type]  # as a program may send it
        assert refused.value.reason == "bad_context"
    assert update(chat.session_id, IN_FILE) == IN_FILE
    ask_in(chat, 2)
    assert last_words(server) == f"{BLOCK}\n\n[CURRENT MESSAGE]\n{question(2)}"
    assert update(chat.session_id, {"currentFile": ""}) == {}
    chat.regenerate()
    assert last_words(server) == question(2)


def test_context_of_a_session_is_no_other_ones_also_of_its_name(chat: Chat, server: FakeOpenAI) -> None:
    ask_in(chat, 1, IN_FILE)
    ask_in(Chat(chat.service), 1)
    assert last_words(server) == question(1)
    chat.service.sessions.delete(chat.session_id)
    ask_in(chat, 1)
    assert last_words(server) == question(1)


def test_each_request_brings_its_own_if_the_server_is_set_so(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_volatile="request")
    ask_in(chat, 1, IN_FILE)
    assert last_words(server).startswith(BLOCK)
    ask_in(chat, 2)
    assert last_words(server) == question(2)
    with pytest.raises(InputError) as refused:
        chat.service.sessions.update_context(chat.session_id, IN_FILE)
    assert refused.value.reason == "context_not_kept"


def test_in_a_project_an_update_counts_for_it(rooted: Rooted, server: FakeOpenAI) -> None:
    chat = rooted.open()
    chat.say(question(1), options=rooted.options())
    now = chat.service.sessions.update_context(chat.session_id, {"currentFile": f"{rooted.root}/a.py"})
    assert now["projectRoot"] == rooted.root
    chat.say(question(2))
    assert f"currentFile: {rooted.root}/a.py" in last_words(server)
