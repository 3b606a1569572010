"""The states of what doesn't go well: late and failed folds, answers that are cut, tools and messages that wait."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from tests.browser.stage import Stage
from tests.browser.wire import lose_until
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, close_early, failure, hang, text, tools
from tests.fake.waiting_turn import FIRST, LOOK

FAILURES: Final = 3
LOST: Final = "오는 길에 있는 말"


def chat_on_page(stage: Stage) -> Chat:
    return Chat(stage.service, stage.visitor.session_id)


def fold_awaited(stage: Stage) -> None:
    """The page's server waits for a fold that the other one makes."""

    def fail_late(_: Body) -> Reply:
        stage.gate.wait(60)
        return failure(500)

    chat, started = Chat(stage.service), f"요약이 잘 안 되는 이야기입니다 ({stage.words.language})."
    stage.endpoint.script(fail_late, failure(500), failure(500), kind="summary", to=started)
    for number in (1, 2, 3):
        chat.say(question(number) + started * (number == 1))
    stage.visitor.open(f"?session={chat.session_id}")
    hurried = f"요약을 기다리게 하는 말 ({stage.words.language})"
    stage.endpoint.script(hang(), to=hurried, may_stay=True)
    stage.visitor.write(hurried)
    expect(stage.visitor.page.locator("p.phase")).to_contain_text(stage.words.phase_folding.format(turns="1-3"))


def fold_being_made(stage: Stage) -> None:
    stage.button("stop").click()
    expect(stage.visitor.turn(4)).to_contain_text(stage.words.stopped_empty)
    stage.visitor.wait_for_end(4)
    expect(stage.open_panel().get_by_text(stage.words.fold_making)).to_be_visible()


def fold_failed(stage: Stage) -> None:
    stage.gate.set()
    chat_on_page(stage).wait_until(lambda: chat_on_page(stage).view.fold_failures == 1)
    stage.close_panel()
    expect(stage.open_panel().get_by_text(stage.words.fold_retry)).to_be_visible()


def fold_failed_thrice(stage: Stage) -> None:
    stage.close_panel()
    chat = chat_on_page(stage)
    for number in (5, 6):
        chat.say(question(number))
        chat.wait_for_folds()
    sentence = stage.words.fold_warning.format(count=FAILURES)
    warning = stage.visitor.find("chat").get_by_test_id("stAlert")
    expect(warning).to_contain_text(f"{sentence} {stage.words.errors['provider']}")
    expect(stage.open_panel().get_by_text(sentence)).to_be_visible()


def sentences_picked(stage: Stage) -> None:
    stage.close_panel()
    stage.visitor.ask(question(7), first=7)
    expect(stage.visitor.find("chat").get_by_test_id("stAlert")).to_have_count(0)
    expect(stage.open_panel().get_by_text(stage.words.was_picked)).to_be_visible()
    # What the panel said before stands there till then.
    expect(stage.panel.get_by_text(stage.words.fold_warning.format(count=FAILURES))).to_have_count(0)
    expect(stage.panel.locator(".sample")).to_have_count(0)


def answer_broken_off(stage: Stage) -> None:
    stage.visitor.open()
    asked = f"중간에 끊길 물음 ({stage.words.language})"
    stage.write(asked, close_early("여기까지 말하다가 "))
    expect(stage.visitor.turn(1).get_by_test_id("stAlert")).to_contain_text(stage.words.errors["cut_stream"])
    expect(stage.visitor.turn(1)).to_contain_text("여기까지 말하다가")
    expect(stage.visitor.find("retry")).to_be_visible()


def answer_cut(stage: Stage) -> None:
    stage.write("한도를 넘길 물음", text("아주 긴 답의 앞부분만", finish_reason="length"))
    stage.visitor.wait_for_end(2)
    expect(stage.visitor.turn(2)).to_contain_text(stage.words.answer_cut)


def answer_continued(stage: Stage) -> None:
    stage.endpoint.script(text("여기서 이어 씁니다."), to=stage.words.go_on)
    stage.button("go_on").click()
    expect(stage.visitor.turn(3)).to_contain_text("여기서 이어 씁니다.")
    expect(stage.visitor.every("go_on")).to_have_count(0)


def tools_awaited(stage: Stage) -> None:
    chat, asked = Chat(stage.service), f"파일을 읽어 주세요 ({stage.words.language})"
    stage.endpoint.script(tools(FIRST, answer="보겠습니다."), to=asked)
    chat.say(asked, options=LOOK)
    stage.visitor.open(f"?session={chat.session_id}")
    expect(stage.visitor.turn(1)).to_contain_text(stage.words.client_tools.format(client="editor"))
    stage.visitor.turn(1).get_by_test_id("stExpander").locator("summary").click()
    expect(stage.visitor.turn(1).get_by_test_id("stCode")).to_contain_text("a.py")


def tools_given_up(stage: Stage) -> None:
    stage.visitor.ask("그만 기다리고 그냥 답해 주세요.", first=2)
    expect(stage.visitor.turn(1)).not_to_contain_text(stage.words.client_tools.format(client="editor"))


def message_on_its_way(stage: Stage) -> None:
    stage.gate.clear()
    lose_until(stage.visitor, LOST, stage.gate)
    stage.visitor.open(f"?session={stage.visitor.session_id}")
    expect(stage.visitor.turn(2)).to_be_visible()
    stage.visitor.write(LOST)
    expect(stage.visitor.page.locator("p.pending")).to_have_text(LOST)
    expect(stage.visitor.field).to_have_value("")


def message_arrived(stage: Stage) -> None:
    stage.gate.set()
    stage.visitor.wait_for_end(3)
    expect(stage.visitor.turn(3)).to_contain_text(LOST)
    expect(stage.visitor.page.locator("p.pending")).to_have_count(0)
