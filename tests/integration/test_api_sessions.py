"""The routes below /sessions and /v1/summarize, over a real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import httpx2
import pytest

from api.body import BUDGET, BUDGET_BYTES
from graph.service import ChatService
from graph.value.event import TurnFinished
from graph.value.view import TurnOptions
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import failure, hang, text
from tests.fake.openai_server import FakeOpenAI
from tests.fake.served_programs import ServedPrograms


@pytest.fixture(scope="module")
def http(module_service: ChatService) -> Iterator[httpx2.Client]:
    with ServedPrograms(module_service) as served, served.client() as client:
        yield client


@pytest.fixture
def own(chat: Chat) -> str:
    return f"/sessions/{chat.session_id}"


def read_json(answer: httpx2.Response, status: int = 200) -> Any:  # noqa: ANN401  # JSON of any shape
    assert answer.status_code == status, answer.text
    return answer.json()


def code(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def test_a_session_is_read_as_the_service_has_it(chat: Chat, http: httpx2.Client, own: str) -> None:
    for number in range(1, 5):
        chat.say(question(number), options=TurnOptions(compression_rate=0.45))
        chat.wait_for_folds()
    view = read_json(http.get(own))
    assert (view["title"], view["strategy"], view["turn_count"]) == (chat.view.title, "interval", 4)
    assert (view["is_running"], view["project_problem"], view["compression_rate"]) == (False, "", 0.45)
    turns = read_json(http.get(f"{own}/turns"))
    assert [(turn["number"], turn["status"], turn["user_text"]) for turn in turns["turns"]] == [
        (number, "finished", question(number)) for number in range(1, 5)
    ]
    (record,) = read_json(http.get(f"{own}/records"))["records"]
    assert (record["thread_id"], record["turns"], record["status"]) == (chat.session_id, [1, 2, 3], "COMPLETED")
    assert record["created_at"].endswith("Z")
    figures = read_json(http.get(f"{own}/statistics"))
    assert (figures["statistics"]["record_count"], len(figures["chart"])) == (1, 4)
    assert figures["next_fold"]["turns"] == [4, 5, 6]
    (call,) = read_json(http.get(f"{own}/input/4"))["calls"]
    assert call["is_verified"]
    kinds = ["system", "record", "ledger", "ledger", "ledger", "message", "tools"]
    assert [block["kind"] for block in call["blocks"]] == kinds
    assert call["blocks"][5]["text"] == question(4)
    ledger = read_json(http.get(f"{own}/ledger"))
    assert [(line["turn"], line["kind"], line["state"]) for line in ledger["lines"]] == [
        (turn, "choice", "sent") for turn in (1, 2, 3)
    ]
    line = f"{own}/ledger/{ledger['lines'][0]['id']}"
    for is_struck, state in ((True, "struck"), (False, "sent")):
        assert read_json(http.patch(line, json={"struck": is_struck}))["lines"][0]["state"] == state
    assert code(http.patch(f"{own}/ledger/9-none", json={"struck": True}))[0] == 404
    page = read_json(http.get(f"{own}/turns", params={"last": 2, "before": 4}))
    assert ([turn["number"] for turn in page["turns"]], page["earlier_count"]) == ([2, 3], 1)
    assert [turn["is_last"] for turn in page["turns"]] == [False, False]
    assert read_json(http.get(f"{own}/turns", params={"before": 1}))["turns"] == []
    for turn in ("5", "0", "x", "-1", "1.0", "٣", "9" * 9, "9" * 5_000, "%00"):
        assert code(http.get(f"{own}/input/{turn}"))[0] == 404, turn
    answer = http.post(f"{own}/export")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert tuple(answer.text.splitlines()) == chat.service.sessions.export(chat.session_id)
    assert all(json.loads(line) for line in answer.text.splitlines())


def test_sessions_are_listed_and_found_by_pages(chat: Chat, http: httpx2.Client) -> None:
    chat.say(question(1))
    chat.copy(7)
    listed: list[str] = []
    page = read_json(http.get("/sessions", params={"last": 3}))
    while True:
        listed += [item["session_id"] for item in page["sessions"]]
        if page["next"] is None:
            break
        page = read_json(http.get("/sessions/", params={"last": 3, "before": page["next"]}))
    assert listed == [item.session_id for item in chat.service.sessions.list()]
    assert len(listed) >= 8
    assert datetime.fromisoformat(page["sessions"][0]["updated_at"]).tzinfo is not None
    (found,) = read_json(http.get("/sessions", params={"search": "트래픽을 옮깁니다"}))["sessions"][:1]
    assert found["found_turn"] == 1


def test_a_query_that_cannot_be_meant_is_refused_by_its_name(http: httpx2.Client) -> None:
    queries = ["last=0", "last=201", "last=x", "search=" + "a" * 2_001]
    queries += [f"before={at}" for at in ("x", "~", "2026-11-23~", "2026-11-23T06:00:00~id")]
    queries += ["before=9999-12-31T23:59:59-23:00~id"]
    for query in queries:
        answer = http.get(f"/sessions?{query}")
        assert code(answer) == (400, "invalid_value"), query
        assert answer.json()["error"]["param"] == query.partition("=")[0]


def test_title_and_settings_change_together_or_not_at_all(chat: Chat, http: httpx2.Client, own: str) -> None:
    chat.say(question(1))
    before = read_json(http.get(own))
    wrongs = ({"title": "새 제목", "strategy": "none"}, {"fold_when": "never"}, {"title": " ", "compression_rate": 0.2})
    for wrong in wrongs:
        assert http.patch(own, json=wrong).status_code == 400
        assert read_json(http.get(own)) == before
    changes = {"title": "새 제목", "compression_rate": 0.2, "strategy": "rolling", "fold_when": "pays"}
    changed = read_json(http.patch(own, json={**changes, "model": "turnfold/big"}))
    assert {**changed, **changes, "model": "big"} == changed
    assert read_json(http.patch(own, json={"title": None})) == changed


def test_a_deleted_session_is_gone(chat: Chat, http: httpx2.Client, own: str) -> None:
    chat.say(question(1))
    answer = http.delete(own)
    assert (answer.status_code, answer.content) == (204, b"")
    assert code(http.get(own)) == (404, "session_not_found")
    assert chat.session_id not in http.get("/sessions").text


def test_a_failed_turn_is_retried_and_a_finished_one_answered_again(
    chat: Chat, server: FakeOpenAI, http: httpx2.Client, own: str
) -> None:
    server.script(failure(401), text("처음"), text("다시"))
    chat.say(question(1))
    assert code(http.post(f"{own}/regenerate")) == (400, "not_last")
    assert read_json(http.post(f"{own}/retry"), 202) == {"session_id": chat.session_id, "turn": 1}
    assert isinstance(chat.events()[-1], TurnFinished)
    assert read_json(http.post(f"{own}/regenerate"), 202)["turn"] == 1
    chat.events()
    assert chat.last_turn.answer_text == "다시"


def test_a_running_turn_is_stopped_and_refuses_what_needs_an_idle_session(
    chat: Chat, server: FakeOpenAI, http: httpx2.Client, own: str
) -> None:
    server.script(hang("음"))
    chat.start(question(1))
    chat.wait_until_live(lambda live: bool(live.text))
    for path in ("retry", "regenerate", "compact", "reset", "restore"):
        answer = http.post(f"{own}/{path}")
        assert code(answer) == (409, "session_busy")
        assert answer.headers["x-should-retry"] == "false"
        assert int(answer.headers["retry-after"]) > 0
    assert http.post(f"{own}/stop").status_code == 204
    chat.events()
    assert chat.last_turn.status == "stopped"
    assert http.post(f"{own}/stop").status_code == 204


def test_a_compaction_and_a_reset_are_made_and_undone(chat: Chat, http: httpx2.Client, own: str) -> None:
    chat.ask(1, 2)
    assert code(http.post(f"{own}/compact")) == (400, "nothing_to_compact")
    chat.ask(3, 6)
    assert code(http.post(f"{own}/restore", json={"record_id": "rec-none"})) == (404, "session_not_found")
    record = read_json(http.post(f"{own}/compact"))
    assert record["kind"] == "compaction"
    assert read_json(http.get(f"{own}/records"))["restorable"] == [record["id"]]
    assert http.post(f"{own}/restore", json={"record_id": record["id"]}).status_code == 204
    assert read_json(http.get(f"{own}/records"))["restorable"] == []
    assert code(http.post(f"{own}/restore")) == (400, "no_reset")
    assert http.post(f"{own}/reset").status_code == 204
    assert read_json(http.get(f"{own}/turns"))["reset_after"] == [6]
    assert http.post(f"{own}/restore").status_code == 204
    assert read_json(http.get(f"{own}/turns"))["reset_after"] == []


def test_a_summary_is_made_of_messages_or_a_text(chat: Chat, server: FakeOpenAI, http: httpx2.Client) -> None:
    before = chat.service.sessions.list()
    words = " ".join(question(number) for number in range(1, 5))
    for sent in ({"text": words}, {"messages": [{"role": "user", "content": words}]}):
        answer = read_json(http.post("/v1/summarize", json={**sent, "rate": 0.2}))
        assert answer["original_chars"] == len(words)
        assert answer["target_chars"] == int(len(words) * 0.2)
        assert answer["summary_chars"] == len(answer["summary"]) < len(words)
        assert answer["is_usage"]
        assert {"needed_rate", "invented_facts"} <= answer.keys()
    asked = read_json(http.post("/v1/summarize/", json={"text": words, "target_length": 100, "language": "en"}))
    assert asked["target_chars"] == 100
    assert chat.service.sessions.list() == before
    server.script(failure(401), kind="summary")
    assert code(http.post("/v1/summarize", json={"text": words})) == (502, "upstream_error")


def test_a_summary_of_nothing_or_by_two_measures_is_refused(http: httpx2.Client) -> None:
    wrong: list[dict[str, object]] = [
        {},
        {"text": ""},
        {"text": " \u200b"},
        {"messages": []},
        {"messages": [{"role": "system", "content": "be brief"}]},
        {"text": "a", "messages": [{"role": "user", "content": "b"}]},
        {"text": "a", "rate": 0.3, "target_length": 9},
        {"text": "a", "rate": 0.9},
        {"text": "a", "target_length": 0},
        {"text": "a", "target_length": 6_001},
        {"text": "a", "language": "xx"},
    ]
    for sent in wrong:
        assert http.post("/v1/summarize", json=sent).status_code == 400, sent


def test_whatever_is_wrong_is_told_in_one_shape(http: httpx2.Client) -> None:
    wrong: list[tuple[str, str, dict[str, Any], int, str]] = [
        ("GET", "/sessions/none/none", {}, 404, "unknown_url"),
        ("GET", "/sessions/a%0Ab/none", {}, 404, "unknown_url"),
        ("GET", "/v1/a%0Ab", {}, 404, "unknown_url"),
        ("GET", "/v1", {}, 404, "unknown_url"),
        ("GET", "/models", {}, 404, "unknown_url"),
        ("POST", "/chat/completions", {}, 404, "unknown_url"),
        ("GET", "/chat/none", {}, 404, "unknown_url"),
        ("GET", "/sessions?serach=a", {}, 400, "invalid_value"),
        ("PATCH", "/sessions/x", {"json": {"compresion_rate": 0.2}}, 400, "invalid_value"),
        ("PATCH", "/sessions/x", {"json": {"has_memory": 0}}, 400, "invalid_value"),
        ("PATCH", "/sessions/x", {"json": {"title": "a" * 2_001}}, 400, "invalid_value"),
        ("PATCH", "/sessions/x", {"content": b"{"}, 400, "invalid_json"),
        ("PATCH", "/sessions/x", {"content": b"[]"}, 400, "invalid_json"),
        ("PATCH", "/sessions/x", {"content": b"[" * 100_000}, 400, "invalid_json"),
        ("PATCH", "/sessions/x", {"content": bytes(2**20 + 1)}, 413, "request_too_large"),
        ("PUT", "/sessions/x/context", {"content": bytes(2**20 + 1)}, 413, "request_too_large"),
        ("PUT", "/sessions", {}, 405, "method_not_allowed"),
        ("GET", "/v1/summarize", {}, 405, "method_not_allowed"),
        ("GET", "/sessions", {"headers": {"Authorization": ""}}, 401, "invalid_api_key"),
        ("GET", "/sessions", {"headers": {"Host": "evil.example"}}, 403, "host_not_allowed"),
    ]
    for method, path, sent, status, named in wrong:
        answer = http.request(method, path, **sent)
        assert code(answer) == (status, named), (method, path)
        assert answer.headers["content-type"] == "application/json"
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
        assert answer.headers["x-request-id"].startswith("req_")
    for path, names in (
        ("/models", "base URL ends in /v1"),
        ("/v1/embeddings", "There are no embeddings here"),
        ("/sessions?limit=100", "limit: there is none of this name; there are search, last, before."),
    ):
        assert names in http.get(path).json()["error"]["message"]
    empty = http.post("/v1/summarize", json={}).json()["error"]["message"]
    assert empty.startswith("Either messages or a text")
    allowed = http.put("/sessions/x").headers["allow"]
    assert {method.strip() for method in allowed.split(",")} == {"GET", "HEAD", "PATCH", "DELETE"}
    head = http.head("/sessions")
    assert (head.status_code, head.content) == (200, b"")


@pytest.mark.parametrize("path", ["/chat", "/v1/chat/completions", "/v1/summarize", "/sessions/x/restore"])
def test_a_body_that_the_server_has_no_room_for_is_refused_for_now(path: str, http: httpx2.Client) -> None:
    with BUDGET.share("local") as share:
        share.hold(BUDGET_BYTES // 2)
        answer = http.post(path, json={})
    assert (*code(answer), answer.headers["retry-after"]) == (503, "server_full", "5")
    assert "x-should-retry" not in answer.headers
    assert BUDGET.held == 0
    assert http.post(path, json={"x": 1}).status_code == 400


def test_reading_goes_on_while_every_slow_thread_waits_for_a_model(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(concurrent_turns=40)
    server.script(*[hang("음")] * 20, kind="summary")
    with ServedPrograms(chat.service) as served, served.client() as http:
        with ThreadPoolExecutor(20) as pool:
            made = [pool.submit(http.post, "/v1/summarize", json={"text": question(1) * 3}) for _ in range(20)]
            server.wait_until(lambda held: len(held.bodies("summary")) >= 16)
            assert read_json(http.get("/sessions"))["sessions"] == []
            server.forget_script()
            chat.close()
        assert {answer.result().status_code for answer in made} == {503}
