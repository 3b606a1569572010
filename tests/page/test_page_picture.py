from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from component import attaching
from component.bridge import service_provider
from component.words.text import LANGUAGES, Language
from component.words.wording import words_of
from graph.attachment import MAX_FILES, MAX_IMAGES, with_attachments
from graph.core.long_file import sent_text
from graph.value.error import BusyError, InputError
from graph.value.view import Gauge, NamedImage, TurnOptions, TurnStatus
from tests.fake.office import hwpx
from tests.fake.picture import bomb, opened, picture
from tests.fake.scripted_service import ScriptedService
from tests.page.reading import NEW, as_tab, keys, open_page, raw_html, store_session


def _page_with_files() -> None:
    import streamlit as st  # noqa: PLC0415  # it runs as a page of its own

    from component import attaching, page  # noqa: PLC0415  # see above
    from component.chat import composer  # noqa: PLC0415  # see above

    st.button("", key="read", on_click=lambda: attaching.take(st.session_state["given"]))
    st.button("", key="hear", on_click=lambda: composer.take_sent(st.session_state["sent"]))
    page.main()


@pytest.fixture
def page(service: ScriptedService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    service.settings = service.settings.model_copy(update={"message_chars": 1_000, "turnfold_data_dir": tmp_path})
    monkeypatch.setattr(service_provider, "opened", lambda: service)
    opened_page = as_tab(AppTest.from_function(_page_with_files, default_timeout=60))
    return open_page(opened_page, store_session(service, 1))


def read(page: AppTest, *files: tuple[str, bytes]) -> AppTest:
    """Has the page read files, as its field hands them over."""
    page.session_state["given"] = [SimpleNamespace(name=name, getvalue=lambda data=data: data) for name, data in files]
    return page.button(key="read").click().run()


def refusals(page: AppTest) -> list[tuple[str, str]]:
    return re.findall(r'<p class="refused" role="alert"><b>(.*?)</b> (.*?)</p>', raw_html(page))


def send(page: AppTest, text: str, number: int, **about: object) -> AppTest:
    count = page.session_state[attaching.READ] if attaching.READ in page.session_state else 0  # noqa: SIM401  # it has no `get`
    made = {"id": f"{number:024x}", "text": text, "session": "session-1", "is_new": False, "files": count}
    message = {**made, **NEW, **about}
    page.session_state["sent"] = [message]
    return page.button(key="hear").click().run()


def test_a_file_says_how_large_it_is_and_which_one_is_too_large_is_named(
    page: AppTest, service: ScriptedService
) -> None:
    read(page, ("note.txt", b"words"), ("<server>.log", b"one line\n" * 50))
    assert "<b>note.txt</b><small>5자 · ≈" in raw_html(page)
    assert "<b>&lt;server&gt;.log</b><small>449자 · ≈" in raw_html(page)
    assert 'class="gauge"' in raw_html(page)
    assert "너무 큽니다" not in raw_html(page)
    service.gauge_now = Gauge(sent_tokens=7_000, window_tokens=8_192)
    send(page, "안녕하세요", 1)
    read(page, ("note.txt", b"words"), ("<server>.log", b"one line\n" * 50))
    assert 'class="gauge over"' in raw_html(page)
    told = "파일이 너무 큽니다: <b>&lt;server&gt;.log</b>. 이 모델의 창은 8,192토큰인데 ≈9,000토큰을 보내게 됩니다."
    assert told in raw_html(page)


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("ko", "앞부분 {}줄만 보냄, 나머지는 찾아봄"),
        ("en", "only the beginning is sent ({} lines), the rest is looked up"),
    ],
)
def test_of_a_long_file_chip_and_turn_say_that_the_beginning_is_sent(
    page: AppTest, service: ScriptedService, language: Language, said: str
) -> None:
    page.session_state["language"] = language
    read(page, ("server.log", b"one line of a log\n" * 20_000))
    (lines,) = re.findall(re.escape(said).replace(r"\{\}", "([0-9,]+)"), raw_html(page))
    assert "359,999" in raw_html(page)
    chip = re.findall(r"<b>server.log</b><small>(.*?)</small>", raw_html(page))[0]
    assert 0 < int(re.findall(r"≈([0-9,]+)", chip)[0].replace(",", "")) < 1_000
    turns = service.stored["session-1"].turns
    whole = with_attachments("요약", [*page.session_state["attached"].values()], language)
    turns[-1] = replace(turns[-1], user_text=sent_text(whole, window_tokens=8_192, most_chars=200_000))
    page.run()
    shown = [box.label for box in page.expander if box.label.startswith("server.log")]
    assert shown == [f"server.log · {said.format(lines)}"]


