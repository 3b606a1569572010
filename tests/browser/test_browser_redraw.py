"""What is drawn as a chat goes on, and nothing else; what is pressed and said meanwhile counts, and once."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Locator, Page, WebSocket, expect
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from component.chat.live import ASK_SECONDS
from component.redraw import TURNS_AFTER, TURNS_BEFORE
from component.words.wording import words_of
from graph.service import ChatService
from tests.browser.conftest import ROOT, scripted_settings, started, visiting
from tests.browser.visitor import Visitor
from tests.browser.wire import Deliver, deliver_twice, lose, on_the_way, outdate_timers
from tests.fake.chat import Chat, question
from tests.fake.openai_reply import Body, Reply, hang, slowed, text
from tests.fake.openai_server import FakeOpenAI

pytestmark = pytest.mark.slow

FAKE: Final = ROOT / "tests" / "fake"
TIMES: Final = 3
UNDO_SECONDS: Final = 1  # between looks whether a deletion can still be undone
PIN: Final = '[class*="st-key-turn_"] button.pin'
# Each is looked up when it is pressed: a drawing of its turn in between puts another button in its place.
PRESS_ALL: Final = """(button) => [0, 1, 2].forEach((place) => setTimeout(
    () => document.querySelectorAll(button)[place].click(), 5 * place,
))"""
MAIN, CHAT = 0, 1  # behind the title


class Runs:
    """What came over the page's connection since this was made or cleared.

    Attributes:
        count: How many times anything was drawn, or looked at to be drawn.
        whole_count: How many times the whole page was.
        paths: Where each drawing stands in the page's tree.
        hash_lengths: How long the hashes of the drawings are.
    """

    def __init__(self, page: Page) -> None:
        self.clear()
        page.on("websocket", lambda socket: socket.on("framereceived", self._note))

    def clear(self) -> None:
        self.count = self.whole_count = 0
        self.paths: list[tuple[int, ...]] = []
        self.hash_lengths: set[int] = set()

    def _note(self, data: str | bytes) -> None:
        message = ForwardMsg()
        message.ParseFromString(data if isinstance(data, bytes) else data.encode())
        if message.WhichOneof("type") == "new_session":
            self.count += 1
            self.whole_count += not message.metadata.run.fragment_ids
        elif message.metadata.delta_path:
            self.paths.append(tuple(message.metadata.delta_path))
            self.hash_lengths.add(len(message.hash))


@pytest.fixture
def chat(other_server: ChatService) -> Chat:
    chat = Chat(other_server)
    chat.ask(1, 8)
    return chat


def begin_answer(visitor: Visitor, fake_openai: FakeOpenAI, asked: str) -> None:
    fake_openai.script(hang("여기까지 씁니다. "), to=asked)
    visitor.open()
    visitor.write(asked)
    expect(visitor.turn(1)).to_contain_text("여기까지 씁니다.")
    visitor.find("stop").locator("button").wait_for()  # it is drawn after the chat


def stop(visitor: Visitor) -> None:
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(1)


def turns(visitor: Visitor) -> Locator:
    return visitor.page.locator('[class*="st-key-turn_"]')


@contextmanager
def answering(chromium: Browser, folder: Path, endpoint: FakeOpenAI, script: str, **settings: str) -> Iterator[Visitor]:
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    with (
        started(folder, {**scripted_settings(endpoint), **settings}, script=FAKE / script) as address,
        visiting(chromium, address) as visitor,
    ):
        begin_answer(visitor, endpoint, "서버가 느릴 때 오래 걸리는 답")
        yield visitor


def test_nothing_is_lost_and_nothing_that_is_gone_stays_while_the_server_lags(
    chromium: Browser, tmp_path: Path, fake_openai: FakeOpenAI
) -> None:
    with answering(chromium, tmp_path, fake_openai, "lagging_app.py") as visitor:
        stop(visitor)
        for number in range(2, 2 + TIMES):
            visitor.write(question(number))
            expect(visitor.turn(number)).to_be_visible()
            expect(visitor.turn(number - 1).locator("button.copy")).to_be_visible()
            expect(visitor.turn(number - 1).locator(".stButton")).to_have_count(0)
            visitor.wait_for_end(number)
            expect(visitor.find("stop")).to_have_count(0)
            expect(visitor.every("regenerate")).to_have_count(1)
        visitor.page.evaluate(PRESS_ALL, PIN)
        expect(visitor.page.locator(f'{PIN}[aria-pressed="true"]')).to_have_count(3)
        visitor.write("/reset")
        expect(visitor.find("undo_reset")).to_be_visible()
        visitor.ask(question(TIMES + 2), first=TIMES + 2)
        expect(visitor.find("undo_reset")).to_have_count(0)


def test_a_timer_that_had_not_heard_which_chat_is_open_leaves_it_open(
    visitor: Visitor, other_server: ChatService, fake_openai: FakeOpenAI
) -> None:
    chat = Chat(other_server)
    chat.ask(1, 4)
    fake_openai.script(hang("여기까지 씁니다. "), to=question(5))
    outdated = outdate_timers(visitor)
    visitor.open(f"?session={chat.session_id}")
    visitor.write(question(5))
    expect(visitor.turn(5)).to_contain_text("여기까지 씁니다.")
    visitor.page.wait_for_timeout(1_000 * (ASK_SECONDS + 2))
    assert outdated
    expect(visitor.turn(4)).to_be_visible()
    visitor.find("stop").locator("button").click()
    visitor.wait_for_end(5)
    visitor.ask(question(6), first=6)
    assert visitor.session_id == chat.session_id


def make_late(visitor: Visitor) -> None:
    """From here on what was pressed is sent along with a timer's request, as by a browser with much to do."""
    visitor.page.evaluate(
        """(milliseconds) => {
            const soon = window.setTimeout.bind(window);
            window.setTimeout = (run, after, ...rest) => soon(run, after === 0 ? milliseconds : after, ...rest);
        }""",
        1000 * UNDO_SECONDS + 300,
    )


