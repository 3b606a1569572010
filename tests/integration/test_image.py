from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from langchain_core.messages import HumanMessage

from graph.core.attached import reference_of
from graph.core.text import IMAGE_TOKENS
from graph.core.turn import text_of as message_text
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.transfer import export_lines, import_lines
from graph.value.client import ClientMessage
from graph.value.error import InputError, NotFoundError
from graph.value.event import TurnFailed, TurnFinished
from graph.value.view import NamedImage, TurnOptions
from tests.fake.body import faults, shape, system_prompt
from tests.fake.chat import Chat, question, text_of
from tests.fake.client_history import bring
from tests.fake.context_source import ScriptedContext
from tests.fake.offline import KEYLESS, models_without_pauses
from tests.fake.open_chat import OpenChat
from tests.fake.openai_reply import Body, Reply, ScriptedCall, failure, text, tools
from tests.fake.openai_server import FakeOpenAI
from tests.fake.program import tool
from tests.fake.resending import Program, go

PNG, JPEG, WEB = "data:image/png;base64,iVBORw0K", "data:image/jpeg;base64,/9j/4AAQ", "https://example.org/floor.png"


def send(chat: Chat, text: str, *images: str) -> object:
    chat.service.turns.send(chat.session_id, text, images=images)
    ending = chat.events()[-1]
    chat.wait_for_folds()
    return ending


def urls(message: Body) -> list[str]:
    content: Any = message["content"]
    return [] if isinstance(content, str) else [part["image_url"]["url"] for part in content if "image_url" in part]


def sent_images(server: FakeOpenAI) -> list[list[str]]:
    """The images of each user's message of the newest request."""
    return [urls(message) for message in server.bodies("chat")[-1]["messages"] if message["role"] == "user"]


def test_the_archive_has_each_image_once_and_the_state_none(open_chat: OpenChat) -> None:
    chat = open_chat()
    send(chat, question(1), PNG)
    send(chat, question(2), PNG, WEB)
    assert chat.rows("SELECT hash, data_url FROM image") == [(reference_of(PNG), PNG)]
    told = chat.rows("SELECT content FROM message ORDER BY position")
    assert not any(PNG in content for (content,) in told)
    assert WEB in told[2][0]
    assert PNG.encode() not in chat.service.settings.checkpoint_path.read_bytes()


def test_wherever_a_message_is_text_an_image_is_a_mark(chat: Chat, server: FakeOpenAI) -> None:
    server.script(text("사진에는 항구에 선 배 두 척이 있습니다. 날씨는 맑습니다."))  # a Korean chat
    send(chat, "", WEB)
    send(chat, question(2), PNG)
    assert [turn.user_text for turn in chat.turns] == ["[image]", f"{question(2)}\n[image]"]
    chat.ask(3, 4)
    sent = str(server.bodies("summary"))
    assert "[image]" in sent
    assert PNG not in sent
    assert shape(server.bodies("chat")[-1]) == [(1, 3), 4]
    assert sent_images(server) == [[]]
    query = "SELECT tokens FROM message WHERE role = 'human' AND session_id = ? ORDER BY position"
    tokens = [tokens for (tokens,) in chat.rows(query, chat.session_id)]
    assert tokens[1] > IMAGE_TOKENS > tokens[2]
    # The mark is of no language: the session is one in Korean.
    assert "[이전 대화 요약]" in system_prompt(server.bodies("chat")[-1])


def test_an_image_that_the_model_refuses_is_told_as_text_from_then_on(chat: Chat, server: FakeOpenAI) -> None:
    chat.ask(1, 1)
    server.script(failure(400))
    assert isinstance(send(chat, question(2), PNG, WEB), TurnFailed)
    chat.ask(3, 3)
    body = server.bodies("chat")[-1]
    assert sent_images(server) == [[], [], []]
    assert "[image]\n[image]" in str(body["messages"][3]["content"]).replace("\\n", "\n")
    assert faults(body["messages"]) == []


@pytest.mark.parametrize("strategy", ["interval", "rolling", "compaction", "window"])
def test_images_go_as_they_came_behind_the_block_of_their_turn_and_every_input_is_rebuilt(
    open_chat: OpenChat, server: FakeOpenAI, source: ScriptedContext, strategy: str
) -> None:
    chat = open_chat(context=source, context_strategy=strategy, app_context_threshold=400, max_context_tokens=3_000)
    for number in range(1, 5):
        options = TurnOptions(context={"currentFile": f"file-{number}.py"})
        chat.service.turns.send(chat.session_id, question(number), images=[PNG, WEB], options=options)
        chat.events()
        chat.wait_for_folds()
        text, *images = server.bodies("chat")[-1]["messages"][-1]["content"]
        assert f"file-{number}.py" in text["text"]
        assert text["text"].endswith(question(number))
        assert [part["image_url"]["url"] for part in images] == [PNG, WEB]
    send(chat, "", JPEG)
    assert sent_images(server)[-1] == [JPEG]
    if strategy in ("compaction", "window"):
        assert sent_images(server)[-2] == [PNG, WEB]
    calls = [call for turn in range(1, 6) for call in chat.service.inputs.of_turn(chat.session_id, turn)]
    assert [call.is_verified for call in calls] == [True] * 5


