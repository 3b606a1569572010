"""The menu of the model, and the commands of the message field."""

from __future__ import annotations

from streamlit.testing.v1 import AppTest

from component.chat.model_menu import short_name
from component.words.wording import words_of
from graph.value.view import EndpointProblem, Gauge, ModelOption
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import open_page, page_text, raw_html, say, store_session

LONG = "bartowski/Qwen2.5-Coder-32B-Instruct-GGUF:Q{}_K_M"


def menu_label(page: AppTest) -> str:
    (popover,) = (box for box in page.get("popover") if "model_menu" in box.proto.id)
    return str(popover.proto.popover.label)


def toasts(page: AppTest) -> list[str]:
    return [str(toast.value) for toast in page.toast]


def test_a_model_is_chosen_before_the_first_message_and_its_builds_differ(
    page: AppTest, service: ScriptedService
) -> None:
    four, eight = (ModelOption(LONG.format(bits), is_offline=False) for bits in (4, 8))
    service.models = (four, eight)
    box = page.run().selectbox(key="model_ko")
    assert menu_label(page).endswith(r"Q4\_K\_M")
    assert [option[-6:] for option in box.options] == ["Q4_K_M", "Q8_K_M"]
    box.set_value(eight.name).run()
    assert f"<dd>{eight.name}</dd>" in raw_html(page)
    say(page, "안녕하세요")
    assert service.sent[-1].model == eight.name


def test_the_menu_tells_what_is_known_of_a_model(page: AppTest, service: ScriptedService) -> None:
    service.gauge_now = Gauge(sent_tokens=2048, window_tokens=8192, is_guess=True)
    service.models = (ModelOption("m", is_offline=False, has_tools=False, thinks=True, takes_images=True),)
    identifier = store_session(service, 1)
    service.stored[identifier].model = "m"
    shown = raw_html(open_page(page, identifier))
    for told in ("8,192 (추정)", "미지원: 이전 대화 참조와 시계를 쓸 수 없습니다", "<dt>이미지</dt><dd>지원</dd>"):
        assert told in shown
    service.models = (ModelOption("m", is_offline=False),)
    shown = raw_html(page.run())
    assert "<dt>이미지</dt><dd>확인되지 않음</dd>" in shown
    service.stored[identifier].model = '<i>"gone"</i>'
    shown = raw_html(page.run())
    assert 'data-model="&lt;i&gt;&quot;gone&quot;&lt;/i&gt;"' in shown


def test_an_endpoint_that_lists_nothing_is_named_with_what_to_set(page: AppTest, service: ScriptedService) -> None:
    service.problem, service.models = EndpointProblem("http://127.0.0.1:9/v1", "unreachable"), ()
    page.run()
    (warning,) = page.warning
    for told in ("`http://127.0.0.1:9/v1`", "연결할 수 없습니다", "`OPENAI_BASE_URL`"):
        assert told in warning.value
    assert (menu_label(page), page.selectbox(key="model_ko").options) == (":material/warning: 모델 없음", ["모델 없음"])
    assert page.selectbox(key="model_ko").placeholder == "모델 없음"


def test_long_names_keep_their_ends() -> None:
    assert short_name("gpt-4o-mini", 28) == "gpt-4o-mini"
    assert short_name(LONG.format(4), 21) == "bartowski/…GUF:Q4_K_M"


def test_help_is_shown_and_not_sent(page: AppTest, service: ScriptedService) -> None:
    say(page.run(), "/help")
    shown = page_text(page)
    assert all(f"`/{name}`" in shown for name in words_of("ko").commands)
    assert "Shift + Enter" in shown
    assert service.stored == {}
    say(open_page(page, store_session(service, 1)), " /HELP ")
    assert "send" not in service.calls


def test_an_unknown_command_is_asked_about_once(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 1)
    say(open_page(page, identifier), "/rest")
    assert "send" not in service.calls
    assert (page.chat_input(key="ask").proto.value, toasts(page)) == (
        "/rest",
        ["/rest: 없는 명령입니다. /reset 명령을 쓰려던 것인가요? 그대로 보내려면 다시 보내 주세요."],
    )
    say(page, "/rest")
    assert service.stored[identifier].turns[-1].user_text == "/rest"
    for number, text in enumerate(("/usr/bin/x", "/rest of the story", "/ 1"), 3):
        say(page, text)
        assert len(service.stored[identifier].turns) == number