def press_along_with_a_timer(button: Locator, wire: WebSocket, key: str) -> None:
    presses: list[bytes] = []

    def is_its_own(request: str | bytes) -> bool:
        presses.extend([request] if isinstance(request, bytes) and f"-{key}".encode() in request else [])
        return len(presses) == len(["the timer's", "its own"])

    with wire.expect_event("framesent", is_its_own):
        button.click()


def offer_undo(visitor: Visitor, other_server: ChatService, chat: Chat) -> None:
    """Has the page offer to bring a chat back, with a timer."""
    other_server.sessions.delete_many([chat.session_id])
    expect(visitor.find("deleted")).to_be_visible()


def test_what_a_timer_takes_along_counts_once_and_stays(
    visitor: Visitor, other_server: ChatService, chat: Chat, fake_openai: FakeOpenAI
) -> None:
    asked = ("아주 긴 물음입니다. " * 200).strip()
    fake_openai.script(text("첫째 답"), text("둘째 답"), to=asked)
    with visitor.page.expect_websocket() as wire:
        visitor.open()
    visitor.ask(asked)
    offer_undo(visitor, other_server, chat)
    make_late(visitor)
    press_along_with_a_timer(visitor.find("regenerate").locator("button"), wire.value, "regenerate")
    expect(visitor.turn(1)).to_contain_text("둘째 답")
    visitor.wait_for_end(1)
    more = visitor.turn(1).locator('[class*="st-key-more_"] button')
    press_along_with_a_timer(more, wire.value, "more_")
    visitor.ask("그다음 말", first=2)
    expect(visitor.turn(1).locator('[class*="st-key-whole_"]')).to_be_visible()
    assert len(fake_openai.bodies("chat", to=asked)) == len(["asked", "asked again"])


@pytest.mark.parametrize("deliver", [lose, deliver_twice])
def test_a_message_is_said_once_whatever_becomes_of_its_request(visitor: Visitor, deliver: Deliver) -> None:
    on_the_way(visitor, "꼭 한 번", deliver)
    visitor.open()
    visitor.ask("꼭 한 번 전해질 첫마디", "그다음 말", "그다음 말")
    expect(turns(visitor)).to_have_count(3)
    expect(visitor.field).to_have_value("")
    on_the_way(visitor, "또 한 번", deliver)
    visitor.page.reload()
    visitor.settle()
    visitor.ask("또 한 번 전해질 말", first=4)
    visitor.page.reload()
    visitor.settle()
    expect(turns(visitor)).to_have_count(4)