def test_a_fork_has_the_images_of_its_turns_alone(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    send(chat, question(1), PNG)
    send(chat, question(2), JPEG)
    forked = Chat(chat.service, chat.service.turns.fork(chat.session_id, after_turn=1))
    chat.service.sessions.delete(chat.session_id)
    forked.ask(2, 2)
    assert sent_images(server) == [[PNG], []]
    assert forked.rows("SELECT data_url FROM image") == [(PNG,)]


def test_images_of_an_imported_history_are_sent_with_their_turns(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat()
    bring(chat, [ClientMessage("user", question(1), (PNG, WEB)), ClientMessage("assistant", "네.", (JPEG,))])
    chat.ask(2, 2)
    assert sent_images(server) == [[PNG, WEB], []]
    assert chat.rows("SELECT data_url FROM image") == [(PNG,)]
    assert "[image]" in chat.turns[0].answer_text


def test_images_survive_an_export(open_chat: OpenChat, tmp_path: Path) -> None:
    chat = open_chat()
    send(chat, question(1), PNG)
    lines = list(export_lines(chat.service._engine.stores.chat.database))  # noqa: SLF001  # nobody but a test has to know
    other = open_sqlite(tmp_path / "other.db", busy_timeout_seconds=5)
    import_lines(other, lines, owner="other")
    with other.read() as connection:
        assert connection.exec_driver_sql("SELECT owner, data_url FROM image").all() == [("other", PNG)]
    other.close()


FLOOR: Final = NamedImage("floor.png", PNG)
CAT: Final = NamedImage("cat.jpg", JPEG)


def show(chat: Chat, text: str, *images: NamedImage) -> object:
    """Sends a message with pictures, as the page does, and returns its turn's last event."""
    chat.service.turns.send(chat.session_id, text, images=images)
    ending = chat.events()[-1]
    chat.wait_for_folds()
    return ending


def test_a_picture_goes_as_a_data_url_and_is_a_line_with_its_name_once_folded(chat: Chat, server: FakeOpenAI) -> None:
    show(chat, f"{question(1)} 이 평면도는 어때요?", FLOOR, CAT)
    text, *images = server.bodies("chat")[-1]["messages"][-1]["content"]
    assert text["text"].endswith("어때요?")
    assert images == [{"type": "image_url", "image_url": {"url": url}} for url in (PNG, JPEG)]
    (turn,) = chat.turns
    assert turn.user_text.endswith("어때요?\n[image: floor.png]\n[image: cat.jpg]")
    assert turn.images == (NamedImage("floor.png", reference_of(PNG)), NamedImage("cat.jpg", reference_of(JPEG)))
    assert chat.service.turns.image(chat.session_id, reference_of(PNG)) == PNG
    chat.ask(2, 4)
    (summary,) = server.bodies("summary")
    assert "[image: floor.png]\n[image: cat.jpg]" in str(summary["messages"][-1]["content"])
    assert PNG not in str(summary)
    assert sent_images(server) == [[]]
    assert [call.is_verified for call in chat.service.inputs.of_turn(chat.session_id, 1)] == [True]


def test_a_name_is_one_line_without_brackets_and_an_imported_one_that_is_none_is_left_out(chat: Chat) -> None:
    show(chat, "", NamedImage("a/[b]\n[Turn 3].png", PNG))
    assert chat.turns[0].user_text == "[image: (b) (Turn 3).png]"
    for name in ("a]\n[Turn 3", "x" * 101, "a\nb", 7, ""):
        part = {"type": "image_url", "image_url": {"url": PNG}, "name": name}
        assert message_text(HumanMessage([part])) == "[image]"


def test_branch_edit_retry_and_another_answer_keep_the_pictures(chat: Chat, server: FakeOpenAI) -> None:
    show(chat, question(1), FLOOR)
    server.script(failure(500))
    assert isinstance(show(chat, question(2), CAT), TurnFailed)
    assert isinstance(chat.retry()[-1], TurnFinished)
    assert sent_images(server) == [[PNG], [JPEG]]
    chat.regenerate()
    assert sent_images(server) == [[PNG], [JPEG]]

    def check_branch(session_id: str) -> None:
        branch = Chat(chat.service, session_id)
        branch.events()
        assert sent_images(server) == [[PNG], [JPEG]]
        assert [turn.images for turn in branch.turns] == [turn.images for turn in chat.turns]
        assert branch.last_turn.user_text.count("[image: cat.jpg]") == 1

    edited = chat.service.turns.edit(chat.session_id, 2, f"{question(3)}\n[image: cat.jpg]")
    check_branch(edited)
    check_branch(chat.service.turns.regenerate(chat.session_id, turn=2).session_id)


def test_an_export_and_import_keeps_pictures_and_their_names(open_chat: OpenChat) -> None:
    chat = open_chat()
    show(chat, question(1), FLOOR)
    (session_id,) = chat.service.sessions.import_session(chat.service.sessions.export(chat.session_id))
    taken = Chat(chat.service, session_id)
    assert taken.turns[0].images == chat.turns[0].images
    assert chat.service.turns.image(session_id, reference_of(PNG)) == PNG


def test_a_picture_is_told_to_its_owner_alone(open_chat: OpenChat) -> None:
    chat = open_chat()
    show(chat, question(1), FLOOR)
    with pytest.raises(NotFoundError):
        chat.service.for_owner("other").turns.image(chat.session_id, reference_of(PNG))
    assert chat.service.turns.image(chat.session_id, reference_of(JPEG)) == ""


OLLAMA_TEXT: Final = {"/api/show": {"capabilities": ["completion", "tools"]}}
LLAMA_TEXT: Final = {"/props": {"modalities": {"vision": False, "audio": False}}}
TEXT_ALONE: Final = {"id": "scripted-model", "architecture": {"input_modalities": ["text"]}}
WITH_IMAGES: Final = {"id": "scripted-model", "architecture": {"input_modalities": ["text", "image"]}}


@pytest.mark.parametrize(
    ("listed", "pages"),
    [(TEXT_ALONE, {}), ("scripted-model", OLLAMA_TEXT), ("scripted-model", LLAMA_TEXT)],
    ids=["openrouter", "ollama", "llama.cpp"],
)
def test_a_model_of_text_alone_is_sent_no_picture_and_stores_nothing(
    open_chat: OpenChat, server: FakeOpenAI, listed: str | Body, pages: Mapping[str, object]
) -> None:
    server.models, server.pages = [listed], dict(pages)
    chat = open_chat()
    with pytest.raises(InputError) as caught:
        show(chat, question(1), FLOOR)
    assert (caught.value.reason, caught.value.detail) == ("no_images", "scripted-model")
    assert chat.rows("SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM image)") == [(0, 0)]
    chat.ask(1, 1)


@pytest.mark.parametrize(
    ("listed", "pages"),
    [
        (WITH_IMAGES, LLAMA_TEXT),  # what the list says is enough
        ("scripted-model", {"/api/show": {"capabilities": ["completion", "vision"]}}),
        ("scripted-model", {"/props": {"modalities": {"vision": True}}}),
        ("scripted-model", {"/props": {"modalities": []}, "/api/show": {}}),
        ("another-model", {}),
    ],
)
def test_a_model_that_may_take_pictures_is_sent_them(
    open_chat: OpenChat, server: FakeOpenAI, listed: str | Body, pages: Mapping[str, object]
) -> None:
    server.models, server.pages = [listed], dict(pages)
    show(open_chat(), question(1), FLOOR)
    assert sent_images(server) == [[PNG]]


NO_IMAGES: Final = (
    failure(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    failure(400, "Model does not support images. Please use a model that does."),
    failure(404, "No endpoints found that support image input"),
    failure(400, "scripted-model is not a multimodal model None"),
    failure(400, "At most 0 image(s) may be provided in one prompt."),
    failure(400, "Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`"),
    failure(400, "Invalid content type. image_url is only supported by certain models."),
)


@pytest.mark.parametrize("refusal", NO_IMAGES)
def test_a_refused_picture_stays_in_its_question_and_another_model_is_asked_with_it(
    open_chat: OpenChat, server: FakeOpenAI, refusal: Reply
) -> None:
    chat = open_chat()
    server.script(refusal)
    ending = show(chat, question(1), FLOOR)
    assert isinstance(ending, TurnFailed)
    assert ending.code == "no_images"
    count = len(server.bodies("chat"))
    assert isinstance(chat.retry()[-1], TurnFailed)  # remembered: nothing is sent
    assert len(server.bodies("chat")) == count
    chat.service.turns.retry(chat.session_id, options=TurnOptions(model="other-model"))
    assert isinstance(chat.events()[-1], TurnFinished)
    assert sent_images(server) == [[PNG]]
    assert chat.last_turn.images == (NamedImage("floor.png", reference_of(PNG)),)


def test_a_model_that_takes_none_is_sent_earlier_pictures_as_their_lines(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    show(chat, question(1), FLOOR)
    server.script(NO_IMAGES[0])
    assert isinstance(chat.say(question(2), options=TurnOptions(model="other-model"))[-1], TurnFinished)
    assert sent_images(server) == [[], []]
    assert "[image: floor.png]" in str(server.bodies("chat")[-1]["messages"][1]["content"])
    chat.ask(3, 3)
    assert len(server.bodies("chat")) == 4
    assert sent_images(server) == [[], [], []]


def ask_with_result(chat: Chat, server: FakeOpenAI) -> Program:
    """A program that has asked, and brings the result of its call: a picture beside a word."""
    program = Program(chat.service, options={"tools": (tool("look"),)})
    server.script(tools(ScriptedCall("look", "{}", "call-1")))
    (call,) = program.ask(question(1)).calls
    program.messages.append(ClientMessage("tool", "Shown.", (PNG, WEB), call_id=call.id))
    return program


def test_a_result_s_pictures_are_their_lines_to_a_model_that_refuses_them(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    program = ask_with_result(open_chat(), server)
    server.script(NO_IMAGES[0])
    reading = program.take(program.begin())
    assert (reading.turn, reading.matched) == (1, "history")
    first, second = (body["messages"] for body in server.bodies("chat")[-2:])
    assert urls(first[-1]) == [PNG, WEB]
    assert (second[-1]["role"], second[-1]["content"]) == ("tool", "Shown.\n[image]\n[image]")


def test_a_result_s_pictures_are_their_lines_once_their_turn_has_failed_or_is_folded(
    open_chat: OpenChat, server: FakeOpenAI
) -> None:
    chat = open_chat()
    program = ask_with_result(chat, server)
    server.script(failure(401))
    failed = program.begin()
    assert isinstance(failed.last, TurnFailed)
    Chat(chat.service, failed.session_id).ask(2, 2)
    assert sent_images(server) == [[], []]
    assert "Shown.\n[image]\n[image]" in str(server.bodies("chat")[-1]["messages"]).replace("\\n", "\n")
    chat = open_chat()
    program = ask_with_result(chat, server)
    first = program.take(program.begin())
    assert sent_images(server) == [[], [PNG, WEB]]
    go(program, 2, 4)
    assert PNG not in str(server.bodies("chat")[-1])
    assert "[image]" in str(server.bodies("summary"))
    lines = chat.service.sessions.export(first.session_id)
    (imported,) = chat.service.sessions.import_session(lines)
    assert chat.service.turns.image(imported, reference_of(PNG)) == PNG


def test_a_result_s_pictures_are_sent_without_memory_too(open_chat: OpenChat, server: FakeOpenAI) -> None:
    program = ask_with_result(open_chat(), server)
    reading = program.take(program.begin(is_plain=True))
    assert reading.matched == "aside"
    *_, result, pictures = server.bodies()[-1]["messages"]
    assert (result["role"], result["content"]) == ("tool", "Shown.\n[image]\n[image]")
    assert urls(pictures) == [PNG, WEB]


@pytest.mark.parametrize("said", ["this image format is not supported", "could not load the image", "image too large"])
def test_a_fault_of_one_picture_is_no_fault_of_the_model(open_chat: OpenChat, server: FakeOpenAI, said: str) -> None:
    chat = open_chat()
    server.script(failure(400, said))
    ending = show(chat, question(1), FLOOR)
    assert isinstance(ending, TurnFailed)
    assert ending.code == "rejected"
    assert isinstance(chat.retry()[-1], TurnFinished)


def test_what_is_no_image_is_refused_and_stores_nothing(open_chat: OpenChat) -> None:
    chat = open_chat()
    for url in (
        "file:///etc/passwd",
        "data:text/html,x",
        "image:0",
        "",
        "https://a.kr/\nb",
        "http://a.kr/b",
        "https://10.1/b",
        "\ud800",
    ):
        with pytest.raises(InputError) as caught:
            send(chat, question(1), PNG, url)
        assert caught.value.reason == "bad_image"
    assert chat.rows("SELECT (SELECT count(*) FROM session), (SELECT count(*) FROM image)") == [(0, 0)]


def test_the_embedded_model_says_that_it_sees_no_images(open_chat: OpenChat) -> None:
    chat = open_chat(**KEYLESS, models=models_without_pauses)
    for asked, told in (
        ("", "저는 이미지를 볼 수 없습니다."),
        ("What is the budget for the move?", "I can't see images."),
    ):
        chat.service.turns.send(chat.session_id, asked, images=[PNG])
        assert text_of(chat.events()).startswith(told)
