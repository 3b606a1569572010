"""Note by note what a program meets that resends its whole chat; over the real service and a scripted endpoint."""

from __future__ import annotations

import pytest

from graph.client import ClientUsage, Hint
from graph.error import BusyError, InputError, NotFoundError, ServerBusyError
from graph.event import ActionRequired, AnswerRestarted, Folded, TurnFailed, TurnFinished, TurnStopped
from tests.fake.body import content_of, faults, shape, summaries, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import CACHED_USAGE, ScriptedCall, chunk, failure, hang, raw, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.resending import Program, assistant, result, user

TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
CHAT_ID = Hint("x-openwebui-chat-id", "c0ffee")


def begin(chat: Chat, **fields: object) -> Program:
    return Program(chat.service, fields=fields)


def go(program: Program, first: int, last: int) -> None:
    """Has the turns `first` to `last`, each with the folds that it causes."""
    for number in range(first, last + 1):
        reading = program.ask(question(number))
        Chat(program.service, reading.session_id).wait_for_folds()


def counts(chat: Chat) -> list[int]:
    """How many sessions, turns, messages and records there are."""
    return [chat.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("session", "turn", "message", "record")]  # noqa: S608  # names of our own


def test_a_chat_that_is_resent_is_folded_like_the_pages(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(turns_per_minute=10_000)
    chat.ask(1, 50)
    page = server.bodies("chat")
    program = begin(chat)
    go(program, 1, 50)
    bodies = server.bodies("chat")[50:]
    assert [body["messages"] for body in bodies] == [body["messages"] for body in page]
    assert [body.get("tools") for body in bodies] == [body.get("tools") for body in page]
    assert shape(bodies[-1]) == [*((first, first + 2) for first in range(1, 48, 3)), 49, 50]
    assert counts(chat) == [2, 100, 200, 32]


def test_each_answer_names_its_session_and_turn(chat: Chat) -> None:
    program = begin(chat)
    first, second = program.ask(question(1)), program.ask(question(2))
    assert first.session_id == second.session_id
    assert [(reading.turn, reading.matched) for reading in (first, second)] == [(1, "new"), (2, "history")]
    assert first.completion.id != second.completion.id
    assert chat.service.sessions.get(first.session_id).turn_count == 2


@pytest.mark.parametrize("greeting", ["Hi", "안녕"])
def test_two_chats_that_begin_alike_stay_two(chat: Chat, server: FakeOpenAI, greeting: str) -> None:
    one, two = begin(chat), begin(chat)
    server.script(text("The first answer."), text("The second answer."))
    first, second = one.ask(greeting), two.ask(greeting)
    assert first.session_id != second.session_id
    assert two.ask(question(2)).session_id == second.session_id
    assert one.ask(question(2)).session_id == first.session_id
    assert counts(chat)[:2] == [2, 4]


def test_two_chats_with_equal_words_so_far_go_their_own_ways(chat: Chat, server: FakeOpenAI) -> None:
    one, two = begin(chat), begin(chat)
    server.script(text("Hello!"), text("Hello!"))
    sessions = {one.ask("Hi").session_id, two.ask("Hi").session_id}
    assert len(sessions) == 2
    first, second = one.ask(question(1)), two.ask(question(2))
    assert {first.session_id, second.session_id} == sessions
    assert one.ask(question(3)).session_id == first.session_id
    assert two.ask(question(4)).session_id == second.session_id


def test_two_owners_with_equal_histories_share_nothing(chat: Chat) -> None:
    ours = begin(chat)
    theirs = Program(chat.service.for_owner("bob"))
    first = ours.ask(question(1))
    second = theirs.ask(question(1))
    assert ours.messages == theirs.messages
    assert first.session_id != second.session_id
    assert theirs.ask(question(2)).session_id == second.session_id
    assert ours.ask(question(2)).session_id == first.session_id
    with pytest.raises(NotFoundError):
        theirs.ask(question(3), session=first.session_id)


@pytest.mark.parametrize("how", ["task header", "plain model", "template"])
def test_a_title_request_leaves_no_trace(chat: Chat, server: FakeOpenAI, how: str) -> None:
    program = begin(chat, hint=CHAT_ID)
    first = program.ask(question(1))
    before = counts(chat), chat.service.folds.statistics(first.session_id)
    title = "### Task:\nGenerate a concise title.\n<chat_history>\nUSER: Hi\n</chat_history>"
    asking = begin(chat, hint=CHAT_ID)
    fields = {"task header": {"task": "title_generation"}, "plain model": {"is_plain": True}, "template": {}}[how]
    reading = asking.ask(title, **fields)
    assert (reading.matched, reading.session_id) == ("aside", "")
    assert (counts(chat), chat.service.folds.statistics(first.session_id)) == before
    assert [message["role"] for message in server.bodies()[-1]["messages"]] == ["user"]
    assert program.ask(question(2)).turn == 2


def test_a_history_cut_in_front_lands_in_its_session_with_its_summaries(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 8)
    whole = program.ask(question(9))
    Chat(chat.service, whole.session_id).wait_for_folds()
    program.messages = program.messages[-6:]
    cut = program.ask(question(10))
    assert (cut.session_id, cut.turn, cut.matched) == (whole.session_id, 10, "tail")
    assert shape(server.bodies("chat")[-1]) == [(1, 3), (4, 6), (7, 9), 10]


def test_what_a_program_puts_before_the_known_history_is_sent_and_not_stored(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 4)
    stored = counts(chat)[2]
    server.script(text("그 예산으로 충분합니다."))
    program.messages = [user("Earlier: the budget is 77 won."), assistant("Noted."), *program.messages[-4:]]
    reading = program.ask(question(5))
    assert (reading.turn, reading.matched) == (5, "tail")
    body = server.bodies("chat")[-1]
    assert "the budget is 77 won" in content_of(body["messages"][-1])
    assert faults(body["messages"]) == []
    assert counts(chat)[2] == stored + 2
    program.messages = program.messages[2:]
    assert program.ask(question(6)).turn == 6
    assert "77 won" not in "".join(map(content_of, server.bodies("chat")[-1]["messages"]))


def test_a_system_prompt_with_the_time_in_it_makes_no_fork(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    for minute in range(4):
        program.options = {"system": f"Answer briefly. It is 12:0{minute}."}
        reading = program.ask(question(minute + 1))
        assert reading.turn == minute + 1
        assert f"It is 12:0{minute}." in system_prompt(server.bodies("chat")[-1])
    assert counts(chat)[0] == 1


def test_a_restart_between_any_two_requests_changes_nothing(open_chat: OpenChat, server: FakeOpenAI) -> None:
    program = Program(open_chat().service)
    sessions = set()
    for number in range(1, 6):
        with open_chat() as chat:
            program.service = chat.service
            reading = program.ask(question(number))
            assert reading.turn == number
            sessions.add(reading.session_id)
            Chat(chat.service, reading.session_id).wait_for_folds()
    assert len(sessions) == 1
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4, 5]


def test_an_edit_forks_once_and_going_back_returns_to_the_first_branch(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat, hint=CHAT_ID)
    go(program, 1, 8)
    session = program.ask(question(9)).session_id
    kept = list(program.messages)
    program.messages = program.messages[:8]
    edited = program.ask("질문 5번을 고쳤습니다. 서버는 부산에 둡니다. 예산은 얼마입니까?")
    assert (edited.turn, edited.matched) == (5, "fork")
    assert edited.session_id != session
    assert program.ask(question(6)).session_id == edited.session_id
    body = server.bodies("chat")[-1]
    assert summaries(body) == [(1, 3)]
    assert faults(body["messages"]) == []
    program.messages = kept
    back = program.ask(question(10))
    assert (back.session_id, back.turn) == (session, 10)
    assert counts(chat)[0] == 2


def test_the_last_question_again_is_a_new_attempt(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 2)
    server.script(text("Another answer."))
    question_again = program.messages[-2]
    program.messages = program.messages[:-1]
    reading = program.take(program.begin())
    assert reading.text == "Another answer."
    assert (reading.turn, program.messages[-2]) == (2, question_again)
    assert counts(chat)[:2] == [1, 2]
    assert program.ask(question(3)).turn == 3
    assert "Another answer." in [content_of(message) for message in server.bodies("chat")[-1]["messages"]]


def test_a_retry_of_a_running_turn_gets_that_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("Half"))
    program = begin(chat)
    program.messages = [user(question(1))]
    first = program.begin()
    first.wait_for_text()
    second = program.begin(is_retry=True)
    assert second.matched == "retry"
    assert (second.completion.id, second.completion.created) == (first.completion.id, first.completion.created)
    second.wait_for_text()
    assert second.text == "Half"
    second.completion.stop()
    assert isinstance(first.last, TurnStopped)
    assert isinstance(second.last, TurnStopped)
    assert len(server.bodies("chat")) == 1


