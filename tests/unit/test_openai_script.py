"""The contract of the scripted endpoint: a script in order, `to=`, and an unused reply fails its test."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import httpx2
import pytest

from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_script import UnusedReplyError
from tests.fake.openai_server import FakeOpenAI


def say(server: FakeOpenAI, words: str) -> str:
    """Sends one chat request and returns its answer, or the status of a failure."""
    body = {"model": "m", "messages": [{"role": "user", "content": words}]}
    answer = httpx2.post(f"{server.url}/chat/completions", json=body, timeout=5.0)
    return str(answer.json()["choices"][0]["message"]["content"]) if answer.is_success else str(answer.status_code)


def test_replies_go_to_the_requests_that_say_their_words_or_to_the_next_ones_in_order() -> None:
    with FakeOpenAI() as server:
        server.script(text("하나."), to="첫째")
        server.script(failure(500), text("둘."), to="둘째")
        server.script(text("셋."), text("넷."))
        said = ["둘째 말", "첫째 말", "말", "둘째 말", "말"]
        assert [say(server, words) for words in said] == ["500", "하나.", "셋.", "둘.", "넷."]
        assert "시험용 서버" in say(server, "말")


def leave_one() -> None:
    with FakeOpenAI(patience_seconds=0.05) as server:
        server.script(text("하나."), text("둘."), to="둘째")
        server.script(hang(), may_stay=True)
        say(server, "둘째 말")


def test_reply_left_over_fails_its_test_and_says_which() -> None:
    with pytest.raises(UnusedReplyError, match=r"test_openai_script.py:\d+ scripted 2 .*'둘째'.* only 1 came.*둘"):
        leave_one()


@pytest.mark.parametrize("is_lent", [True, False])
def test_end_of_a_test_waits_for_a_request_that_is_on_its_way(*, is_lent: bool) -> None:
    said: list[str] = []
    with FakeOpenAI() as server:
        late = threading.Timer(0.2, lambda: said.extend(say(server, "늦은 말") for _ in range(2)))
        with server.lent() if is_lent else nullcontext():
            server.script(text("하나."), text("둘."), to="늦은")
            late.start()
    late.join()
    assert said == ["하나.", "둘."]


def leave_two(server: FakeOpenAI) -> None:
    with server.lent():
        server.models = ["another"]
        server.respond_with(lambda _: failure(503))
        server.script(text("하나."), to="뒤에 온")
        server.script(text("둘."), to="뒤에 온", may_stay=True)
        assert say(server, "앞의 말") == "503"


def test_nothing_of_a_test_outlives_it_on_a_shared_server() -> None:
    with FakeOpenAI(patience_seconds=0.05) as server, httpx2.Client() as client:
        with pytest.raises(UnusedReplyError, match="뒤에 온"):
            leave_two(server)
        with server.lent():
            assert "시험용 서버" in say(server, "뒤에 온 말")
            assert len(server.exchanges) == 1
            assert server.models == ["scripted-model"]
            server.script(hang("처음"), to="끝없는")
            body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "끝없는 말"}]}
            request = client.build_request("POST", f"{server.url}/chat/completions", json=body)
            response = client.send(request, stream=True)
        with pytest.raises(httpx2.RemoteProtocolError):
            response.read()


def test_shared_server_takes_no_reply_for_whoever_comes() -> None:
    with FakeOpenAI() as server:
        with server.lent(), pytest.raises(ValueError, match="tests share this server"):
            server.script(text("하나."))
        with server.lent(to="이 시험"):
            server.script(text("하나."))
            assert "시험용 서버" in say(server, "지난 시험의 늦은 말")
            assert say(server, "이 시험의 말") == "하나."
            assert len(server.exchanges) == 1
