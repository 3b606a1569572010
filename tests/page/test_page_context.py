from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from component import redraw
from graph.value.error import InputError
from graph.value.record import Record, RecordKind
from graph.value.view import TurnOptions
from tests.fake.scripted_service import ScriptedService
from tests.fake.scripted_session import make_record
from tests.page.reading import (
    folds,
    keys,
    open_page,
    open_settings,
    page_text,
    page_with_presses,
    say,
    setting,
    stale_parts,
    store_session,
)


def compaction() -> Record:
    return replace(
        make_record((1, 2, 3), original_chars=9000, summary="서버 이전 계획"),
        kind="compaction",
        context_messages=12,
        context_messages_after=5,
        context_tokens=80_000,
        source_tokens=72_270,
        summary_tokens=270,
    )


def store_compacted(service: ScriptedService) -> tuple[str, Record]:
    """Stores four turns under one compaction; returns the session's id and the record."""
    identifier, newest = store_session(service, 4), compaction()
    session = service.stored[identifier]
    session.records = session.compactions = [newest]
    return identifier, newest


def boxes(page: AppTest, prefix: str) -> list[str]:
    """The keys of the containers that the style sheet finds by this prefix."""
    names = [block.proto.id.split("-", 2)[-1] for block in page.main.get("flex_container")]
    return [name for name in names if name.startswith(prefix)]


def toasts(page: AppTest) -> list[str]:
    return [str(toast.value) for toast in page.toast]