@pytest.mark.parametrize("how", [{"is_retry": True}, {"idempotency_key": "once"}])
def test_a_retry_of_an_answered_request_gets_the_stored_answer(
    open_chat: OpenChat, server: FakeOpenAI, how: dict[str, object]
) -> None:
    fields = {name: value for name, value in how.items() if name == "idempotency_key"}
    with open_chat() as chat:
        first = begin(chat).ask(question(1), **fields)
        end = first.end
    with open_chat() as chat:
        second = begin(chat).ask(question(1), **how)
        assert second.text == first.text
        assert second.matched == "retry"
        assert (second.completion.id, second.completion.created) == (first.completion.id, first.completion.created)
        assert (second.end.usage, second.end.finish_reason) == (end.usage, end.finish_reason)
        assert counts(chat)[:2] == [1, 1]
    assert len(server.bodies("chat")) == 1


def test_retries_of_a_failed_request_make_one_turn(chat: Chat, server: FakeOpenAI) -> None:
    server.script(failure(503), failure(503))
    program = begin(chat)
    program.messages = [user(question(1))]
    assert isinstance(program.begin().last, TurnFailed)
    assert isinstance(program.begin(is_retry=True).last, TurnFailed)
    reading = program.take(program.begin(is_retry=True))
    assert reading.turn == 1
    assert counts(chat)[:2] == [1, 1]
    assert program.ask(question(2)).turn == 2