@pytest.mark.parametrize(
    ("language", "said"), [("ko", "읽지 않은 이미지·개체 2개"), ("en", "not read: images or objects (2)")]
)
def test_a_chip_says_what_a_document_has_besides_text(
    page: AppTest, service: ScriptedService, language: Language, said: str
) -> None:
    page.session_state["language"] = language
    pictures = {f"BinData/image{number}.png": "x" for number in range(2)}
    body = "<hp:p><hp:run><hp:t>본문</hp:t></hp:run></hp:p>"
    read(page, ("보고.hwpx", hwpx(body, more=pictures)), ("글만.hwpx", hwpx(body)))
    assert re.findall(r"<b>(.*?)</b><small>[^<]*</small>(.*?)</span>", raw_html(page)) == [
        ("보고.hwpx", f"<small>{said}</small>"),
        ("글만.hwpx", ""),
    ]
    turns = service.stored["session-1"].turns
    whole = with_attachments("요약", [*page.session_state["attached"].values()], language)
    turns[-1] = replace(turns[-1], user_text=whole)
    page.run()
    assert [box.label.endswith(said) for box in page.expander if "hwpx" in box.label] == [True, False]


def test_pictures_are_shown_before_they_are_sent_removed_sent_and_open_larger(
    page: AppTest, service: ScriptedService
) -> None:
    read(page, ("floor.png", picture("PNG")), ("cat.jpg", picture("JPEG", (3_000, 100))), ("note.txt", b"words"))
    assert not page.exception
    assert raw_html(page).count('<img class="picture"') == 2
    assert 'alt="floor.png"' in raw_html(page)
    assert "≈4,416 / 8,192" in raw_html(page)
    page.button(key="icon_detach_0").click().run()
    assert "floor.png" not in raw_html(page)
    assert "≈3,416 / 8,192" in raw_html(page)
    send(page, "이것은 무엇인가요?", 1)
    turn = service.stored["session-1"].turns[-1]
    assert "words" in turn.user_text
    assert turn.user_text.endswith("\n[image: cat.jpg]")
    assert "icon_detach_0" not in keys(page)
    assert "≈1,416 / 8,192" in raw_html(page)
    (url,) = service.images.values()
    assert opened(url).size == (2_048, 68)
    assert raw_html(page).count('<img class="picture"') == 1
    assert not any("[image" in str(text.value) for text in page.text)
    service.calls.clear()
    page.run()
    assert "image" not in service.calls  # the small one is kept
    page.button(key="enlarge_session-1_2_0").click().run()
    assert not page.exception
    assert raw_html(page).count('<img class="picture"') == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_no_picture_says_why_and_the_others_wait(
    page: AppTest, service: ScriptedService, language: Language
) -> None:
    page.session_state["language"] = language
    reasons = words_of(language).attachment.reasons
    pixels = reasons["too_many_pixels"].format("900,000,000")
    read(page, ("text.png", b"words"), ("bomb.png", bomb(30_000)), ("cat.jpg", picture("JPEG")))
    assert refusals(page) == [("text.png", reasons["bad_image"]), ("bomb.png", pixels)]
    page.button(key="icon_refused_0").click().run()
    assert refusals(page) == [("bomb.png", pixels)]
    assert keys(page) & {"icon_detach_0", "icon_detach_1"} == {"icon_detach_0"}
    assert len(service.stored["session-1"].turns) == 1


def test_a_message_takes_eight_pictures_and_two_files_besides(page: AppTest) -> None:
    many = [(f"{number}.png", picture("PNG")) for number in range(MAX_IMAGES + 1)]
    reasons = words_of("ko").attachment.reasons
    read(page, *many)
    read(page, *((f"{number}.txt", b"words") for number in range(3)))
    assert refusals(page) == [(f"{MAX_IMAGES}.png", reasons["too_many_images"]), ("2.txt", reasons["too_many"])]
    assert f"icon_detach_{MAX_FILES - 1}" in keys(page)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_refused_picture_waits_and_its_words_go_back(
    page: AppTest, service: ScriptedService, language: Language
) -> None:
    page.session_state["language"] = language
    read(page, ("cat.jpg", picture("JPEG")))
    service.refusal = InputError("no_images", "scripted-model")
    send(page, "이것은 무엇인가요?", 1)
    assert f'data-refused="{1:024x}"' in raw_html(page)
    assert [error.value for error in page.error] == [
        f"{words_of(language).input_reasons['no_images']} (scripted-model)"
    ]
    assert "icon_detach_0" in keys(page)
    send(page, "", 2)
    assert service.stored["session-1"].turns[-1].user_text == "[image: cat.jpg]"


