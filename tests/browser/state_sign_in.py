"""The states of a server with a sign-in: the way in, what is said there, and the next one on the same browser."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.site import choose, come, sign_out
from tests.browser.stage import Stage
from tests.fake.identity_provider import NAMES

SAID = "제 비밀 여행지는 통영입니다."


def nobody_in(stage: Stage) -> None:
    come(stage.visitor)
    expect(stage.visitor.page.get_by_text(stage.words.sign_in.needed)).to_be_visible()
    expect(stage.visitor.page.get_by_test_id("stSidebar")).to_have_count(0)
    stage.visitor.expect_language(stage.words.language)


def signed_in(stage: Stage) -> None:
    choose(stage.visitor, "minsu")
    stage.visitor.settle()
    stage.open_sidebar()
    expect(stage.visitor.find("visitor")).to_contain_text(NAMES["minsu"])
    expect(stage.visitor.find("sign_out").get_by_role("button")).to_be_in_viewport()


def asked_to_sign_out_everywhere(stage: Stage) -> None:
    stage.choose(stage.words.sign_in.everywhere, stage.visitor.find("menu_visitor"))
    expect(stage.dialog.get_by_role("dialog")).to_have_accessible_name(stage.words.sign_in.everywhere_title)
    expect(stage.dialog.get_by_text(stage.words.sign_in.everywhere_note)).to_be_visible()
    stage.expect_nothing_sticks_out()


def spoken(stage: Stage) -> None:
    """A reload is signed in, too; what is said and what is typed belongs to whoever is signed in."""
    stage.close_dialog()
    stage.close_sidebar()
    stage.visitor.ask(SAID)
    stage.visitor.field.fill("아직 보내지 않은 민수의 말")
    stage.visitor.page.reload()
    stage.visitor.settle()
    expect(stage.visitor.field).to_have_value("아직 보내지 않은 민수의 말")
    (mine,) = stage.service.sessions.list()
    assert mine.session_id == stage.visitor.session_id


def somebody_else_in(stage: Stage) -> None:
    """Who comes next on the same browser sees nothing of it, not even with the address of the chat."""
    theirs = stage.visitor.session_id
    stage.open_sidebar()
    sign_out(stage.visitor)
    choose(stage.visitor, "yeonghui")
    stage.visitor.settle()
    expect(stage.visitor.find("sessions")).to_have_count(0)
    for session_id in (theirs, "no-such-session"):
        stage.visitor.open(f"?session={session_id}")
        expect(stage.visitor.page.get_by_text(stage.words.errors["not_found"])).to_be_visible()
        expect(stage.visitor.page.get_by_text("통영")).to_have_count(0)
        expect(stage.visitor.field).to_have_value("")
