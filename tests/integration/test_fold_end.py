from __future__ import annotations

import threading
from collections.abc import Callable

from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, failure, hang, text
from tests.fake.openai_server import FakeOpenAI

TOO_SHORT = text("너무 짧은 요약문 하나입니다.")
PATIENCE_SECONDS = 10


def held(reply: Reply, gate: threading.Event) -> Callable[[Body], Reply]:
    return lambda _: reply if gate.wait(30) else failure(500)


def begin_fold(chat: Chat, server: FakeOpenAI) -> None:
    """Has the turns after whose answers the first summary is asked for."""
    for number in (1, 2, 3):
        chat.say(question(number))
    server.wait_until(lambda fake: len(fake.bodies("summary")) == 1)


def test_deleting_a_session_ends_its_summary_in_the_making(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang(is_silent=True), kind="summary")
    begin_fold(chat, server)
    chat.service.sessions.delete(chat.session_id)
    server.wait_until(lambda fake: fake.open_count == 0, PATIENCE_SECONDS)
    assert server.exchanges[-1].is_closed_early
    assert len(server.bodies("summary")) == 1


def test_a_session_that_another_server_deletes_has_no_second_draft_made(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    gate = threading.Event()
    server.script(held(TOO_SHORT, gate), kind="summary")
    chat = open_chat()
    begin_fold(chat, server)
    open_chat().service.sessions.delete(chat.session_id)
    gate.set()
    fold_worker = chat.service._access.fold_worker  # noqa: SLF001  # as Chat.wait_for_folds, but its session is gone
    chat.wait_until(lambda: fold_worker.is_idle(chat.session_id))
    assert len(server.bodies("summary")) == 1


def test_a_summary_thrown_away_by_a_regenerated_answer_has_no_second_draft_made(chat: Chat, server: FakeOpenAI) -> None:
    gate = threading.Event()
    server.script(held(TOO_SHORT, gate), kind="summary")
    begin_fold(chat, server)
    first = str(server.bodies("summary")[0])
    server.script(text("다시 쓴 답은 파랑입니다. " * 12))
    chat.regenerate()
    gate.set()
    chat.wait_for_folds()
    chat.say(question(4))
    assert chat.covered == [(1, 2, 3)]
    prompts = [str(body) for body in server.bodies("summary")]
    assert prompts[0] == first
    assert len(prompts) == 2
    assert "파랑" in prompts[1]
    thrown, made = chat.rows("SELECT error_code, input_tokens + output_tokens FROM record ORDER BY sequence")
    assert thrown[0] == "discarded"
    assert thrown[1] > 0
    assert made[0] == ""


def test_the_slider_can_be_moved_while_the_endpoint_is_gone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    nowhere = {"chat_model": None, "openai_api_key": None, "model_window_tokens": None}
    with open_chat(**nowhere) as chat:
        server.script(failure(500), kind="summary")
        chat.ask(1, 3)
    server.model_list_reply = failure(500)
    with open_chat(chat.session_id, **nowhere) as chat:
        view = chat.service.sessions.configure(chat.session_id, compression_rate=0.5)
        assert view.compression_rate == 0.5
    server.model_list_reply = None
    with open_chat(chat.session_id, **nowhere) as chat:
        chat.ask(4, 5)
        assert [record.compression_rate for record in chat.service.folds.records(chat.session_id)] == [0.5]
