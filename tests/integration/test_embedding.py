"""Hybrid search: the vectors of an embedding model beside the full-text index, made in the background."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NoReturn

import pytest
from langchain_core.messages import AIMessage

from graph.model.caller import ModelCaller
from graph.model.embedder import Embedded, Embedder, embedder_of
from graph.model.factory import open_models
from graph.store.session import SessionStore
from graph.store.transfer import export_lines, import_lines
from graph.value.error import TurnStoppedSignal
from graph.value.event import TurnFinished
from prompt.tool.words import recalled_numbers
from tests.fake.chat import Chat
from tests.fake.embedding import meaning_of
from tests.fake.open_chat import MakeSettings, OpenChat
from tests.fake.openai_reply import Reply, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.store import OWNER, SESSION, StoreSet

MODEL: Final = {"embedding_model": "small-embedding"}
KEY: Final = "sk-embedding-key-0123456789abcdef"
SAID: Final = (
    "경비는 모두 120만 원으로 잡았어요.",
    "우산은 안 가져갑니다.",
    "묵을 곳은 서면의 바다입니다.",
    "카메라는 민수가 챙깁니다.",
)


def wait_for_vectors(chat: Chat) -> None:
    vectors = chat.service._engine.vectors  # noqa: SLF001  # nobody but a test has to know
    assert vectors is not None
    chat.wait_until(lambda: vectors.is_idle(chat.session_id))


def tell(chat: Chat, server: FakeOpenAI) -> None:
    for message in SAID:
        server.script(text("알겠습니다."), to=message)
        chat.say(message)
    wait_for_vectors(chat)


def recall(chat: Chat, server: FakeOpenAI, asked: str, query: str) -> str:
    call = ScriptedCall("recall", json.dumps({"query": query}, ensure_ascii=False), f"call-{asked}")
    server.script(tools(call), text("답입니다."), to=asked)
    chat.say(asked)
    return chat.last_turn.steps[0].result


def vectors_in(chat: Chat) -> list[tuple[object, ...]]:
    return chat.rows("SELECT position, model FROM message_vector WHERE session_id = ? ORDER BY 1", chat.session_id)


@pytest.mark.both_engines
def test_a_turn_is_found_by_what_it_means(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**MODEL)
    tell(chat, server)
    assert vectors_in(chat) == [(position, "small-embedding") for position in range(1, 9)]
    found = recall(chat, server, "얼마였죠", "예산")
    assert recalled_numbers(found)[0] == 1
    assert "대화에 없는 말: 예산." in found
    assert '<turn number="3" ' in recall(chat, server, "거기가 어디였죠", "숙소 호텔")
    wait_for_vectors(chat)
    # Each message is embedded once, and a look-up's result not at all.
    inputs = Counter(said for body, _ in server.embeddings for said in body["input"])
    assert inputs["알겠습니다."] == len(SAID)
    assert all(inputs[said] == 1 for said in SAID)
    assert not any("<recalled>" in said for said in inputs)
    assert {key for _, key in server.embeddings} == {"Bearer sk-scripted-key-of-the-tests"}
    assert b'turnfold_tokens_total{direction="in",kind="embedding"}' in chat.service.metrics()


def test_without_an_embedding_model_nothing_is_asked_for(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    for message in SAID:
        chat.say(message)
    assert recalled_numbers(recall(chat, server, "얼마였죠", "예산")) == ()
    assert server.embeddings == []
    assert vectors_in(chat) == []


def test_older_messages_are_embedded_by_and_by_and_those_of_another_model_anew(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    for number in range(20):
        server.script(text(f"{number}번 답입니다."), to=f"{number}번째 말")
        chat.say(f"{number}번째 말입니다.")
    chat.close()
    again = open_chat(chat.session_id, **MODEL)
    again.say("이제 시작합니다.")
    wait_for_vectors(again)
    assert len(vectors_in(again)) == 42
    sizes = [len(body["input"]) for body, _ in server.embeddings]
    assert sum(sizes) == 42
    assert max(sizes) <= 32
    assert server.embeddings[0][0]["input"][-1] != "0번째 말입니다."  # the newest first
    again.close()
    other = open_chat(chat.session_id, embedding_model="another")
    other.say("다른 모델입니다.")
    wait_for_vectors(other)
    assert {row[1] for row in vectors_in(other)} == {"another"}
    assert len(vectors_in(other)) == 44


@pytest.mark.parametrize("reply", [failure(500), failure(401), failure(404, "model not found")])
def test_a_failing_endpoint_is_logged_once_and_search_goes_on(
    open_chat: OpenChat, server: FakeOpenAI, reply: object, caplog: pytest.LogCaptureFixture
) -> None:
    server.embedding_reply = reply  # type: ignore[assignment]  # of this type
    chat = open_chat(**MODEL, embedding_api_key=KEY)
    with caplog.at_level(logging.INFO):
        tell(chat, server)
        assert recalled_numbers(recall(chat, server, "우산이요", "우산")) == (2,)
        assert isinstance(chat.say("끝이에요.")[-1], TurnFinished)
        wait_for_vectors(chat)
    told = [record.getMessage() for record in caplog.records if "embedding model" in record.getMessage()]
    assert len(told) == 1
    assert not any(KEY in record.getMessage() for record in caplog.records)
    assert len(server.embeddings) == 1  # it rests a minute
    assert vectors_in(chat) == []


def test_no_turn_and_no_closing_waits_for_vectors(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.embedding_reply = hang()
    chat = open_chat(**MODEL)
    for message in SAID:
        assert isinstance(chat.say(message)[-1], TurnFinished)
    server.wait_until(lambda server: len(server.embeddings) == 1)
    began = time.monotonic()
    chat.close()
    assert time.monotonic() - began < 10


def test_on_one_slot_vectors_give_way_to_a_turn_and_are_made_after_it(open_chat: OpenChat, server: FakeOpenAI) -> None:
    server.embedding_reply = hang()
    chat = open_chat(**MODEL, model_slots=1, fold_wait_seconds=0.1)
    chat.say(SAID[0])
    server.wait_until(lambda server: len(server.embeddings) == 1)
    server.embedding_reply = None
    assert isinstance(chat.say(SAID[1])[-1], TurnFinished)
    wait_for_vectors(chat)
    assert len(vectors_in(chat)) == 4
    assert [len(body["input"]) for body, _ in server.embeddings] == [2, 4]


def test_a_session_that_is_deleted_takes_its_vectors_along(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**MODEL)
    tell(chat, server)
    exported = list(export_lines(chat.service._engine.stores.chat.database))  # noqa: SLF001  # nobody but a test has to know
    assert not any("message_vector" in line for line in exported)
    chat.service.sessions.delete(chat.session_id)
    chat.wait_until(lambda: vectors_in(chat) == [])


# The client.


@pytest.fixture
def embedder(server: FakeOpenAI, make_settings: MakeSettings) -> Iterator[Callable[..., Embedder]]:
    with open_models(make_settings(**MODEL, embedding_api_key=KEY)) as models:

        def make(clock: Callable[[], float] = time.monotonic) -> Embedder:
            return Embedder("m", models.caller, models._connect, url=server.url, key=KEY, clock=clock)  # noqa: SLF001  # its pool

        yield make


def vectors(embedded: Embedded | None) -> list[list[float]]:
    import numpy as np  # noqa: PLC0415  # late, as in the product

    assert embedded is not None
    return [[round(value, 5) for value in np.frombuffer(each, "<f4").tolist()] for each in embedded.vectors]


def test_vectors_come_in_the_order_of_their_texts_and_of_length_one(
    embedder: Callable[..., Embedder], server: FakeOpenAI
) -> None:
    texts = ["예산은 얼마", "the hotel", "x" * 5_000]
    found = embedder().embed(texts, deadline_seconds=5)
    assert vectors(found) == [[round(value, 5) for value in meaning_of(each[:1_000])] for each in texts]
    assert found is not None
    assert found.tokens == 21
    body, key = server.embeddings[0]
    assert (body["model"], key) == ("m", f"Bearer {KEY}")
    assert [len(each) for each in body["input"]] == [6, 9, 1_000]
    server.embedding_reply = lambda body: {"data": [{"embedding": [3, 4]} for _ in body["input"]]}
    found = embedder().embed(["a", "b"], deadline_seconds=5)
    assert vectors(found) == [[0.6, 0.8], [0.6, 0.8]]
    assert found is not None
    assert found.tokens > 0


def test_texts_are_cut_shorter_for_a_model_that_takes_less(
    embedder: Callable[..., Embedder], server: FakeOpenAI
) -> None:
    refusal = failure(500, "input is too large to process. increase the physical batch size (512 tokens at most)")
    server.embedding_reply = lambda body: refusal if max(map(len, body["input"])) > 250 else None
    asked = embedder()
    assert len(vectors(asked.embed(["가" * 3_000, "나"], deadline_seconds=5))) == 2
    server.embedding_reply = refusal
    assert asked.embed(["가" * 3_000], deadline_seconds=5) is None
    assert [len(body["input"][0]) for body, _ in server.embeddings] == [1_000, 1_000, 500, 250, 1, 250]


LIMITS: Final = [
    (10, failure(400, "Value error, batch size is invalid, it should not be larger than 10.: input.contents")),
    (64, failure(413, "input batch size 473 > maximum allowed batch size 64")),
    (5, failure(400, "5 instance(s) is allowed per prediction. Actual: 20")),
    (3, failure(422, "batch size 20 > maximum allowed batch size 3")),
    (1, failure(400, "input must be a string")),
    (7, failure(400, "The max allowed tokens per submitted batch is 120. Please lower the number of tokens.")),
    (16, failure(400, "")),
]


@pytest.mark.parametrize(("most", "refusal"), LIMITS)
def test_texts_go_in_halves_to_an_endpoint_that_takes_fewer_at_once(
    embedder: Callable[..., Embedder], server: FakeOpenAI, most: int, refusal: Reply
) -> None:
    server.embedding_reply = lambda body: refusal if len(body["input"]) > most else None
    asked = embedder()
    texts = [f"말 {number}" for number in range(20)]
    for _ in range(2):
        assert vectors(asked.embed(texts, deadline_seconds=5)) == [
            [round(value, 5) for value in meaning_of(said)] for said in texts
        ]
    learned = [len(body["input"]) for body, _ in server.embeddings]
    assert sum(learned[-len(texts) :]) >= len(texts)
    again = next(at for at in range(len(learned)) if sum(learned[at:]) == len(texts))
    assert max(learned[again:]) <= most  # none is refused any more


def test_a_long_text_among_short_ones_doesnt_make_the_parts_small(
    embedder: Callable[..., Embedder], server: FakeOpenAI
) -> None:
    refusal = failure(400, "input (600 tokens) is too large to process")
    server.embedding_reply = lambda body: refusal if max(map(len, body["input"])) > 500 else None
    asked = embedder()
    texts = [*(f"말 {number}" for number in range(10)), "가" * 900, *(f"글 {number}" for number in range(10))]
    for _ in range(2):
        assert len(vectors(asked.embed(texts, deadline_seconds=5))) == len(texts)
    assert len(server.embeddings[-1][0]["input"]) == len(texts)


def test_an_existing_chat_is_embedded_by_an_endpoint_of_ten_texts(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    for number in range(14):
        server.script(text(f"{number}번 답입니다."), to=f"{number}번째 말")
        chat.say(f"{number}번째 말입니다.")
    chat.close()
    server.embedding_reply = lambda body: LIMITS[0][1] if len(body["input"]) > 10 else None
    again = open_chat(chat.session_id, **MODEL)
    again.say("이제 시작합니다.")
    wait_for_vectors(again)
    assert len(vectors_in(again)) == 30


BROKEN: Final = [
    {},
    {"data": []},
    {"data": [{"embedding": [1.0]}]},
    {"data": [{"embedding": [1.0]}, {"embedding": [1.0, 2.0]}]},
    {"data": [{"embedding": []}, {"embedding": []}]},
    {"data": [{"embedding": ["a"]}, {"embedding": ["b"]}]},
    {"data": [{"embedding": None}, {"embedding": [1.0]}]},
    {"data": [{"embedding": [float("nan")]}, {"embedding": [1.0]}]},
    {"data": ["a", "b"]},
    {"data": {"a": 1}},
    [],
    "a page",
]


@pytest.mark.parametrize("answer", BROKEN, ids=str)
def test_an_answer_of_another_shape_is_a_failure(
    embedder: Callable[..., Embedder], server: FakeOpenAI, answer: object
) -> None:
    server.embedding_reply = lambda _: answer
    assert embedder().embed(["a", "b"], deadline_seconds=5) is None


def test_an_endpoint_rests_a_minute_after_a_failure(embedder: Callable[..., Embedder], server: FakeOpenAI) -> None:
    now = [1_000.0]
    asked = embedder(lambda: now[0])
    server.embedding_reply = failure(503)
    assert asked.embed(["a"], deadline_seconds=5) is None
    server.embedding_reply = None
    now[0] += 59
    assert asked.embed(["a"], deadline_seconds=5) is None
    assert len(server.embeddings) == 1
    now[0] += 2
    assert asked.embed(["a"], deadline_seconds=5) is not None


def test_a_deadline_and_a_stop_end_the_call(embedder: Callable[..., Embedder], server: FakeOpenAI) -> None:
    server.embedding_reply = hang()
    assert embedder().embed(["a"], deadline_seconds=0.05) is None
    stop = threading.Event()
    stop.set()
    with pytest.raises(TurnStoppedSignal):
        embedder().embed(["a"], deadline_seconds=60, stop=stop)


def no_pool() -> NoReturn:
    raise AssertionError


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({}, "sk-chat"),
        ({"embedding_api_key": KEY}, KEY),
        ({"embedding_base_url": "http://127.0.0.1:1/v1"}, "not-needed"),
        ({"embedding_base_url": "http://127.0.0.1:1/v1", "embedding_api_key": KEY}, KEY),
    ],
)
def test_the_chats_key_goes_to_the_chats_endpoint_alone(
    make_settings: MakeSettings, settings: dict[str, object], key: str
) -> None:
    with ModelCaller() as caller:
        made = embedder_of(
            make_settings(**MODEL, **settings),
            caller,
            no_pool,
            url="u",
            key="sk-chat",
            no_key="not-needed",
        )
        assert made is not None
        assert made._key == key  # noqa: SLF001  # what it would send


# The store.


def vector_of(said: str) -> bytes:
    import numpy as np  # noqa: PLC0415  # late, as in the product

    return np.asarray(meaning_of(said), "<f4").tobytes()


@pytest.mark.both_engines
def test_the_nearest_live_turns_of_a_session_are_found(stores: StoreSet) -> None:
    lease = stores.make_session()
    for number, message in enumerate(SAID):
        turn = stores.begin(lease, f"q{number}", message)
        stores.say(lease, turn, AIMessage("네, 알겠습니다.", id=f"a{number}"))
        stores.turns.finish(lease, turn.number, "finished")

    def fill(model: str = "m") -> None:
        while batch := stores.vectors.missing(SESSION, model, limit=3):
            stores.vectors.keep(SESSION, model, {each.position: vector_of(each.text) for each in batch})

    def nearest(said: str, **within: int) -> list[int]:
        given = {"from_turn": 1, "before_turn": 100, "limit": 9, **within}
        return stores.vectors.turns(SESSION, "m", vector_of(said), **given)

    assert not stores.vectors.has_any(SESSION)
    assert nearest("예산") == []
    assert [each.position for each in stores.vectors.missing(SESSION, "m", limit=3)] == [8, 7, 6]
    fill()
    assert stores.vectors.missing(SESSION, "m", limit=3) == []
    assert stores.vectors.has_any(SESSION)
    assert nearest("예산")[0] == 1
    assert nearest("호텔", from_turn=2)[0] == 3
    assert nearest("예산", from_turn=2, before_turn=4, limit=1) != [1]
    assert sorted(nearest("예산")) == [1, 2, 3, 4]
    assert stores.vectors.turns(SESSION, "another", vector_of("예산"), before_turn=100, limit=9) == []
    assert stores.vectors.turns(SESSION, "m", b"\0" * 8, before_turn=100, limit=9) == []  # of another size
    # An earlier attempt isn't found, nor what has no text.
    again = stores.turns.begin_attempt(lease, 4, model="m")
    stores.say(lease, again, AIMessage("예산 경비 비용", id="second"))
    stores.vectors.keep(SESSION, "m", {each.position: b"" for each in stores.vectors.missing(SESSION, "m", limit=9)})
    assert stores.vectors.missing(SESSION, "m", limit=9) == []
    assert nearest("예산")[0] == 1
    # Vectors of another model take their place; those of a deleted session are dropped.
    fill("m2")
    assert nearest("예산") == []
    stores.vectors.keep("gone", "m", {1: vector_of("예산")})
    SessionStore(stores.database).delete(SESSION, OWNER)
    assert not stores.vectors.has_any(SESSION)
    stores.vectors.keep(SESSION, "m", {1: vector_of("예산")})
    assert not stores.vectors.has_any(SESSION)
    assert import_lines(stores.database, export_lines(stores.database), owner=None).session_count == 0
