from __future__ import annotations

from prompt.summary.in_place_generator import BEGINNING
from tests.fake.body import content_of, faults, roles, shape
from tests.fake.caching import (
    ALWAYS,
    CachingResponder,
    all_tokens,
    before_summaries,
    is_in_place,
    lookup,
    shared_tokens,
)
from tests.fake.chat import question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, Body, Reply, ScriptedCall, text, tools
from tests.fake.openai_responder import kind_of
from tests.fake.openai_server import FakeOpenAI


def test_a_fold_is_the_conversation_as_it_was_last_sent_its_answer_and_one_instruction(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 4)
    third, (asked,) = cached.bodies("chat")[2], cached.bodies("summary")
    assert asked["messages"][:-2] == third["messages"]
    assert asked["messages"][-2] == {"role": "assistant", "content": chat.turns[2].answer_text}
    assert roles(asked)[-1] == "user"
    instruction = content_of(asked["messages"][-1])
    assert instruction.startswith(
        f"{BEGINNING['ko']} 답하거나 도구를 쓰지 말고 위의 1-3턴을 요약하세요: «질문 1번입니다."
    )
    assert "마지막 답까지. " in instruction
    assert '"(1턴) … (2턴) …"' in instruction
    (record,) = chat.service.folds.records(chat.session_id)
    assert (
        f" 공백 포함 {round(record.target_chars * 0.85)}자쯤, 많아도 {round(record.target_chars * 1.25)}자."
        in instruction
    )
    assert asked["tools"] == third["tools"]
    assert asked["tool_choice"] == "none"
    assert "tool_choice" not in third
    assert faults(asked["messages"]) == []
    assert shape(cached.bodies("chat")[3]) == [(1, 3), 4]


def test_the_bytes_before_the_answer_are_those_sent_before(open_chat: OpenChat, cached: FakeOpenAI) -> None:
    chat = open_chat(tools=[lookup(2_000)])
    cached.script(tools(ScriptedCall("look_up", '{"case": "7"}', "call-1")), to="질문 2번")
    chat.ask(1, 3)
    (*_, third), (asked,) = (
        [exchange.sent.decode() for exchange in cached.exchanges if exchange.kind == kind]
        for kind in ("chat", "summary")
    )
    begin = third.index('"messages":[')
    end = third.index(f'{question(3)}"')
    assert asked[begin:].startswith(third[begin:end])
    assert '"tool_calls"' in third[begin:end]
    tools_in = [sent[sent.index('"tools":') :].partition(',"tool_choice"')[0].rstrip("}") for sent in (third, asked)]
    assert tools_in[0] == tools_in[1]


def test_six_in_seven_tokens_of_a_request_in_place_are_a_prefix_of_the_one_before(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    server.respond_with(CachingResponder(reply=_looking_up))
    chat = open_chat(tools=[lookup(10_000)])
    chat.ask(1, 13)
    pairs = list(before_summaries(server))
    assert len(pairs) == 4
    for before, asked in pairs:
        assert is_in_place(asked)
        assert shared_tokens(before, asked) / all_tokens(asked) >= 0.85
    for record in chat.service.folds.records(chat.session_id):
        assert record.is_usage
        assert record.outcome == "compressed"


def test_without_tools_a_long_chats_requests_in_place_are_mostly_prefix(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 48)
    pairs = [(before, asked) for before, asked in before_summaries(cached) if is_in_place(asked)]
    assert len(pairs) == 16
    shared = [shared_tokens(before, asked) for before, asked in pairs]
    sent = [all_tokens(asked) for _, asked in pairs]
    assert sum(shared) / sum(sent) >= 0.85


def _looking_up(body: Body) -> Reply | None:
    """Looks something up in the first turn of each block."""
    if kind_of(body) == "summary" or roles(body)[-1] != "user":
        return None
    number = int(content_of(body["messages"][-1]).partition("번")[0].split()[-1])
    call = ScriptedCall("look_up", f'{{"case": "{number}"}}', f"call-{number}")
    return tools(call, usage=CACHED_USAGE) if number % 3 == 1 else None


def test_what_was_said_before_the_block_is_before_the_next_fold_in_place(
    open_chat: OpenChat, cached: FakeOpenAI
) -> None:
    chat = open_chat()
    chat.ask(1, 7)
    first, second = cached.bodies("summary")
    assert shape(second)[:4] == [(1, 3), 4, 5, 6]
    assert second["messages"][:-2] == cached.bodies("chat")[5]["messages"]
    assert "4-6턴" in content_of(second["messages"][-1])
    assert chat.covered == [(1, 2, 3), (4, 5, 6)]
    assert len(first["messages"]) == len(second["messages"])


def test_a_turn_with_tools_is_remembered_with_its_last_round(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    chat.ask(1, 2)
    server.script(
        tools(ScriptedCall("get_current_time", "{}", "call-1")), text("지금은 낮입니다. " * 20), to="질문 3번"
    )
    chat.ask(3, 4)
    (asked,) = server.bodies("summary")
    assert roles(asked)[-5:] == ["user", "assistant", "tool", "assistant", "user"]
    assert faults(asked["messages"]) == []
    assert chat.covered == [(1, 2, 3)]


def test_an_english_session_is_asked_in_english(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(**ALWAYS)
    for number in range(1, 5):
        chat.say(f"Question {number}: the move of the server is set for October {number}. Is anything missing? " * 3)
        chat.wait_for_folds()
    (asked,) = server.bodies("summary")
    instruction = content_of(asked["messages"][-1])
    assert instruction.startswith("[Summary request] Don't answer and use no tools: condense turns 1-3 of")
    assert "from “Question 1: the move…” to the last answer." in instruction
    assert not any("가" <= char <= "힣" for char in instruction)
    assert chat.covered == [(1, 2, 3)]
