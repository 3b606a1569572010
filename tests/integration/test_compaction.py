from __future__ import annotations

import json
import threading

import pytest
from langchain_core.tools import BaseTool, StructuredTool

from graph.value.error import BusyError, InputError
from graph.value.event import TurnFinished
from prompt.system.framing import LEDGER_HEADING
from tests.fake.body import content_of, faults, roles
from tests.fake.chat import Chat, names, question
from tests.fake.compacting import COMPACTING, ask_until_compacted, true_tokens, with_true_usage
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, ScriptedCall, failure, hang, text, tools
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.usefixtures("true_usage")

BY_HAND = {"context_strategy": "compaction", "max_context_tokens": 100_000}
HEADING = "[Previous conversation summary]"
FILES = [f"src/not_agent/tools/part_{number}.py" for number in range(1, 13)]
STEPS = [
    "Python 계산기 프로젝트를 만들어줘. 파일은 calculator.py로 하고 0으로 나누면 ValueError를 내줘",
    "테스트도 작성해줘. pytest를 쓰고 파일은 test_calculator.py로 해줘",
    "README.md도 작성해줘. 설치 방법과 사용 예를 넣어줘",
    "setup.py도 추가해줘. 지원하는 파이썬은 3.11 이상이야",
    "타입 힌트를 추가해줘. 모든 공개 함수에 붙여줘",
    "예외 메시지를 한국어로 바꿔줘. 다른 부분은 그대로 둬",
    "명령줄에서 쓸 수 있게 해줘. 인자는 식 하나만 받아줘",
    "로그를 남겨줘. 파일 이름은 calculator.log로 해줘",
]


def sent_texts(server: FakeOpenAI) -> list[str]:
    """The messages of the newest request."""
    return [content_of(message) for message in server.bodies("chat")[-1]["messages"]]


def history_tokens(body: Body) -> int:
    """The exact count of what was said before the open turn."""
    last = max(index for index, message in enumerate(body["messages"]) if message["role"] == "user")
    return true_tokens({"messages": body["messages"][1:last]})


def read_file() -> BaseTool:
    def read(path: str) -> str:
        return f"# {path}\n" + f"def load_{FILES.index(path)}(name): return open(name).read()\n" * 30

    return StructuredTool.from_function(read, name="read_file", description="Reads a file of the project.")


@pytest.mark.slow
def test_it_starts_by_itself_at_75_percent_and_halves_what_is_sent(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**COMPACTING | {"max_context_tokens": 6_000})
    ask_until_compacted(chat)
    # The summary is asked for when the answer is out: the call before it shows what was said until then.
    earlier, before, after = (history_tokens(body) for body in server.bodies("chat")[-3:])
    full = before + (before - earlier)
    # Our estimate is a twentieth over this text, and a report of less makes no room.
    assert 0.94 * 4_500 < full < 1.05 * 4_500
    # Each question decides something, which is kept word for word besides.
    assert after - chat.service.folds.ledger(chat.session_id).used_tokens <= full / 2


def test_the_seeds_checklist(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**COMPACTING)
    number = ask_until_compacted(chat)
    (record,) = chat.service.folds.compactions(chat.session_id)

    # It starts by itself at 75 percent, when the answer is out: the call before it shows what was said until then.
    earlier, before, after = (history_tokens(body) for body in server.bodies("chat")[-3:])
    assert before + (before - earlier) == pytest.approx(1_500, rel=0.1)
    assert after < before

    # The summary is made as the seed asks.
    body = server.bodies("summary")[0]
    assert roles(body) == ["system", "user"]
    assert content_of(body["messages"][0]) == "You are a helpful assistant that creates concise summaries."
    prompt = content_of(body["messages"][1])
    assert "**Task Overview**" in prompt
    assert "**Current State**" in prompt
    assert prompt.endswith("characters at most.")
    assert "1000 words" not in prompt
    # The seed's 2,048 tokens bound the summary; a reasoning model's thoughts count as its answer, too.
    assert body.get("max_tokens", body.get("max_completion_tokens")) == 4 * 2_048
    assert record.summary_tokens <= 2_048
    assert body["model"] == server.bodies("chat")[0]["model"]
    assert "<summary>" not in record.summary

    # The last four messages stay word for word.
    assert roles(server.bodies("chat")[-1]) == ["system", "user", "assistant", "user", "assistant", "user"]
    _, first, *rest = sent_texts(server)
    note = f"(위는 1-{record.turns[-1]}턴에 대해 당신이 쓴 요약입니다. 아래가 사용자의 메시지입니다.)"
    lines = dict.fromkeys(f"- ({line.turn}턴) {line.text}" for line in record.ledger)
    kept = "\n".join(["", "", LEDGER_HEADING["ko"], *lines])
    assert first == f"{HEADING}\n\n{record.summary}{kept}\n\n{note}\n\n---\n\n{question(number - 2)}"
    answers = [turn.answer_text for turn in chat.turns[number - 3 : number - 1]]
    assert rest == [answers[0], question(number - 1), answers[1], question(number)]

    # Its figures are told.
    assert (record.context_messages, record.context_messages_after) == (2 * (number - 1), 5)
    query = "SELECT sum(tokens) FROM message WHERE session_id = ? AND turn BETWEEN ? AND ?"
    assert chat.rows(query, chat.session_id, 1, number - 1) == [(record.context_tokens,)]
    ((retained,),) = chat.rows(query, chat.session_id, number - 2, number - 1)
    assert record.context_tokens_after == retained + record.summary_tokens

    # It comes again, and the tokens fall by half each time.
    numbers = [number, ask_until_compacted(chat)]
    listed = chat.service.folds.compactions(chat.session_id)
    assert [record.turns[-1] for record in listed] == [number - 3 for number in reversed(numbers)]
    assert all(0 < record.context_tokens_after <= record.context_tokens / 2 for record in listed)
    second = content_of(server.bodies("summary")[1]["messages"][1])
    assert listed[1].summary in second
    assert '<m from="previous summary">' in second
    assert all(faults(body["messages"]) == [] for body in server.bodies("chat"))