def test_a_message_whose_request_is_lost_is_said_in_its_chat_though_the_page_is_left_at_once(visitor: Visitor) -> None:
    on_the_way(visitor, "옮겨 다녀도", lose)
    visitor.open()
    visitor.ask("첫째 대화")
    session_id = visitor.session_id
    visitor.write("옮겨 다녀도 첫째 대화의 말")
    visitor.begin_chat()
    visitor.ask("둘째 대화")
    expect(turns(visitor)).to_have_count(1)
    visitor.find(f"session_{session_id}").locator("button:visible").click()
    expect(visitor.turn(2)).to_contain_text("옮겨 다녀도 첫째 대화의 말")
    visitor.wait_for_end(2)
    on_the_way(visitor, "남겨 두고", lose)
    visitor.page.reload()
    visitor.settle()
    visitor.write("남겨 두고 떠난 말")
    visitor.page.reload()
    visitor.settle()
    visitor.wait_for_end(3)
    expect(visitor.turn(3)).to_contain_text("남겨 두고 떠난 말")


def hold_down(visitor: Visitor, button: Locator) -> float:
    """Presses the mouse in the middle of the button, holds it, and returns how far down that is."""
    button.hover()
    visitor.page.mouse.down()
    box = button.bounding_box()
    assert box is not None
    return box["y"] + box["height"] / 2


def wait_until_moved(visitor: Visitor, button: Locator, y: float) -> None:
    visitor.page.wait_for_function(
        "([button, y]) => { const box = button.getBoundingClientRect(); return box.bottom < y || box.top > y; }",
        arg=[button.element_handle(), y],
    )


def test_a_press_counts_though_a_growing_answer_moves_the_page(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked, may_answer = "눌린 동안 자라는 답을 주세요.", threading.Event()

    def answer(_: Body) -> Reply:
        may_answer.wait(30)
        return text("\n\n".join(f"{number}번째 줄입니다." for number in range(60)))

    fake_openai.script(answer, to=asked)
    visitor.open()
    visitor.ask("먼저 짧은 물음을 하나 드립니다.")
    visitor.write(asked)
    expect(visitor.turn(2)).to_be_visible()
    copy = visitor.turn(1).locator("button.copy")
    visitor.page.evaluate("() => navigator.clipboard.writeText('')")
    y = hold_down(visitor, copy)
    may_answer.set()
    wait_until_moved(visitor, copy, y)
    visitor.page.mouse.up()
    visitor.page.wait_for_function("() => navigator.clipboard.readText()")
    visitor.wait_for_end(2)


def test_a_press_counts_though_the_column_is_scrolled_and_is_none_when_it_is_drawn_away(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 1280, "height": 500})
    visitor.open()
    visitor.open_settings("지침")
    save = visitor.find("save_instructions_new").locator("button")
    y = hold_down(visitor, save)
    visitor.page.mouse.wheel(0, -200)
    wait_until_moved(visitor, save, y)
    visitor.page.mouse.up()
    expect(visitor.page.get_by_role("dialog")).to_contain_text("저장했습니다.")
    visitor.settle()
    visitor.page.keyboard.press("Escape")
    expect(visitor.page.get_by_role("dialog")).to_have_count(0)
    visitor.page.set_viewport_size({"width": 1280, "height": 800})
    hold_down(visitor, visitor.find("suggestion_0").locator("button"))
    visitor.find("suggestion_2").hover()
    visitor.page.mouse.up()
    visitor.field.fill("아직 아무것도 보내지 않았습니다.")
    expect(visitor.find("suggestions")).to_be_visible()