def test_a_program_that_stops_goes_on_in_its_session(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    reading.detach()
    reading.completion.stop()
    program.messages.append(assistant("The migr"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
    assert counts(chat)[:2] == [1, 3]


def test_a_program_that_left_without_a_word_has_its_turn_stopped_by_the_next_one(
    chat: Chat, server: FakeOpenAI
) -> None:
    program = begin(chat)
    program.ask(question(1))
    server.script(hang("The migration ", "is on the 10th"))
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    program.messages.append(assistant("The migr"))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (reading.session_id, 3)
    assert isinstance(reading.last, TurnStopped)


def test_a_busy_session_refuses_another_question_and_stores_nothing(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    first = program.ask(question(1))
    server.script(hang("Half"))
    kept = list(program.messages)
    program.messages.append(user(question(2)))
    reading = program.begin()
    reading.wait_for_text()
    before = counts(chat)
    program.messages = [*kept, user(question(3))]
    with pytest.raises(BusyError):
        program.begin()
    assert counts(chat) == before
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)
    assert first.session_id == reading.session_id


def test_several_models_in_one_chat_get_branches_of_their_own(chat: Chat, server: FakeOpenAI) -> None:
    server.script(hang("Half"))
    one = begin(chat, hint=CHAT_ID, model="scripted-model")
    two = begin(chat, hint=CHAT_ID, model="another")
    one.messages = two.messages = [user(question(1))]
    first = one.begin()
    first.wait_for_text()
    second = two.begin()
    assert isinstance(second.last, TurnFinished)
    assert second.session_id != first.session_id
    assert server.bodies("chat")[-1]["model"] == "another"
    first.completion.stop()
    assert isinstance(first.last, TurnStopped)


def test_a_session_that_is_named_goes_on_without_its_history(chat: Chat, server: FakeOpenAI) -> None:
    first = begin(chat).ask(question(1))
    second = begin(chat, session=first.session_id).ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "header")
    assert shape(server.bodies("chat")[-1]) == [1, 2]


def test_a_name_that_nobody_has_is_not_found(chat: Chat) -> None:
    before = counts(chat)
    with pytest.raises(NotFoundError):
        begin(chat, session="nobody").ask(question(1))
    assert counts(chat) == before


def test_a_history_that_was_never_seen_is_imported_and_folded(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    for number in range(1, 7):
        program.messages += [user(question(number)), assistant(f"{number}번의 답은 다른 서버가 했습니다. " * 8)]
    first = program.ask(question(7))
    assert (first.turn, first.matched) == (7, "new")
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    Chat(chat.service, first.session_id).wait_for_folds()
    second = program.ask(question(8))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 8, "history")
    assert summaries(server.bodies("chat")[-1])[:1] == [(1, 3)]
    turns = Chat(chat.service, first.session_id).turns
    assert [turn.user_text for turn in turns] == [question(number) for number in range(1, 9)]


def test_a_question_wrapped_in_found_documents_makes_no_fork(chat: Chat) -> None:
    program = begin(chat)
    program.ask(question(1))
    wrapped = program.ask(f"### Context:\n<source>서버 사양서</source>\n\n{question(2)}")
    program.messages[-2] = user(question(2))
    after = program.ask(question(3))
    assert (after.session_id, after.turn) == (wrapped.session_id, 3)
    assert program.ask(question(4)).turn == 4
    assert counts(chat)[0] == 1


def test_another_models_answer_in_the_middle_forks_there(chat: Chat) -> None:
    program = begin(chat)
    go(program, 1, 3)
    program.messages[3] = assistant("두 번째 답은 다른 모델이 했습니다.")
    reading = program.ask(question(4))
    assert (reading.turn, reading.matched) == (4, "fork")
    answers = [turn.answer_text for turn in Chat(chat.service, reading.session_id).turns]
    assert answers[1] == "두 번째 답은 다른 모델이 했습니다."
    assert program.ask(question(5)).session_id == reading.session_id
    assert counts(chat)[0] == 2


def test_a_program_runs_its_own_tools(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (TOOL,)})
    calls = ScriptedCall("look", '{"at": "grass"}', "call-1"), ScriptedCall("look", '{"at": "sky"}', "call-2")
    server.script(tools(*calls, answer="Let me look.", usage=CACHED_USAGE))
    first = program.ask(question(1))
    assert isinstance(first.last, ActionRequired)
    assert [call.id for call in first.calls] == ["call-1", "call-2"]
    assert first.end.finish_reason == "tool_calls"
    assert first.end.usage == ClientUsage(100, 20, 64)
    program.messages += [result("call-2", "blue"), result("call-1", "green")]
    second = program.take(program.begin())
    assert (second.session_id, second.turn) == (first.session_id, 1)
    assert second.completion.id != first.completion.id
    assert second.end.finish_reason == "stop"
    assert second.end.usage is not None
    assert second.end.usage.cached_tokens != 64
    assert faults(server.bodies("chat")[-1]["messages"]) == []
    after = program.ask(question(2))
    assert (after.session_id, after.turn) == (first.session_id, 2)
    assert counts(chat)[:2] == [1, 2]


def test_results_that_are_missing_or_unknown_are_named(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (TOOL,)})
    calls = ScriptedCall("look", "{}", "call-1"), ScriptedCall("look", "{}", "call-2")
    server.script(tools(*calls, answer="Let me look."))
    program.ask(question(1))
    before, kept = counts(chat), list(program.messages)
    for results, named in ((["call-1"], "call-2"), (["call-1", "call-2", "call-3"], "call-3")):
        program.messages = [*kept, *(result(call, "grass") for call in results)]
        with pytest.raises(InputError, match=named):
            program.begin()
        assert counts(chat) == before


