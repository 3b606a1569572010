"""The states of questions that are edited, of branches, and of what the list does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from playwright.sync_api import expect

from tests.browser.stage import Stage
from tests.browser.state_session import choose, rows
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import text

RED: Final = "rgb(179, 38, 30)"
OPEN: Final = re.compile("st-key-open_session_")


def _press(stage: Stage, turn: int, name: str) -> None:
    stage.visitor.turn(turn).get_by_role("button", name=name).click()


def opened(stage: Stage) -> None:
    chat = Chat(stage.service)
    chat.ask(1, 4)
    stage.service.sessions.rename(chat.session_id, "하나")
    stage.visitor.open(f"?session={chat.session_id}")
    stage.visitor.turn(2).hover()


def edit_open(stage: Stage) -> None:
    """Who cancels finds the question as it was."""
    field = stage.visitor.turn(2).get_by_role("textbox")
    _press(stage, 2, stage.words.sessions.edit)
    field.fill("버릴 말")
    _press(stage, 2, stage.words.cancel)
    expect(field).to_have_count(0)
    _press(stage, 2, stage.words.sessions.edit)
    expect(field).to_be_focused()
    expect(field).to_have_value(question(2))


def edit_refused(stage: Stage) -> None:
    stage.visitor.turn(2).get_by_role("textbox").fill(" ")
    _press(stage, 2, stage.words.sessions.ask_in_branch)
    expect(stage.visitor.page.get_by_text(stage.words.input_reasons["empty"])).to_be_visible()


def branch_made(stage: Stage) -> None:
    asked = f"다르게 묻는 말입니다 ({stage.words.language})."
    stage.endpoint.script(text("다른 답입니다."), to=asked)
    stage.visitor.turn(2).get_by_role("textbox").fill(asked)
    _press(stage, 2, stage.words.sessions.ask_in_branch)
    expect(stage.visitor.find("branch_of")).to_contain_text(stage.words.sessions.branch_of.format(title="하나", turn=1))
    expect(stage.visitor.turn(2)).to_contain_text("다른 답입니다.")
    stage.visitor.wait_for_end(2)
    expect(stage.visitor.turn(3)).to_have_count(0)
    expect(stage.visitor.find("chat_title")).to_contain_text(asked)
    expect(stage.visitor.page).to_have_title(f"{asked} · Turnfold")


def origin_open(stage: Stage) -> None:
    stage.button("to_origin").click()
    expect(stage.visitor.turn(4)).to_be_attached()
    expect(stage.visitor.turn(2)).to_contain_text(question(2))
    expect(stage.visitor.turn(2).get_by_role("textbox")).to_have_count(0)
    expect(stage.visitor.find("chat_title")).to_have_text("하나")


def sibling_open(stage: Stage) -> None:
    """The branches of a question are opened from it, forth and back."""
    origin = stage.visitor.session_id
    for name in (stage.words.sessions.next_question, stage.words.sessions.previous_question):
        before = stage.visitor.session_id
        _press(stage, 2, name)
        expect(stage.visitor.page).not_to_have_url(re.compile(re.escape(before)))
        expect(stage.visitor.turn(2).locator(".siblings")).to_contain_text("/2")
    assert stage.visitor.session_id == origin
    expect(stage.visitor.turn(4)).to_be_attached()


def version_shown(stage: Stage) -> None:
    """An answer that was regenerated stays, is read in its place, and can be made to count again."""
    origin, labels = Chat(stage.service, stage.visitor.session_id), stage.words.sessions
    stage.endpoint.script(text("두 번째 답입니다."), to=question(4))
    stage.button("regenerate").click()
    expect(stage.visitor.turn(4)).to_contain_text("두 번째 답입니다.")
    stage.visitor.wait_for_end(4)
    _press(stage, 4, labels.previous_answer)
    expect(stage.visitor.turn(4)).not_to_contain_text("두 번째 답입니다.")
    assert origin.last_turn.attempt == 2


def version_used(stage: Stage) -> None:
    origin = Chat(stage.service, stage.visitor.session_id)
    _press(stage, 4, stage.words.sessions.use_answer)
    expect(stage.visitor.turn(4).get_by_role("button", name=stage.words.sessions.use_answer)).to_have_count(0)
    assert (origin.last_turn.attempt, origin.last_turn.attempts) == (1, (1, 2))


def first_answer_regenerated(stage: Stage) -> None:
    origin = Chat(stage.service, stage.visitor.session_id)
    _press(stage, 1, stage.words.sessions.regenerate)
    expect(stage.visitor.find("branch_of")).to_contain_text(stage.words.sessions.branch_of_all.format(title="하나"))
    stage.visitor.wait_for_end(1)
    assert stage.visitor.session_id != origin.session_id
    assert [turn.attempt for turn in origin.turns] == [1, 1, 1, 1]
    stage.button("to_origin").click()
    expect(stage.visitor.turn(4)).to_be_attached()


def pinned(stage: Stage) -> None:
    """A pinned chat stands first, until it is unpinned."""
    labels, first = stage.words.sessions, rows(stage).first
    head = stage.visitor.find("sessions").get_by_text(stage.words.days["pinned"], exact=True)
    stage.open_sidebar()
    stage.choose(labels.pin)
    expect(first).to_have_class(OPEN)
    expect(head).to_be_visible()
    stage.choose(labels.unpin)
    expect(head).to_have_count(0)
    stage.choose(labels.pin)
    expect(head).to_be_visible()


def file_offered(stage: Stage) -> None:
    choose(stage, stage.words.sessions.export)
    expect(stage.button("export_json")).to_be_visible()


def file_saved(stage: Stage) -> None:
    """Either file has what the service says."""
    sessions, session_id = stage.service.sessions, stage.visitor.session_id
    markdown, lines = sessions.export_markdown(session_id), "\n".join(sessions.export(session_id))
    assert stage.saved(stage.button("export_markdown")) == ("하나.md", markdown)
    assert stage.saved(stage.button("export_json")) == ("하나.jsonl", lines)
    (stage.folder / "chat.jsonl").write_text(lines)


def ticked(stage: Stage) -> None:
    stage.close_dialog()
    stage.button("icon_select").click()
    expect(stage.button("delete_ticked")).not_to_have_css("background-color", RED)
    for number in (1, 2):
        stage.visitor.page.locator('[class*="st-key-tick_"] label').nth(number - 1).click()
        sentence = stage.words.sessions.delete_ticked.format(count=number)
        expect(stage.button("delete_ticked")).to_have_text(sentence)
    expect(stage.button("delete_ticked")).to_have_css("background-color", RED)


def many_deleted(stage: Stage) -> None:
    stage.button("delete_ticked").click()
    expect(stage.visitor.find("deleted")).to_contain_text(stage.words.sessions.deleted.format(count=2))
    expect(stage.visitor.find("suggestions")).to_be_attached()


def brought_back(stage: Stage) -> None:
    stage.button("undo_delete").click()
    expect(rows(stage).first).to_have_class(OPEN)
    expect(stage.visitor.turn(4)).to_be_attached()
    expect(stage.visitor.find("deleted")).to_have_count(0)


def branch_of_a_whole_chat(stage: Stage) -> None:
    labels = stage.words.sessions
    stage.choose(labels.fork)
    expect(stage.visitor.find("branch_of")).to_contain_text(labels.branch_of.format(title="하나", turn=4))
    if stage.is_narrow:
        expect(stage.visitor.page.get_by_test_id("stSidebar")).to_have_attribute("data-collapsed", "true")


def open_file(stage: Stage, path: Path) -> None:
    stage.open_sidebar()
    stage.visitor.open_settings(stage.words.sessions.open_file)
    with stage.visitor.page.expect_file_chooser() as choosing:
        stage.visitor.page.get_by_role("button", name=stage.words.sessions.open_file).click()
    choosing.value.set_files(path)


def other_files_refused(stage: Stage) -> None:
    """What is no chat is refused, and what is too large before it is sent."""
    for name, data, reason in (
        ("large.jsonl", b" " * (10 * 2**20 + 1), "import_too_large"),
        ("letter.jsonl", "안녕하세요".encode(), "not_an_export"),
    ):
        (stage.folder / name).write_bytes(data)
        open_file(stage, stage.folder / name)
        expect(stage.visitor.page.get_by_text(stage.words.input_reasons[reason])).to_be_attached()
        expect(stage.dialog).to_have_count(0)


def saved_chat_opened(stage: Stage) -> None:
    """It is a chat of its own, with all that the saved one has."""
    branch = stage.visitor.session_id
    open_file(stage, stage.folder / "chat.jsonl")
    expect(stage.visitor.page.get_by_text(stage.words.sessions.opened_one)).to_be_attached()
    stage.visitor.page.wait_for_url(lambda url: branch not in url)
    expect(stage.visitor.turn(4)).to_be_attached()
    copy = Chat(stage.service, stage.visitor.session_id)
    assert [turn.user_text for turn in copy.turns] == [question(number) for number in range(1, 5)]
    assert copy.covered == [(1, 2, 3)]
