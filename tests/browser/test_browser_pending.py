from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from graph.settings import Settings
from tests.browser.sight import EMPTY_PAGE, MESSAGE, places, press_enter, sights
from tests.browser.visitor import Visitor
from tests.browser.wire import Hold

MESSAGE_CHARS: Final = Settings.model_fields["message_chars"].default
BUBBLE: Final = "\n\x04user\x12\x04user"  # as Streamlit sends it: with the question's bubble, before its words


@pytest.mark.parametrize("who", ["visitor", "phone"])
def test_message_is_seen_at_once_and_only_once_where_its_turn_will_stand(
    who: str, request: pytest.FixtureRequest
) -> None:
    visitor: Visitor = request.getfixturevalue(who)
    visitor.open()
    for number, message in enumerate(("바로 보여야 하는 첫마디", "바로 보여야 하는 질문"), 1):
        visitor.field.fill(message)
        assert press_enter(visitor) == message
        visitor.wait_for_end(number)
        assert sights(visitor) == {MESSAGE}
        assert len(places(visitor)) == 1


@pytest.mark.parametrize("parts", [(), (BUBBLE,)], ids=["turn", "bubble"])
@pytest.mark.parametrize("number", [1, 2])
def test_message_keeps_its_place_while_its_turn_is_half_drawn(
    visitor: Visitor, number: int, parts: tuple[str, ...]
) -> None:
    hold = Hold(visitor)
    visitor.open()
    visitor.ask(*["질문이 이미 하나 있습니다."] * (number - 1))
    hold.behind = [f"turn_{number}", *parts]
    visitor.field.fill("말풍선보다 늦게 그려지는 말")
    press_enter(visitor)
    hold.wait()
    hold.let_go()
    expect(visitor.turn(number)).to_contain_text("말풍선보다 늦게 그려지는 말")
    assert sights(visitor) == {MESSAGE}
    assert len(places(visitor)) == 1


def test_first_message_that_is_refused_gives_the_empty_page_back(visitor: Visitor) -> None:
    visitor.open()
    long = "긴" * (MESSAGE_CHARS + 1)
    visitor.field.fill(long)
    shown = press_enter(visitor)
    assert shown
    assert long.startswith(shown)
    expect(visitor.field).to_have_value(long)
    expect(visitor.find("empty").get_by_role("heading")).to_be_in_viewport()
    expect(visitor.find("suggestions").get_by_role("button")).to_have_count(4)
    assert sights(visitor) == {MESSAGE, EMPTY_PAGE}


def test_a_command_leaves_the_empty_page_alone(visitor: Visitor) -> None:
    visitor.open()
    visitor.field.fill("/compact")
    assert press_enter(visitor) is None
    expect(visitor.page.get_by_test_id("stToast")).to_be_visible()
    assert sights(visitor) == {EMPTY_PAGE}