def test_commands_are_run_and_never_sent(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    service.stored[identifier].records = [compaction()]
    open_page(page, identifier)
    say(page, "/compact", " /reset ")
    assert [call for call in service.calls if call.split()[0] in {"compact", "reset", "send"}] == [
        f"compact {identifier}",
        f"reset {identifier}",
    ]


def test_each_strategy_says_what_it_does(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    open_page(page, identifier)
    for name, note in (
        ("interval", "세 턴마다 하나로 요약하고"),
        ("rolling", "요약 하나를 계속 갱신하고"),
        ("compaction", "컨텍스트가 차면"),
        ("window", "최근 10턴만 보냅니다"),
    ):
        setting(page, "strategy").set_value(name).run()
        assert service.stored[identifier].strategy == name
        assert note in page_text(page)
        assert ("compact" in keys(page)) == (name == "compaction")
    assert "1-3턴 요약(지금은 보내지 않음) · 45자 → 13자" in folds(page)  # and isn't remembered


def test_a_compaction_is_made_told_and_restored(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 4)
    session, newest = service.stored[identifier], compaction()
    session.strategy, session.records = "compaction", [newest]
    session.compactions = [newest, *(replace(newest, id=f"earlier-{number}") for number in (2, 1))]
    page.session_state["compactions"] = True
    line = "메시지 12개 → 5개, 토큰 ≈80,000 → ≈8,000 (90% 감소)"
    assert line in page_text(open_page(page, identifier))
    open_settings(page, "요약").button(key="compact").click().run()
    assert "open_dialog" not in page.session_state
    assert f":small[:material/check: {line}]" in page_text(page)
    page.button(key="take_back_bar").click().run()
    assert {"restore_earlier-2", "restore_earlier-1"} <= keys(page)
    page.button(key="restore_earlier-1").click().run()
    page.button(key=f"restore_{newest.id}").click().run()
    asked = [call for call in service.calls if call.split()[0] in {"compact", "restore"}]
    assert asked == [
        f"compact {identifier}",
        f"restore {identifier} {newest.id}",
        f"restore {identifier} earlier-1",
        f"restore {identifier} {newest.id}",
    ]


def test_the_line_that_undoes_a_compaction_goes_with_what_it_undoes(page: AppTest, service: ScriptedService) -> None:
    identifier, newest = store_compacted(service)
    open_page(page, identifier)
    say(page, "/compact")
    assert "take_back_bar" in keys(page)
    page.button(key=f"restore_{newest.id}").click().run()
    assert "take_back_bar" not in keys(page)
    say(page, "/compact")
    service.refusal = InputError("not_active")
    page.button(key="take_back_bar").click().run()
    assert toasts(page) == ["그사이 다른 요약으로 바뀌었습니다. 다시 확인해 주세요."]
    assert not page.error
    say(page, "/compact")
    assert "take_back_bar" in keys(page)
    say(page, "/reset")
    assert keys(page) & {"take_back_bar", "undo_reset"} == {"undo_reset"}


def test_the_panel_too_loses_the_line_with_the_next_message(service: ScriptedService) -> None:
    page = page_with_presses()
    identifier, _ = store_compacted(service)
    open_page(page, identifier)
    say(page, "/compact")
    assert "take_back_panel" in keys(page)
    assert stale_parts(page) == []
    service.send(identifier, "질문 5", message_id="user-5", options=TurnOptions())
    assert redraw.PANEL in (stale_parts(page) or ())
    assert "take_back_panel" not in keys(page)


def test_a_reset_leaves_a_divider_and_is_undone_beside_it(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 5)
    open_page(page, identifier)
    assert "past_records" not in service.calls
    say(page, "/reset")
    assert "여기부터 모델은 앞의 대화를 모릅니다." in page_text(page)
    assert "past_records" in service.calls
    assert (boxes(page, "past_"), boxes(page, "reset_")) == (["past_record-1"], ["reset_5"])
    assert folds(page)[0] == "1-3턴 요약(지금은 보내지 않음) · 45자 → 13자"
    page.button(key="undo_reset").click().run()
    assert f"undo_reset {identifier}" in service.calls
    assert boxes(page, "past_") == boxes(page, "reset_") == []
    assert folds(page)[0] == "위 1-3턴은 요약으로 대체되었습니다(원문은 그대로) · 45자 → 13자"

    service.reset(identifier)
    page.run()
    service.refusal = InputError("no_reset")
    page.button(key="undo_reset").click().run()
    assert toasts(page) == ["초기화를 취소할 수 없습니다. 그 뒤에 대화가 이어졌습니다."]
    say(page, "여섯째", "일곱째", "여덟째")
    assert (boxes(page, "past_"), boxes(page, "reset_")) == (["past_record-1"], ["reset_5"])
    assert len(folds(page)) - len(boxes(page, "past_")) == len(service.stored[identifier].records)
    assert "undo_reset" not in keys(page)


def test_an_open_fold_says_truly_what_its_text_is(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 5)
    session = service.stored[identifier]
    kinds: tuple[tuple[RecordKind, str], ...] = (
        ("interval", "모델이 1-3턴 대신 보는 내용"),
        ("verbatim", "모델이 그대로 보는 1-3턴"),
        ("compaction", "모델이 압축한 대화 대신 보는 내용"),
    )
    open_page(page, identifier)
    for kind, heading in kinds:
        session.records = [replace(compaction(), kind=kind, summary="# 접은 글")]
        key = "fold_record-1_whole" if kind == "verbatim" else "fold_record-1"
        page.session_state[key] = False
        assert heading not in page_text(page.run())
        page.session_state[key] = True
        assert f":small[:gray[{heading}]]" in page_text(page.run())


@pytest.mark.parametrize("kind", ["interval", "verbatim", "compaction"])
def test_an_open_fold_from_before_a_reset_says_that_its_text_is_not_sent(
    page: AppTest, service: ScriptedService, kind: RecordKind
) -> None:
    identifier = store_session(service, 5)
    service.stored[identifier].records = [replace(compaction(), kind=kind)]
    service.reset(identifier)
    page.session_state["fold_record-1_whole"] = True
    assert ":small[:gray[1-3턴 · 지금은 모델에 보내지 않는 내용]]" in page_text(open_page(page, identifier))


def test_a_command_that_cannot_be_run_says_why(page: AppTest, service: ScriptedService) -> None:
    say(page.run(), "/reset")
    assert toasts(page) == ["먼저 대화를 시작해 주세요."]
    assert service.stored == {}
    open_page(page, store_session(service, 1))
    service.refusal = InputError("nothing_to_compact")
    say(page, "/compact")
    assert toasts(page) == ["압축할 만큼 대화가 길지 않습니다."]
    assert not page.error


def test_versions_merges_and_what_is_not_sent_are_told(page: AppTest, service: ScriptedService) -> None:
    identifier = store_session(service, 10)
    merged = replace(make_record(tuple(range(1, 25)), original_chars=9000), kind="merge", sources=("older",) * 8)
    rolling = replace(make_record((25, 26, 27), original_chars=900), kind="rolling", version=3)
    session = service.stored[identifier]
    session.records = [merged, rolling]
    session.unsent_messages, session.context_notice = 7, "full"
    page_shows = page_text(open_page(page, identifier))
    assert "요약 8개를 하나로 합침" in page_shows
    assert ":small[:gray[v3]]" in page_shows
    assert "메시지 7개는 아직 요약되지 않았고" in page_shows
    assert "컨텍스트가 한도를 넘었습니다" in page_shows
