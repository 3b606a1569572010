"""The tools of MCP servers: the menu to choose them, and the user's word on calls that ask first."""

from __future__ import annotations

import json
from base64 import b64encode
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component.words.wording import words_of
from graph.value.error import BusyError
from graph.value.event import PendingCall
from graph.value.mcp import Failure, UnusableTool
from graph.value.view import McpServer, ToolStep
from tests.fake.picture import picture
from tests.fake.scripted_mcp import FILES, READ, WRITE, write_call
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import keys, open_page, page_text, raw_html, say, store_session

KOREAN = words_of("ko")


def opened(page: AppTest, service: ScriptedService, identifier: str = "", *servers: McpServer) -> AppTest:
    """A page with the servers' boxes open."""
    service.mcp.servers = servers or (FILES,)
    for server in service.mcp.servers:
        page.session_state[f"server_{server.name}"] = True
    return open_page(page, identifier) if identifier else page.run()


def boxes(page: AppTest, prefix: str = "tool_") -> dict[str, bool]:
    """What is ticked, by offered name, and by server for all of its tools."""
    found = [box for box in page.checkbox if str(box.key).startswith(prefix)]
    return {str(box.key).split("_", 2)[2]: box.value for box in found}


def menu_label(page: AppTest) -> str:
    return next((str(box.proto.popover.label) for box in page.get("popover") if "tool_menu" in box.proto.id), "")


def asking(service: ScriptedService, *calls: PendingCall) -> str:
    identifier = store_session(service, 1)
    turns = service.stored[identifier].turns
    turns[0] = replace(turns[0], status="asking", answer_text="", answer_message_id="", pending=calls)
    return identifier


def test_without_a_server_there_is_no_menu(page: AppTest) -> None:
    assert menu_label(page.run()) == ""


def test_the_menu_has_tools_of_opened_servers_alone(page: AppTest, service: ScriptedService) -> None:
    service.mcp.servers = (FILES._replace(state="idle", tools=()),)
    assert menu_label(page.run()) == "도구"
    assert KOREAN.tools.none in page_text(page)
    assert boxes(page) == {}
    assert service.mcp.started == []
    page.session_state["server_files"] = True
    page.run()
    assert service.mcp.started == ["files"]
    service.mcp.servers = (FILES._replace(state="starting", tools=()),)
    assert KOREAN.tools.starting in page_text(page.run())
    service.mcp.servers = (FILES,)
    assert boxes(page.run()) == {"all files": False, READ.offered: False, WRITE.offered: False}


def test_a_tool_tells_its_size_and_whether_it_asks(page: AppTest, service: ScriptedService) -> None:
    changed = WRITE._replace(name="move", offered="files__move", title="", is_changed=True)
    allowed = WRITE._replace(name="edit", offered="files__edit", is_allowed=True)
    opened(page, service, "", FILES._replace(tools=(READ, WRITE, allowed, changed)))
    told = {str(box.key).split("_", 2)[2]: box.label for box in page.checkbox}
    assert "Read \\*a\\* file" in told[READ.offered]
    assert "≈1,120토큰 · 자동 실행" in told[READ.offered]
    assert KOREAN.tools.asks in told[WRITE.offered]
    assert KOREAN.tools.allowed in told[allowed.offered]
    assert told[changed.offered].startswith("move · ")
    assert KOREAN.tools.changed in told[changed.offered]
    assert next(box for box in page.checkbox if "files__read" in str(box.key)).help == "Reads \\_all\\_ of it."


def test_a_tool_is_told_by_its_own_name_too(page: AppTest, service: ScriptedService) -> None:
    plain = WRITE._replace(name="write_file", title="write_file"), WRITE._replace(offered="files__move", title="")
    opened(page, service, "", FILES._replace(tools=(READ._replace(name="*rm*"), *plain)))
    notes = [note.value for note in page.markdown]
    assert ":small[:gray[\\*rm\\*]]" in notes
    assert not any("write\\_file" in note for note in notes)