def test_a_message_and_its_answer_draw_nothing_else(visitor: Visitor, chat: Chat, fake_openai: FakeOpenAI) -> None:
    asked = "이 말과 그 답만 그립니다."
    fake_openai.script(slowed(text(" ".join(f"낱말{number}" for number in range(40))), 0.02), to=asked)
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    slider = visitor.find("rate").get_by_role("slider")
    slider.evaluate("(slider) => { slider.dataset.mark = 'the same'; }")
    visitor.page.wait_for_timeout(500)
    runs.clear()
    visitor.ask(asked, first=9)
    expect(visitor.find("stop")).to_have_count(0)
    assert runs.whole_count == 0
    elements = {path[:3] for path in runs.paths if path[:2] == (MAIN, CHAT)}
    assert len(elements) == 2  # the turn before, which can't be answered anew any more, and this one
    assert not any(path[:3] == min(elements) and path[4:] == (0,) for path in runs.paths)  # not the question before
    assert runs.hash_lengths == {8}
    expect(slider).to_have_attribute("data-mark", "the same")


def test_the_words_of_the_slider_follow_it_before_it_is_released(english: Visitor) -> None:
    english.open()
    runs, panel, words = Runs(english.page), english.find("panel"), words_of("en")
    thumb = english.find("rate").get_by_role("slider").locator("xpath=../..").bounding_box()
    track = english.find("rate").get_by_role("group").bounding_box()
    assert thumb is not None
    assert track is not None
    sample = panel.locator(".sample[data-begin]:visible")
    expect(sample).to_contain_text(words.sample_notes[1].splitlines()[-1])
    runs.clear()
    english.page.mouse.move(thumb["x"] + thumb["width"] / 2, thumb["y"] + thumb["height"] / 2)
    english.page.mouse.down()
    for rate, share, about, notes in ((0.45, "45%", "540", 2), (0.1, "10%", "120", 0), (0.35, "35%", "420", 1)):
        place = track["x"] + track["width"] * (rate - 0.1) / 0.4
        english.page.mouse.move(place, thumb["y"], steps=5)
        expect(panel.locator(".rate-now")).to_have_text(f"Summary length{share} of the original")
        expect(panel.get_by_text(f"1,200 → about {about} chars")).to_be_visible()
        expect(sample).to_have_count(1)
        expect(sample).to_contain_text(words.sample_notes[notes].splitlines()[-1])
    assert runs.paths == []
    english.page.mouse.up()
    english.page.wait_for_function("() => !document.querySelector('[data-dragging]')")
    english.settle()
    expect(panel.locator(".rate-now")).to_have_text("Summary length35% of the original")


def test_a_page_at_rest_is_left_as_it_is(visitor: Visitor, chat: Chat) -> None:
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    panel = visitor.open_statistics()
    visitor.ask(question(9), question(10), first=9)
    expect(panel.get_by_text("총 요약: 3개 (9턴 압축)")).to_be_visible()
    expect(visitor.find("stop")).to_have_count(0)  # the bar is drawn after the turn and the panel
    visitor.settle()
    visitor.page.wait_for_timeout(3_000)
    runs.clear()
    visitor.page.wait_for_timeout(4_000)
    assert runs.count == 0


def test_a_long_visit_draws_the_page_anew_when_its_places_are_used_up(
    visitor: Visitor, other_server: ChatService
) -> None:
    chat = Chat(other_server)
    chat.ask(1, TURNS_BEFORE + 1)
    visitor.open(f"?session={chat.session_id}")
    last = TURNS_BEFORE + 1 + TURNS_AFTER + 2
    visitor.ask(*map(question, range(TURNS_BEFORE + 2, last + 1)), first=TURNS_BEFORE + 2)
    expect(turns(visitor)).to_have_count(last)
    for number in range(1, last + 1):
        expect(turns(visitor).nth(number - 1)).to_have_attribute("data-turn", str(number))
    expect(visitor.every("regenerate")).to_have_count(1)


def test_a_long_chat_goes_on_without_a_drawing_of_the_whole_page(visitor: Visitor, other_server: ChatService) -> None:
    chat = Chat(other_server)
    chat.ask(1, 25)
    chat.wait_for_folds()
    runs = Runs(visitor.page)
    visitor.open(f"?session={chat.session_id}")
    visitor.ask(question(26), first=26)
    runs.clear()
    visitor.ask(*map(question, range(27, 34)), first=27)
    expect(visitor.find("panel").get_by_text("[28-30턴 요약]")).to_be_visible()
    assert runs.whole_count == 0