def test_a_question_in_place_of_results_closes_the_open_turn(chat: Chat, server: FakeOpenAI) -> None:
    program = Program(chat.service, options={"tools": (TOOL,)})
    server.script(tools(ScriptedCall("look", "{}", "call-1"), answer="Let me look."))
    first = program.ask(question(1))
    after = program.ask(question(2))
    assert (after.session_id, after.turn) == (first.session_id, 2)
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_the_text_that_was_sent_is_recognised_also_around_our_own_tools(chat: Chat, server: FakeOpenAI) -> None:
    server.script(tools(ScriptedCall("get_current_time", "{}", "call-1"), answer="One moment. "))
    program = begin(chat)
    first = program.ask(question(1))
    assert first.text.startswith("One moment. ")
    assert len(server.bodies("chat")) == 2
    second = program.ask(question(2))
    assert (second.session_id, second.turn, second.matched) == (first.session_id, 2, "history")


def test_what_was_said_is_never_taken_back(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(model_attempts=3)
    lost = raw(chunk({"content": "lost"}), '{"error": {"message": "overloaded", "code": 503}}')
    server.script(failure(503), lost)
    program = begin(chat)
    program.messages = [user(question(1))]
    reading = program.begin()
    assert isinstance(reading.last, TurnFailed)
    assert not any(isinstance(event, AnswerRestarted) for event in reading.events)
    assert len(server.bodies("chat")) == 2


def test_an_image_goes_out_as_it_came_and_needs_no_second_sending(chat: Chat, server: FakeOpenAI) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    program = begin(chat)
    program.messages = [user("What is this?", url)]
    first = program.take(program.begin())
    part = {"type": "image_url", "image_url": {"url": url}}
    assert part in server.bodies("chat")[-1]["messages"][-1]["content"]
    program.messages[0] = user("What is this?")
    second = program.ask(question(2))
    assert (second.session_id, second.turn) == (first.session_id, 2)


@pytest.mark.parametrize("history", [0, 3])
def test_a_refused_request_stores_nothing(open_chat: OpenChat, server: FakeOpenAI, history: int) -> None:
    chat = open_chat(concurrent_turns=1)
    server.script(hang("Half"))
    busy = begin(chat)
    busy.messages = [user(question(1))]
    reading = busy.begin()
    reading.wait_for_text()
    before = counts(chat)
    program = begin(chat)
    for number in range(history):
        program.messages += [user(question(number)), assistant(f"답 {number}")]
    program.messages.append(user("another question"))
    with pytest.raises(ServerBusyError):
        program.begin()
    assert counts(chat) == before
    reading.completion.stop()
    assert isinstance(reading.last, TurnStopped)


def test_a_refused_edit_leaves_no_fork(open_chat: OpenChat) -> None:
    chat = open_chat(turns_per_minute=4)
    program = begin(chat)
    go(program, 1, 4)
    before = counts(chat)
    program.messages = [*program.messages[:4], user("an edited question")]
    with pytest.raises(BusyError):
        program.begin()
    assert counts(chat) == before


def test_the_end_tells_usage_and_figures(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    go(program, 1, 3)
    server.script(text("A whole answer.", usage=CACHED_USAGE))
    reading = program.ask(question(4))
    assert any(isinstance(event, Folded) for event in reading.events)
    end = reading.end
    assert (end.finish_reason, end.usage) == ("stop", ClientUsage(100, 20, 64))
    figures = end.figures
    assert (figures["session"], figures["turn"], figures["matched"]) == (reading.session_id, 4, "history")
    assert (figures["records"], figures["folded_turns"]) == (1, 3)
    assert figures["sent_tokens_estimate"] > 0
    assert figures["fold_tokens"] > 0


def test_an_answer_without_reported_usage_has_none(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("A whole answer.", usage=None, finish_reason="length"))
    end = begin(chat).ask(question(1)).end
    assert (end.usage, end.finish_reason) == (None, "length")


def test_page_and_program_go_on_with_one_session(chat: Chat, server: FakeOpenAI) -> None:
    program = begin(chat)
    session = program.ask(question(1)).session_id
    page = Chat(chat.service, session)
    assert isinstance(page.say(question(2))[-1], TurnFinished)
    reading = program.ask(question(3))
    assert (reading.session_id, reading.turn) == (session, 3)
    assert shape(server.bodies("chat")[-1]) == [1, 2, 3]
    assert [turn.user_text for turn in page.turns] == [question(number) for number in (1, 2, 3)]