def test_a_tool_that_is_always_allowed_can_ask_again(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    opened(page, service, identifier, FILES._replace(tools=(READ, WRITE._replace(is_allowed=True))))
    assert f"ask_again_{READ.offered}" not in keys(page)
    page.button(key=f"ask_again_{WRITE.offered}").click().run()
    assert service.mcp.asking_again == {identifier: WRITE.offered}


def test_tools_are_chosen_for_a_chat(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    opened(page, service, identifier)
    page.checkbox(key=f"tool_{identifier}_all files").check().run()
    assert boxes(page) == {"all files": True, READ.offered: True, WRITE.offered: True}
    assert menu_label(page) == "도구 2"
    assert "2개 사용 · 요청마다 ≈1,200토큰" in page_text(page)
    page.checkbox(key=f"tool_{identifier}_{READ.offered}").uncheck().run()
    assert set(service.mcp.chosen[identifier]) == {WRITE.offered}
    assert boxes(page) == {"all files": False, READ.offered: False, WRITE.offered: True}
    assert KOREAN.tools.too_much not in page_text(page)
    service.mcp.is_too_much = True
    service.refusal = BusyError()
    page.checkbox(key=f"tool_{identifier}_{READ.offered}").check().run()
    assert boxes(page)[READ.offered] is False
    assert KOREAN.tools.too_much in page_text(page)


def test_one_press_leaves_only_the_tools_that_read(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    service.mcp.chosen[identifier] = [WRITE.offered]
    opened(page, service, identifier)
    page.button(key="reading_tools").click().run()
    assert boxes(page) == {"all files": False, READ.offered: True, WRITE.offered: False}
    opened(page, service, identifier, FILES._replace(tools=(WRITE,)))
    assert "reading_tools" not in keys(page)


def test_a_closed_server_says_that_it_failed(page: AppTest, service: ScriptedService) -> None:
    service.mcp.servers = (FILES._replace(state="failed", tools=(), failure=Failure("not_installed", "no-such")),)
    page.run()
    (box,) = (box for box in page.expander if "files" in box.label)
    assert box.proto.icon == ":material/error:"
    assert f"{KOREAN.tools.failed} no-such: 설치되어 있지 않습니다." in page_text(page)


def test_a_call_that_took_no_time_says_none(page: AppTest, service: ScriptedService) -> None:
    step = ToolStep("call-1", "files__read", "{}", "글", "done", 0.04, server="files", title="Read")
    service.steps = (step, replace(step, call_id="call-2", seconds=0.05001))
    page.session_state["steps_1_1"] = True
    say(page.run(), "읽어 줘")
    assert sorted(box.label for box in page.expander if "**Read**" in box.label) == [
        "files · **Read** ",
        "files · **Read**  · 0.1초",
    ]


def test_what_an_earlier_attempt_has_done_is_told_at_its_step_and_before_it_is_done_again(
    page: AppTest, service: ScriptedService
) -> None:
    step = ToolStep("call-1", "files__write", "{}", "글", "done", 0.4, server="files", title="Write", attempt=1)
    service.steps = (step,)
    page.session_state["steps_1_1"] = True
    say(page.run(), "적어 줘")
    assert [box.label for box in page.expander if "**Write**" in box.label] == [
        f"files · **Write**  · {KOREAN.tool_earlier}"
    ]
    for is_repeated in (False, True):
        call = PendingCall("call-1", "files", "write", "Write", "{}", is_repeated=is_repeated)
        open_page(page, asking(service, call))
        assert (KOREAN.tools.is_repeated in page_text(page)) == is_repeated


def test_a_menu_that_opens_late_shows_what_is_chosen(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    opened(page, service, identifier)
    service.mcp.chosen[identifier] = [READ.offered]
    page.run()
    box = page.run().checkbox(key=f"tool_{identifier}_{READ.offered}")
    assert (box.proto.set_value, box.proto.value) == (True, True)


def test_a_new_chat_begins_with_the_tools_chosen_before_it(page: AppTest, service: ScriptedService) -> None:
    service.mcp.chosen[""] = [WRITE.offered]  # of the newest chat
    opened(page, service)
    assert boxes(page)[WRITE.offered] is True
    page.checkbox(key=f"tool_None_{READ.offered}").check().run()
    assert menu_label(page) == "도구 2"
    say(page, "안녕하세요")
    assert service.sent[-1].mcp_tools == (READ.offered, WRITE.offered)
    page.button(key="new_chat").click().run()
    assert boxes(page) == {"all files": False, READ.offered: False, WRITE.offered: True}
    say(page, "안녕하세요")
    assert service.sent[-1].mcp_tools is None


def test_a_server_that_failed_is_named_with_its_last_line_and_started_again(
    page: AppTest, service: ScriptedService
) -> None:
    failed = FILES._replace(state="failed", failure=Failure("not_installed", "np*x", "no such *file*"), tools=())
    opened(page, service, "", failed, FILES._replace(name="b"))
    assert "np\\*x: 설치되어 있지 않습니다. no such \\*file\\*" in page_text(page)
    page.button(key="start_files").click().run()
    assert service.mcp.started == ["files"]
    service.mcp.servers = (FILES._replace(state="starting", tools=()),)
    assert KOREAN.tools.starting in page_text(page.run())


def test_what_a_server_has_but_nobody_can_choose_is_named(page: AppTest, service: ScriptedService) -> None:
    unusable = UnusableTool("a*b", "schema", "properties.*.type"), UnusableTool("c", "name")
    many = tuple(UnusableTool(f"t{number}", "many") for number in range(20))
    servers = FILES._replace(unusable=unusable), FILES._replace(name="full", tools=(), unusable=many)
    opened(page, service, "", *servers, FILES._replace(name="empty", tools=()))
    shown = page_text(page)
    assert "사용할 수 없는 도구: a\\*b (모델 서버가 받지 않는 스키마: properties.\\*.type), c (이름이" in shown
    assert ("t11 (" in shown, "t12 (" in shown, ", …" in shown) == (True, False, True)
    assert KOREAN.tools.none_offered in page_text(page)


@pytest.mark.parametrize("word", ["once", "always", "no"])
def test_a_turn_asks_and_goes_on_with_a_word(page: AppTest, service: ScriptedService, word: str) -> None:
    identifier = asking(
        service, PendingCall("call-1", "my_files", "write", "Write *a* file", '{\n  "path": "a.txt"\n}')
    )
    open_page(page, identifier)
    assert "**my\\_files** 서버의 **write** (Write \\*a\\* file) 도구" in page_text(page)
    assert '"path": "a.txt"' in page.code[0].value
    assert keys(page).isdisjoint({"retry", "regenerate"})
    assert "stop" in keys(page)
    row = page.button(key=f"session_{identifier}")
    assert (row.icon, row.help) == (":material/front_hand:", KOREAN.tools.waits)
    page.button(key=f"{word}_1_1_call-1").click().run()
    assert service.mcp.words == {identifier: {"call-1": word}}
    assert "다 했습니다." in page_text(page)
    assert not page.button(key=f"session_{identifier}").icon
    assert "stop" not in keys(page)


def test_several_calls_are_answered_together(page: AppTest, service: ScriptedService) -> None:
    identifier, other = asking(service, write_call(1), write_call(2)), asking(service, write_call(1), write_call(2))
    open_page(page, identifier)
    page.button(key="once_1_1_call-1").click().run()
    assert service.mcp.words == {}
    assert page.button(key="once_1_1_call-1").proto.type == "primary"
    open_page(page, other)  # it has calls of the same names, and no word yet
    page.button(key="no_1_1_call-2").click().run()
    assert service.mcp.words == {}
    open_page(page, identifier)
    page.button(key="no_1_1_call-1").click().run()  # changed his mind
    page.button(key="always_1_1_call-2").click().run()
    assert service.mcp.words == {identifier: {"call-1": "no", "call-2": "always"}}


def test_a_word_that_comes_late_is_passed_over(page: AppTest, service: ScriptedService) -> None:
    identifier = asking(service, write_call(1))
    button = open_page(page, identifier).button(key="once_1_1_call-1")
    turns = service.stored[identifier].turns
    turns[0] = replace(turns[0], status="stopped", pending=())  # in another tab
    button.click().run()
    assert (service.mcp.words, page.error.values) == ({}, [])


def test_long_arguments_are_folded(page: AppTest, service: ScriptedService) -> None:
    identifier = asking(service, write_call(1, json.dumps({"text": "가" * 5_000}, ensure_ascii=False, indent=2)))
    open_page(page, identifier)
    assert len(page.code[0].value) < 1_000
    page.button(key="more_arguments_1_1_call-1").click().run()
    assert "가" * 5_000 in page.code[0].value


def test_a_step_of_a_server_has_its_title_and_pictures(page: AppTest, service: ScriptedService) -> None:
    service.steps = (
        ToolStep("call-1", "files__read", '{"path": "a"}', "글", "done", 0.1, server="my_files", title="Read *a* file"),
        ToolStep("call-2", "files__see", "{}", "", "done", 0.1, server="my_files", title="See", images=("image:1",)),
    )
    service.images["image:1"] = f"data:image/png;base64,{b64encode(picture('PNG')).decode()}"
    page.session_state["steps_1_1"] = True
    say(page.run(), "읽어 줘")
    labels = [box.label for box in page.expander]
    assert "my\\_files · **Read \\*a\\* file** a · 0.1초" in labels
    assert 'class="picture"' in raw_html(page)


def test_a_running_tool_tells_its_progress(page: AppTest, service: ScriptedService) -> None:
    service.status = "running"
    say(page.run(), "읽어 줘")
    session = service.stored["session-1"]
    assert session.live is not None
    step = ToolStep("call-1", "a__b", "{}", "", "running", None, server="a", title="b", progress="<b>3</b> of 9")
    session.live = replace(session.live, phase="tool", steps=(step,))
    assert "<span>&lt;b&gt;3&lt;/b&gt; of 9</span>" in raw_html(page.run())