def test_a_turn_waits_for_its_compaction_and_the_user_is_told(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**COMPACTING | {"max_context_tokens": 1_000})
    is_waited = threading.Event()
    server.script(lambda body: with_true_usage(body) if is_waited.wait(30) else failure(500), kind="summary")

    def phase() -> str:
        live = chat.service.turns.live(chat.session_id)
        return live.phase if live else "over"

    for number in range(1, 60):
        chat.start(question(number))
        chat.wait_until(lambda: phase() in {"over", "folding"})
        if phase() == "folding":
            break
    is_waited.set()
    assert names(chat.events())[:3] == ["TurnStarted", "FoldWaiting", "Folded"]


def total_tokens(chat: Chat) -> int:
    usage = chat.rows("SELECT usage_input_tokens, sent_tokens FROM model_call")
    correction = float(sum(used for used, _ in usage) / sum(sent for _, sent in usage))
    return round(int(chat.rows("SELECT sum(tokens) FROM message")[0][0]) * correction)


def test_switched_off_it_warns_at_80_and_100_percent(open_chat: OpenChat, server: FakeOpenAI) -> None:
    manual = {"context_strategy": "compaction", "enable_auto_compaction": False}
    chat = open_chat(**manual, max_context_tokens=20_000)
    chat.say(question(1))
    while total_tokens(chat) < 1_640:
        chat.say(question(1))
    assert total_tokens(chat) < 1_900
    notices = [
        open_chat(chat.session_id, **manual, max_context_tokens=limit).view.context_notice
        for limit in (20_000, 1_950, 1_000)
    ]
    assert notices == ["", "nearly_full", "full"]
    assert server.bodies("summary") == []


# By hand


