from __future__ import annotations

import inspect
import io
import json
import logging
import warnings
from collections.abc import Iterator

import pytest
from streamlit.runtime import app_session
from streamlit.runtime.scriptrunner import script_runner

from component.bridge import delivery
from graph.server.log import in_turn, set_up_logging
from tests.fake.chat import Chat, question
from tests.fake.logs import restored_logging
from tests.fake.openai_reply import failure, text
from tests.fake.openai_server import FakeOpenAI

KEY = "sk-scripted-key-of-the-tests"


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The server's logging, into a text; whatever was set up before comes back."""
    stream = io.StringIO()
    with restored_logging():
        set_up_logging("INFO", stream)
        yield stream


def test_every_line_of_a_turn_names_it_and_none_says_what_was_said(
    chat: Chat, server: FakeOpenAI, lines: io.StringIO
) -> None:
    server.script(failure(401, f"wrong key {KEY}"), text("비밀스러운 답입니다."))
    chat.say(question(1))
    chat.say(question(2))
    chat.ask(3, 4)
    written = lines.getvalue()
    prefix = f"[session={chat.session_id} turn=1]"
    assert any(prefix in line and "authentication" in line for line in written.splitlines())
    assert f"turn=4] turn 4 session={chat.session_id} attempt=1: TurnFinished" in written
    for secret in (KEY, "김민수", "비밀스러운", "질문하신"):
        assert secret not in written


def test_other_libraries_speak_from_warning_on_and_within_a_turn_name_it(lines: io.StringIO) -> None:
    with in_turn("s1", 7):
        logging.getLogger("some.library").info("chatter")
        logging.getLogger("some.library").warning("trouble")
    logging.getLogger("graph.x").info("ours")
    logging.getLogger("graph.x").debug("too fine")
    warnings.warn("may quote a user", stacklevel=1)
    first, second = lines.getvalue().splitlines()
    assert first.endswith("WARNING some.library [session=s1 turn=7] trouble")
    assert second.endswith("INFO graph.x [-] ours")
    assert first[:4].isdigit()
    assert "Z " in first


def test_of_an_exception_its_kind_and_place_are_logged_but_not_its_words(lines: io.StringIO) -> None:
    try:
        int("what the user said")
    except ValueError:
        logging.getLogger("graph.x").exception("it broke")
    written = lines.getvalue()
    assert "ValueError" in written
    assert "test_log.py" in written
    assert "what the user said" not in written


def test_what_a_library_says_is_one_short_line_even_if_it_has_set_up_logging_for_itself() -> None:
    stream, own = io.StringIO(), io.StringIO()
    with restored_logging():
        library = logging.getLogger("some.server")
        library.addHandler(logging.StreamHandler(own))
        library.setLevel(logging.INFO)
        library.propagate = False
        set_up_logging("INFO", stream)
        library.info("chatter")
        library.error("it said %s\n", "A\n" * 30_000)
        try:
            json.loads("[" * 100_000)
        except RecursionError:
            library.exception("it broke")
        logging.getLogger("graph.x").error("y" * 5_000)
    long, broken, ours = stream.getvalue().splitlines()
    assert "ERROR some.server [-] it said A A A " in long
    assert long.endswith("… (60007 characters)")
    assert "it broke RecursionError < json/" in broken
    assert " in test_what_a_library_says" in broken
    assert max(len(long), len(broken)) < 1_000
    assert len(ours) > 5_000
    assert own.getvalue() == ""


def test_a_library_says_so_much_a_minute_and_then_how_much_it_has_not_said(lines: io.StringIO) -> None:
    def say(name: str, text: str, seconds: float) -> None:
        record = logging.makeLogRecord({"name": name, "levelno": logging.WARNING, "levelname": "WARNING", "msg": text})
        record.created = seconds
        logging.getLogger(name).handle(record)

    for number in range(1_000):
        say("some.server", f"noise {number}", number / 100)
    say("other.library", "trouble", 11)
    for number in range(30):
        say("graph.x", f"ours {number}", 12)
    say("some.server", "again", 59.9)
    say("some.server", "a minute later", 60)
    say("some.server", "and on", 61)
    written = lines.getvalue()
    assert written.count("noise") == 20
    assert written.count("ours") == 30
    assert "] trouble\n" in written
    assert "again" not in written
    assert "] a minute later (981 lines of this logger were left out before)\n" in written
    assert "] and on\n" in written


def test_setting_up_twice_says_everything_once(lines: io.StringIO) -> None:
    again = io.StringIO()
    set_up_logging("ERROR", again)
    logging.getLogger("graph.x").warning("hidden")
    logging.getLogger("graph.x").error("shown")
    assert lines.getvalue() == ""
    assert again.getvalue().count("shown") == 1
    assert "hidden" not in again.getvalue()


def test_what_streamlit_says_of_a_fragment_that_is_gone_is_left_out(lines: io.StringIO) -> None:
    delivery.quieten()
    for module, said in (
        (app_session, "The fragment with id %s does not exist anymore"),
        (script_runner, "Couldn't find fragment with id %s."),
    ):
        assert said in inspect.getsource(module)
        logger = logging.getLogger(module.__name__)
        logger.warning(f"{said} And more.", "f1")  # noqa: G004  # as in Streamlit, the sentence is the format
        logger.warning("something else of %s", "f1")
    assert [line.partition("] ")[2] for line in lines.getvalue().splitlines()] == ["something else of f1"] * 2