def test_files_of_a_message_that_waits_are_kept_for_it(page: AppTest, service: ScriptedService) -> None:
    read(page, ("first.txt", b"one"))
    service.refusal = BusyError()
    send(page, "먼저 보낼 말", 1)  # too early: an answer began elsewhere
    assert f'data-waiting="{1:024x}.0"' in raw_html(page)
    assert not page.error
    assert not page.toast
    read(page, ("second.txt", b"two"))
    send(page, "다음에 보낼 말", 2, waits="turn")
    assert f'data-waiting="{1:024x}.0 {2:024x}.0"' in raw_html(page)
    assert not keys(page) & {"icon_detach_0"}
    read(page, ("third.txt", b"three"))
    service.refusal = None
    for number, name in ((1, "first.txt"), (2, "second.txt")):
        send(page, "보낸 말", number, tries=1)
        assert name in service.stored["session-1"].turns[-1].user_text
        assert "third.txt" not in service.stored["session-1"].turns[-1].user_text
    assert 'data-waiting=""' in raw_html(page)
    assert "icon_detach_0" in keys(page)


def test_a_file_that_was_read_before_the_message_ahead_of_it_was_heard_is_for_the_next(
    page: AppTest, service: ScriptedService
) -> None:
    read(page, ("first.txt", b"one"), ("second.txt", b"two"), ("third.txt", b"three"))
    page.button(key="icon_detach_0").click().run()
    send(page, "먼저 보낸 말", 1, files=2)
    assert set(re.findall(r"\w+\.txt", service.stored["session-1"].turns[-1].user_text)) == {"second.txt"}
    assert keys(page) & {"icon_detach_0", "icon_detach_1"} == {"icon_detach_0"}
    send(page, "다음에 보낸 말", 2, files=3)
    assert set(re.findall(r"\w+\.txt", service.stored["session-1"].turns[-1].user_text)) == {"third.txt"}


@pytest.mark.parametrize("tries", [0, 1])
def test_a_file_that_was_taken_off_before_its_message_was_heard_is_not_missed(
    page: AppTest, service: ScriptedService, tries: int
) -> None:
    read(page, ("first.txt", b"one"))
    page.button(key="icon_detach_0").click().run()
    service.refusal = BusyError() if tries else None
    send(page, "파일 없이 보낼 말", 1, files=1)
    service.refusal = None
    send(page, "파일 없이 보낼 말", 1, files=1, tries=tries)
    assert service.stored["session-1"].turns[-1].user_text == "파일 없이 보낼 말"
    assert not page.error


def test_a_message_whose_files_are_not_all_there_is_refused_and_takes_none(
    page: AppTest, service: ScriptedService
) -> None:
    read(page, ("second.txt", b"two"))  # after a reload that the first was lost by
    send(page, "파일 둘과 함께 보낼 말", 1, files=2)
    assert len(service.stored["session-1"].turns) == 1
    assert words_of("ko").attachment.reasons["lost"] in page.error[0].value
    assert "icon_detach_0" in keys(page)


def test_the_service_is_told_of_messages_that_wait_as_long_as_there_are_any(
    page: AppTest, service: ScriptedService
) -> None:
    def told() -> int:
        return service.calls.count("expect_message session-1")

    send(page, "먼저 보낼 말", 1, files=0)
    assert told() == 0
    send(page, "기다릴 말", 2, files=0, waits="turn", behind=2)
    send(page, "더 기다릴 말", 3, files=0, waits="turn", behind=2)
    assert told() == 2
    send(page, "기다린 말", 2, files=0, tries=1, is_queued=True, behind=1)
    assert told() == 3
    send(page, "더 기다린 말", 3, files=0, tries=1, is_queued=True)
    assert told() == 3


@pytest.mark.parametrize("status", ["failed", "asking"])
def test_a_queued_message_waits_behind_an_answer_that_failed_or_asks(
    page: AppTest, service: ScriptedService, status: TurnStatus
) -> None:
    service.status = status
    send(page, "실패할 말", 1, files=0)
    for is_queued, count in ((True, 2), (False, 3)):
        send(page, "기다리던 말", 2, files=0, is_queued=is_queued)
        assert len(service.stored["session-1"].turns) == count
    assert f'data-turn="{status}"' in raw_html(page)


def test_an_image_that_cannot_be_drawn_is_told_by_its_name(page: AppTest, service: ScriptedService) -> None:
    image = NamedImage("a.svg", "data:image/svg+xml,x")
    service.send("session-1", "", message_id="m", options=TurnOptions(), images=[image])
    page.run()
    assert not page.exception
    assert any("gray[a.svg]" in str(line.value) for line in page.markdown)
    assert "enlarge_session-1_2_0" not in keys(page)