def test_compact_now(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(**BY_HAND)
    chat.ask(1, 3)
    with pytest.raises(InputError, match="nothing_to_compact"):
        chat.service.folds.compact(chat.session_id)
    chat.ask(4, 6)
    record = chat.service.folds.compact(chat.session_id)
    assert (record.kind, record.context_messages, record.context_messages_after) == ("compaction", 12, 5)
    assert record.context_tokens_after <= record.context_tokens / 2
    chat.ask(7, 7)
    assert sent_texts(server)[1].startswith(f"{HEADING}\n\n{record.summary}")
    assert question(4) not in sent_texts(server)
    assert len(chat.turns) == 7
    chat.ask(8, 9)
    server.script(failure(500), kind="summary")
    assert chat.service.folds.compact(chat.session_id).model == "extractive"


def test_the_commands_are_told_from_messages(chat: Chat) -> None:
    command_of = chat.service.folds.command_of
    for typed in ("/compact", " /Compact \n", "/COMPACT:"):
        assert command_of(typed) == ("compact", "")
    for typed in ("/compact keep\nthe prices", "/Compact: keep\nthe prices"):
        assert command_of(typed) == ("compact", "keep\nthe prices")
    assert (command_of("/reset"), command_of("/reset please")) == (("reset", ""), ("reset", "please"))
    for typed in ("compact", "/compaction of files", "/resetting", "please /compact"):
        assert command_of(typed) is None


def test_a_compaction_heeds_the_words_behind_its_command(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 6)
    with pytest.raises(InputError, match="301 > 300"):
        chat.service.folds.compact(chat.session_id, instruction="x" * 301)
    record = chat.service.folds.compact(chat.session_id, instruction=" keep the prices ")
    assert record.wish == "keep the prices"
    assert "“keep the prices”" in str(server.bodies("summary")[-1]["messages"][-1]["content"])


def test_words_behind_the_command_count_though_a_compaction_is_prepared(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(context_strategy="compaction", max_context_tokens=4_000, compaction_threshold=0.1)
    chat.ask(1, 4)
    prepared = chat.rows("SELECT count(*) FROM record WHERE session_id = ? AND status = 'COMPLETED'", chat.session_id)
    assert prepared == [(1,)]
    made = chat.service.folds.compact(chat.session_id, instruction="keep the prices")
    assert made.wish == "keep the prices"
    chat.ask(5, 5)
    assert sent_texts(server)[1].startswith(f"{HEADING}\n\n{made.summary}")


def test_each_compaction_of_the_list_can_be_restored_as_long_as_it_stands(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**BY_HAND)
    folds = chat.service.folds
    chat.ask(1, 6)
    first = folds.compact(chat.session_id)
    chat.ask(7, 9)
    second = folds.compact(chat.session_id)
    assert [record.id for record in folds.compactions(chat.session_id)] == [second.id, first.id]
    folds.restore(chat.session_id, second.id)
    assert [record.id for record in folds.compactions(chat.session_id)] == [first.id]
    chat.ask(10, 10)
    assert first.summary in sent_texts(server)[1]
    assert question(8) in sent_texts(server)
    # An older one takes the later ones along.
    folds.compact(chat.session_id)
    folds.restore(chat.session_id, first.id)
    assert folds.compactions(chat.session_id) == ()
    chat.ask(11, 11)
    assert [words for words in sent_texts(server) if words.startswith("질문 ")] == [question(n) for n in range(1, 12)]
    with pytest.raises(InputError, match="not_active"):
        folds.restore(chat.session_id, first.id)


def test_a_compaction_by_hand_can_be_stopped_and_the_session_is_busy_meanwhile(
    chat_with: OpenChat, server: FakeOpenAI
) -> None:
    chat = chat_with(**BY_HAND)
    chat.ask(1, 6)
    server.script(hang(is_silent=True), kind="summary")
    refused: list[InputError] = []

    def compact() -> None:
        try:
            chat.service.folds.compact(chat.session_id)
        except InputError as error:
            refused.append(error)

    worker = threading.Thread(target=compact)
    worker.start()
    chat.wait_until(lambda: chat.view.is_running)
    server.wait_until(lambda fake: fake.hanging_count == 1)
    with pytest.raises(BusyError):
        chat.start(question(7))
    with pytest.raises(BusyError):
        chat.service.folds.compact(chat.session_id)
    chat.service.turns.stop(chat.session_id)
    worker.join()
    assert [error.reason for error in refused] == ["compact_stopped"]
    server.wait_until(lambda fake: fake.open_count == 0)
    assert not chat.view.is_running
    assert chat.service.folds.records(chat.session_id) == ()
    chat.ask(7, 7)


# The seed's scenarios


def test_scenario_1_reading_large_files_in_a_row(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(context_strategy="compaction", tools=[read_file()], max_context_tokens=4_000)
    for number, path in enumerate(FILES, start=1):
        call = ScriptedCall("read_file", json.dumps({"path": path}), f"call-{number}")
        answer = f"{path}에는 load_{number - 1} 함수가 있고 이름을 받아 내용을 돌려줍니다."
        server.script(tools(call, usage=None), text(answer, usage=None))
        assert isinstance(chat.say(f'"{path}를 읽어줘"')[-1], TurnFinished)
        chat.wait_for_folds()
    listed = chat.service.folds.compactions(chat.session_id)
    assert listed
    assert all(record.context_tokens_after <= record.context_tokens / 2 for record in listed)
    chat.say("지금까지 읽은 파일들을 요약해줘")
    words = " ".join(sent_texts(server))
    assert FILES[0] in words
    assert FILES[-1] in words
    assert faults(server.bodies("chat")[-1]["messages"]) == []


def test_scenario_2_a_long_flow_of_work(chat_with: OpenChat, server: FakeOpenAI) -> None:
    chat = chat_with(context_strategy="compaction", max_context_tokens=1_200)
    for words in STEPS * 2:
        assert isinstance(chat.say(words)[-1], TurnFinished)
        chat.wait_for_folds()
    assert len(chat.service.folds.compactions(chat.session_id)) >= 2
    chat.say("처음에 부탁한 것이 무엇이었지?")
    sent_now = " ".join(sent_texts(server))
    assert "calculator.py" in sent_now
    assert "ValueError" in sent_now
