"""What a model was sent, told again from the tables: its blocks, its hash and the request itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graph.core.model_input import assemble, system_part
from graph.fold.request import LastInput
from graph.node.fold_worker import LastInputs
from graph.value.error import NotFoundError
from graph.value.view import CallInput, SentRequest, TurnOptions
from tests.fake.body import tokens_of
from tests.fake.chat import Chat, question
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import asked_by, tool
from tests.fake.store import OWNER, SESSION, StoreSet

KEY = "sk-scripted-key-of-the-tests"
EARLY = {"window_turns": 2, "app_context_threshold": 500, "max_context_tokens": 1_000}
REASONING = json.dumps({"material": "갑은 을보다 크다.", "question": "질문 3번: 누가 더 큰가?"})
CLOCK = ScriptedCall("get_current_time", "{}", "call-1")
PNG = "data:image/png;base64," + "iVBORw0K" * 500


def calls_of(chat: Chat) -> list[tuple[int, CallInput]]:
    turns = chat.service.inputs.called_turns(chat.session_id)
    return [(turn, call) for turn in turns for call in chat.service.inputs.of_turn(chat.session_id, turn)]


def last_call(chat: Chat, turn: int) -> CallInput:
    return chat.service.inputs.of_turn(chat.session_id, turn)[-1]


def requests(chat: Chat) -> list[SentRequest]:
    return [
        chat.service.inputs.request(chat.session_id, turn, attempt=call.attempt, ordinal=call.ordinal)
        for turn, call in calls_of(chat)
    ]


def body_of(request: SentRequest) -> Any:  # noqa: ANN401  # JSON
    assert request.body is not None
    return json.loads(request.body)


def tool_names(body: Body) -> list[str]:
    return [told["function"]["name"] for told in body["tools"]]


def check_as_sent(chat: Chat, bodies: list[Body]) -> None:
    """Every input has its hash, and the request that is built again is the one that was sent, key by key in order."""
    assert [call.is_verified for _, call in calls_of(chat)] == [True] * len(bodies)
    made = requests(chat)
    assert [request.is_verified for request in made] == [True] * len(bodies)
    assert not any(request.lacks_tools or request.is_of_program or request.is_embedded for request in made)
    assert [json.dumps(body_of(request)) for request in made] == [json.dumps(body) for body in bodies]


def check_blocks(call: CallInput, body: Body) -> None:
    """Every block stands in what was sent, and all of them add up to it."""
    words = json.dumps(body["messages"], ensure_ascii=False)
    assert sum(block.tokens for block in call.blocks) == call.sent_tokens
    for block in call.blocks:
        if block.kind in ("tools", "note"):
            assert block.text is None
        elif block.kind != "call" and "(tool call: " not in (told := block.text or ""):
            assert all(json.dumps(line, ensure_ascii=False)[1:-1] in words for line in told.splitlines())


def change(chat: Chat, statement: str) -> None:
    chat.change(f"{statement} WHERE session_id = '{chat.session_id}'")


@pytest.mark.parametrize(
    ("strategy", "language"),
    [
        ("interval", "ko"),
        pytest.param("interval", "en", marks=pytest.mark.slow),
        ("rolling", "en"),
        ("compaction", "ko"),
        pytest.param("window", "ko", marks=pytest.mark.slow),
    ],
)
def test_every_call_is_told_and_built_again_as_it_was_sent(
    chat_with: OpenChat, server: FakeOpenAI, strategy: str, language: str
) -> None:
    chat = chat_with(**EARLY, context_strategy=strategy)
    chat.say("안녕하세요!" if language == "ko" else "Hello!")
    server.script(tools(CLOCK), text(" ".join(["낮입니다."] * 40)), to="질문 2번")
    server.script(
        tools(ScriptedCall("reasoning", REASONING, "call-2")), text("갑이다."), text("갑입니다."), to="질문 3번"
    )
    chat.ask(2, 7)
    chat.say("고마워요!" if language == "ko" else "Thank you!")
    chat.regenerate()
    bodies = server.bodies("chat")
    check_as_sent(chat, bodies)
    calls = [call for _, call in calls_of(chat)]
    for call, body in zip(calls, bodies, strict=True):
        check_blocks(call, body)
    assert (calls[-1].attempt, calls[-1].ordinal) == (2, 1)
    # The call that a tool makes shows what it asked.
    _, side_request, _ = chat.service.inputs.of_turn(chat.session_id, 3)
    assert (side_request.kind, side_request.ordinal, [block.kind for block in side_request.blocks]) == (
        "reasoning",
        2,
        ["system", "call"],
    )
    assert "갑은 을보다 크다." in (side_request.blocks[1].text or "")
    assert KEY not in json.dumps([request.body for request in requests(chat)])


def test_a_switched_strategy_is_told_by_the_hash(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**EARLY)
    chat.ask(1, 4)
    for strategy in ("rolling", "window", "compaction"):
        chat.service.sessions.configure(chat.session_id, strategy=strategy)
        chat.ask(len(chat.turns) + 1, len(chat.turns) + 2)
    check_as_sent(chat, server.bodies("chat"))


def test_the_last_round_of_tools_forbids_them_and_its_note_is_found_again(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    def calls_while_it_may(body: Body) -> Reply:
        return tools(CLOCK) if body.get("tool_choice") != "none" else text("낮입니다.")

    server.respond_with(calls_while_it_may)
    chat = chat_with(tool_rounds=2)
    chat.say(question(1))
    check_as_sent(chat, server.bodies("chat"))
    assert [body_of(request).get("tool_choice") for request in requests(chat)] == [None, None, "none"]


def test_an_endpoint_that_refuses_the_choice_is_shown_what_it_was_sent_then(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    server.script(failure(400, "tool_choice is not supported"), text("안녕하세요."))
    chat.say("안녕하세요!")
    _, again = requests(chat)
    assert body_of(again) == server.bodies("chat")[1]
    assert "tool_choice" not in body_of(again)


def test_another_server_builds_them_again_and_says_which_tools_it_lacks(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    with open_chat() as chat:
        chat.ask(1, 4)
    with open_chat(chat.session_id) as chat:
        check_as_sent(chat, server.bodies("chat"))
    without = open_chat(chat.session_id, tools=[])
    for request in requests(without):
        assert (request.is_verified, request.lacks_tools) == (True, True)
        assert "tools" not in body_of(request)
    assert calls_of(without)[0][1].blocks[-1].tools == ()


def test_the_context_and_the_tools_of_a_project_are_told(
    open_chat: OpenChat, server: FakeOpenAI, tmp_path: Path
) -> None:
    options = TurnOptions(project_root=str(tmp_path))
    with open_chat(context=lambda _: ("규칙: 짧게", "지금 파일: a.py"), project_roots=(tmp_path,)) as chat:
        chat.say(question(1), options=options)
        ((_, call),) = calls_of(chat)
        assert call.is_verified
        assert [block.text for block in call.blocks if block.kind == "context"] == ["규칙: 짧게", "지금 파일: a.py"]
    chat = open_chat(project_roots=(tmp_path,))
    chat.say(question(1), options=options)
    check_as_sent(chat, server.bodies("chat")[1:])
    assert "read_rule" in {told.name for told in calls_of(chat)[0][1].blocks[-1].tools}


def test_each_tool_is_told_with_its_schema(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    ((_, call),) = calls_of(chat)
    (body,) = server.bodies("chat")
    assert [json.loads(told.text) for told in call.blocks[-1].tools] == [sent["function"] for sent in body["tools"]]
    assert [told.name for told in call.blocks[-1].tools] == ["get_current_time", "web_search", "reasoning", "recall"]
    assert not any(block.tools for block in call.blocks[:-1])


def test_what_a_program_added_is_said_to_be_missing_and_a_tool_that_it_replaced_is_left_out(chat: Chat) -> None:
    chat.say(question(1), options=asked_by(tools=(tool("look_up"),), sampling={"temperature": 0.5}))
    chat.say(question(2), options=asked_by(tools=(tool("web_search"),)))
    chat.say(question(3))
    added, _, after = requests(chat)
    assert (added.is_verified, added.lacks_tools, added.is_of_program) == (True, True, True)
    assert not after.lacks_tools
    assert tool_names(body_of(after)) == ["get_current_time", "reasoning", "recall"]


def test_images_are_shortened(chat: Chat, server: FakeOpenAI) -> None:
    chat.service.turns.send(chat.session_id, question(1), images=[PNG])
    chat.events()
    (request,) = requests(chat)
    assert request.is_verified
    assert PNG not in (request.body or "")
    shown, sent = body_of(request)["messages"][-1]["content"], server.bodies("chat")[0]["messages"][-1]["content"]
    assert (shown[0], shown[1]["type"]) == (sent[0], sent[1]["type"])
    assert shown[1]["image_url"]["url"] == f"{PNG[:64]}… (4022 characters)"


def test_what_was_changed_in_the_tables_is_said_not_to_be_what_was_sent(chat: Chat) -> None:
    chat.ask(1, 4)
    change(chat, "DELETE FROM record")
    call = last_call(chat, 4)
    assert not call.is_verified
    assert [block.text for block in call.blocks if block.kind == "record"] == [None]
    assert last_call(chat, 3).is_verified
    change(chat, "UPDATE message SET content = replace(content, '김민수', '이영희')")
    assert not any(call.is_verified for _, call in calls_of(chat))
    assert "이영희" in (last_call(chat, 1).blocks[1].text or "")
    first = requests(chat)[0]
    assert not first.is_verified
    assert "이영희" in (first.body or "")
    change(chat, 'UPDATE model_call SET manifest = \'[0,["system","gone",9,1]]\'')
    assert (requests(chat)[0].body, requests(chat)[0].is_verified) == (None, False)  # without its prompt


def test_the_embedded_model_is_handed_the_same_and_says_that_nothing_left(open_chat: OpenChat) -> None:
    chat = open_chat(models=models_without_pauses, **KEYLESS)
    chat.ask(1, 1)
    (request,) = requests(chat)
    assert (request.is_verified, request.is_embedded) == (True, True)
    assert list(body_of(request)) == ["model", "messages", "tools"]


def test_a_call_that_never_was_is_not_found(chat: Chat) -> None:
    chat.ask(1, 1)
    inputs = chat.service.inputs
    with pytest.raises(NotFoundError):
        inputs.of_turn(chat.session_id, 2)
    for call in ({"attempt": 2, "ordinal": 1}, {"attempt": 1, "ordinal": 2}):
        with pytest.raises(NotFoundError):
            inputs.request(chat.session_id, 1, **call)


# What a provider may have kept of it


def retained(call: CallInput) -> list[str]:
    return [block.kind for block in call.blocks if block.is_cacheable]


def test_a_call_has_before_it_what_the_last_one_of_its_model_was_sent(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(401), tools(CLOCK), text("낮입니다."))
    chat.say(question(1))
    chat.retry()
    failed, first, second = chat.service.inputs.of_turn(chat.session_id, 1)
    assert (failed.error_code, failed.attempt, failed.is_verified) == ("authentication", 1, True)
    assert (first.error_code, first.attempt, first.is_verified) == ("", 2, True)
    assert (retained(first), first.cacheable_tokens) == ([], 0)  # nothing was kept of a call that failed
    assert second.cacheable_tokens == first.sent_tokens
    chat.ask(2, 3)
    third = last_call(chat, 3)
    assert retained(third) == ["system", *["message"] * 5, "tools"]
    assert third.cacheable_tokens == third.sent_tokens - sum(block.tokens for block in third.blocks[6:8])
    chat.say(question(4), options=TurnOptions(model="other-model"))
    assert last_call(chat, 4).cacheable_tokens == 0


def test_a_fold_leaves_the_prompt_and_the_records_before_it(chat: Chat) -> None:
    chat.ask(1, 8)
    assert retained(last_call(chat, 4)) == ["system", "tools"]
    assert retained(last_call(chat, 7)) == ["system", "record", "tools"]
    assert [(block.kind, block.turns) for block in last_call(chat, 8).blocks] == [
        ("system", ()),
        ("record", (1, 2, 3)),
        ("record", (4, 5, 6)),
        *[("ledger", (turn,)) for turn in range(1, 7)],
        *[("message", (7,))] * 2,
        ("message", (8,)),
        ("tools", ()),
    ]
    # A fork has called no model yet.
    assert chat.service.inputs.called_turns(chat.session_id) == tuple(range(1, 9))
    fork = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=2))
    assert fork.service.inputs.called_turns(fork.session_id) == ()
    fork.ask(3, 3)
    assert fork.service.inputs.called_turns(fork.session_id) == (3,)


def test_a_record_is_sent_without_its_question_once_the_next_one_stands(chat: Chat, server: FakeOpenAI) -> None:
    summaries = [
        "\n".join([*(f"({turn}턴) {question(turn)[:70]}" for turn in range(first, first + 3)), f"질문: {first}번은요?"])
        for first in (1, 4)
    ]
    server.script(*map(text, summaries), kind="summary")
    chat.ask(1, 8)
    before, after = last_call(chat, 6), last_call(chat, 7)
    assert [record.summary for record in chat.service.folds.records(chat.session_id)] == summaries
    assert [block.text for block in before.blocks if block.kind == "record"] == [summaries[0]]
    left = summaries[0].rpartition("\n")[0]
    assert [block.text for block in after.blocks if block.kind == "record"] == [left, summaries[1]]
    # What is left is where the input before began, so that all of it may be cached.
    assert retained(after) == ["system", "record", "tools"]
    check_as_sent(chat, server.bodies("chat"))
    check_blocks(after, server.bodies("chat")[-2])


def test_the_whole_history_since_the_last_reset_is_what_the_full_tokens_count(chat: Chat, server: FakeOpenAI) -> None:
    inputs, session_id = chat.service.inputs, chat.session_id
    chat.ask(1, 5)
    call = last_call(chat, 5)
    history = inputs.history(session_id, 5, last=30)
    assert [turn.number for turn in history] == [1, 2, 3, 4, 5]
    asked = sum(turn.tokens for turn in history[:4]) + history[4].messages[0].tokens
    beside = sum(block.tokens for block in call.blocks if block.kind == "tools")
    assert 0 <= call.full_tokens - asked - beside < tokens_of(server.bodies("chat")[0])
    assert [block.text for block in history[0].messages] == [chat.turns[0].user_text, chat.turns[0].answer_text]
    assert [turn.number for turn in inputs.history(session_id, 5, last=2)] == [4, 5]
    chat.service.folds.reset(session_id)
    chat.ask(6, 7)
    assert last_call(chat, 6).full_tokens == last_call(chat, 6).sent_tokens
    assert [turn.number for turn in inputs.history(session_id, 7, last=30)] == [6, 7]
    assert last_call(chat, 5).full_tokens == call.full_tokens
    assert inputs.history(session_id, 5, last=30)[0].number == 1
    assert [point.full_tokens for point in chat.service.folds.chart(session_id)] == [
        last_call(chat, turn).full_tokens for turn in (6, 7)
    ]


# The inputs that folds in place go behind


def last_of(name: str) -> LastInput:
    sent = assemble(system_part("ko", can_recall=True), (), [HumanMessage(name, id=name)])
    return LastInput("m", sent, (), AIMessage("답", id=f"{name}-answer"))


def test_only_the_newest_sessions_are_remembered() -> None:
    inputs, never = LastInputs(lambda: "always"), LastInputs(lambda: "never")
    for number in range(100):
        inputs.keep(f"s{number}", last_of(f"s{number}"))
        inputs.keep("s0", last_of(f"again {number}"))
    assert len(inputs) == 64
    assert [name in inputs for name in ("s0", "s99", "s1")] == [True, True, False]
    inputs.forget("s0")
    assert "s0" not in inputs
    never.keep("s1", last_of("s1"))
    assert len(never) == 0


def test_a_cache_is_at_work_where_one_of_the_last_calls_read_from_it(stores: StoreSet) -> None:
    lease = stores.make_session()
    stores.run_turn(lease, "one")
    assert not stores.calls.recent(SESSION, is_branch=False).reads_cache
    stores.calls.add(lease, stores.make_call("c0", 1, usage_cached_tokens=None), OWNER)
    stores.calls.add(lease, stores.make_call("c1", 1, usage_cached_tokens=0), OWNER)
    stores.calls.add(lease, stores.make_call("c2", 1, kind="reasoning", usage_cached_tokens=9), OWNER)
    assert not stores.calls.recent(SESSION, is_branch=False).reads_cache
    stores.calls.add(lease, stores.make_call("c3", 1, usage_cached_tokens=64), OWNER)
    assert stores.calls.recent(SESSION, is_branch=False).reads_cache
    for number in range(20):
        stores.calls.add(lease, stores.make_call(f"d{number}", 1, usage_cached_tokens=0), OWNER)
    assert not stores.calls.recent(SESSION, is_branch=False).reads_cache
