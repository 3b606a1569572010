"""Seed 000, a test for each promise; what it promises of a chat as a whole is in `test_project_seed_turn`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage

from graph.project.context_manager import ContextManager
from graph.project.roll_up import window_tokens
from graph.value.error import InputError
from tests.fake.caching import encoding
from tests.fake.project import SEED_CONTEXT, SEED_WORKFLOW, Project

ANSWER = "배포 날짜를 3월 {number}일로 정했습니다. 담당은 김민수 님이고 포트는 {port}입니다."
TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def talk(context: ContextManager, turns: int) -> None:
    for number in range(1, turns + 1):
        context.register_message("user", f"{number}번째 배포는 언제지?")
        context.register_message("assistant", ANSWER.format(number=number, port=8000 + number))


def keys_of(value: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """Returns the shape of a JSON value: its keys and the types of what stands there, lists by their first item."""
    if isinstance(value, dict):
        return {key: keys_of(each) for key, each in value.items()}
    return [keys_of(each) for each in value[:1]] if isinstance(value, list) else type(value)


def lacking(wanted: Any, found: Any) -> list[str]:  # noqa: ANN401  # shapes as `keys_of` returns them
    if isinstance(wanted, dict) and isinstance(found, dict):
        missing = [key for key in wanted if key not in found]
        return missing + [
            f"{key}.{each}" for key in wanted if key in found for each in lacking(wanted[key], found[key])
        ]
    if isinstance(wanted, list) and isinstance(found, list):
        return lacking(wanted[0], found[0]) if wanted and found else []
    return [] if wanted == found else [f"{wanted}"]


def test_section_1_plans_and_tasks_stand_in_workflow_json_the_rest_in_context_json(project: Project) -> None:
    workflow, context = project.workflow(), project.context()
    workflow.open_plan("0.2 배포", "3월 안에 낸다")
    workflow.open_task("릴리스 노트")
    context.record_decision("포트는 9090")
    context.register_message("user", "다음은 뭐지?")
    stored = {name: (project.brain / name).read_text(encoding="utf-8") for name in ("workflow.json", "context.json")}
    where = {
        said: [name for name, text in stored.items() if said in text]
        for said in ("0.2 배포", "릴리스 노트", "포트는 9090", "다음은 뭐지?")
    }
    assert where == {
        "0.2 배포": ["workflow.json"],
        "릴리스 노트": ["workflow.json"],
        "포트는 9090": ["context.json"],
        "다음은 뭐지?": ["context.json"],
    }


def test_section_2_context_json_has_the_keys_of_the_seed_with_values_of_their_types(project: Project) -> None:
    workflow, context = project.workflow(), project.context()
    workflow.open_plan("0.2 배포", "3월 안에 낸다")
    workflow.open_task("릴리스 노트")
    context.record_decision("포트는 9090")
    context.note_open_files(["docs/cli.md"])
    talk(context, 2)
    wanted = keys_of({**SEED_CONTEXT, "conversation": {**SEED_CONTEXT["conversation"], "vector_cache": []}})
    assert lacking(wanted, keys_of(project.stored())) == []
    assert project.stored()["version"] == "1.0"
    assert all(project.stored()[name].endswith("Z") for name in ("created_at", "updated_at"))


def test_section_3_a_the_path_and_the_limits_are_the_seed_s() -> None:
    limits = (ContextManager.TOKEN_LIMIT, ContextManager.WINDOW_KEEP, ContextManager.SUMMARY_MAXLEN)
    assert (ContextManager.PATH, *limits) == (".ai-brain/context.json", 4096, 800, 400)


def test_section_3_a_without_a_file_an_empty_memory_is_made(project: Project) -> None:
    data = project.context().data
    assert (data.version, data.memory.last_decisions, data.conversation.recent_window) == ("1.0", (), ())
    assert data.memory.working_directory == str(project.root)
    assert project.context().hydrate_prompt()[1:] == ["PROJECT: shop (날짜 없음)"]


def test_section_3_a_over_the_window_the_oldest_leave_for_the_summary(project: Project) -> None:
    context = project.context(lambda messages, _: f"{len(messages)}개의 요약")
    talk(context, 30)
    assert context.roll_up()
    talked = context.data.conversation
    leaving = 60 - len(talked.recent_window)
    assert talked.running_summary == f"{leaving}개의 요약"
    assert [message.id for message in talked.recent_window] == [f"msg_{n:03}" for n in range(leaving + 1, 61)]
    assert not context.roll_up()


def test_section_3_a_answers_weigh_more_in_the_summary(project: Project) -> None:
    waiting = project.context(lambda *_: "")
    for number in range(1, 31):
        waiting.register_message("user", f"질문자는 {number}번 서버를 도쿄 리전으로 옮기기로 결정했습니다.")
        waiting.register_message("assistant", f"답변자는 {number}번 서버를 서울 리전으로 옮기기로 결정했습니다.")
    assert project.context().roll_up()
    summary = project.context().data.conversation.running_summary
    assert summary.count("답변자는") > summary.count("질문자는") > 0


def test_section_3_a_save_renews_the_time_alone(project: Project) -> None:
    context = project.context()
    context.register_message("user", "안녕")
    before = context.data
    project.clock.move(60)
    context.save()
    after = context.data
    assert after.updated_at == project.clock.now
    assert (after.memory, after.conversation, after.stats) == (before.memory, before.conversation, before.stats)


def test_section_5_budgets_hold_in_true_tokens(project: Project) -> None:
    context = project.context()
    talk(context, 30)
    for number in range(40):
        context.record_decision(f"{number}번 API의 호환성을 유지하고 for every release we keep the old names")
    encode = encoding().encode
    lines = context.hydrate_prompt()
    dialog = lines[lines.index("RECENT DIALOG:") :]
    assert 200 < len(encode("\n".join(dialog))) <= ContextManager.WINDOW_KEEP
    assert 1_000 < len(encode("\n".join(lines))) <= 1_600


def test_section_5_a_summary_has_at_most_400_characters_in_korean_and_700_in_english(project: Project) -> None:
    context = project.context()
    assert 350 < len(context.edit_summary("서버를 도쿄 리전으로 옮기는 중이다. " * 60)) <= 400
    assert 650 < len(context.edit_summary("We are moving the servers to Tokyo. " * 60)) <= 700


def test_section_5_a_long_dialog_is_summarised_in_parts_and_these_together(project: Project) -> None:
    given: list[int] = []

    def summarise(messages: Sequence[AnyMessage], _: int) -> str:
        given.append(len(messages))
        return f"{len(given)}번째 요약"

    told = [f"{number}번 서버를 도쿄 리전으로 옮기기로 결정했습니다. " * 60 for number in range(8)]
    window = [{"role": "assistant", "content": each, "ts": "2026-03-01T12:00:00Z"} for each in told]
    project.put({**SEED_CONTEXT, "conversation": {"recent_window": window}}, SEED_WORKFLOW)
    context = project.context(summarise)
    assert context.roll_up()
    assert len(given) > 2
    assert context.data.conversation.running_summary == f"{len(given)}번째 요약"


def test_section_5_sessions_that_write_at_once_lose_nothing(project: Project) -> None:
    with ThreadPoolExecutor(4) as sessions:
        ids = list(sessions.map(lambda number: project.context().register_message("user", f"{number}"), range(40)))
    assert sorted(ids) == [f"msg_{number:03}" for number in range(1, 41)]
    assert {message.content for message in project.context().data.conversation.recent_window} == set(
        map(str, range(40))
    )


def test_section_5_a_snapshot_of_every_30_minutes_can_be_returned_to(project: Project) -> None:
    context = project.context()
    for number in range(4):
        context.record_decision(f"{number}번 결정")
        project.clock.move(1_800)
    taken = project.memory().snapshots()
    assert {newer.at - older.at for newer, older in pairwise(taken)} == {timedelta(minutes=30)}
    project.memory().restore(taken[-1].name)
    assert project.context().data.memory.last_decisions == ("0번 결정",)


def test_section_5_git_doesn_t_see_the_memory(project: Project) -> None:
    subprocess.run(["git", "init", "--quiet", project.root], check=True)
    project.context().register_message("user", "깃에 남기지 않을 말")
    listed = ["git", "-C", str(project.root), "status", "--porcelain", "--untracked-files=all"]
    assert subprocess.run(listed, check=True, capture_output=True, text=True).stdout == "?? .gitignore\n"


def test_section_2_a_seed_file_keeps_its_other_fields_and_is_snapshotted_before_it_gets_ours(project: Project) -> None:
    project.put({**SEED_CONTEXT, "note": {"by": "another program"}}, SEED_WORKFLOW)
    project.context().save()
    stored = project.stored()
    assert lacking(SEED_CONTEXT["memory"], {key: stored["memory"][key] for key in SEED_CONTEXT["memory"]}) == []
    assert stored["conversation"]["vector_cache"] == SEED_CONTEXT["conversation"]["vector_cache"]
    assert (stored["stats"], stored["note"]) == (SEED_CONTEXT["stats"], {"by": "another program"})
    project.context().record_decision("포트는 8501")
    decided = project.stored()["memory"]["last_decisions"]
    assert decided == [*SEED_CONTEXT["memory"]["last_decisions"], "포트는 8501"]
    assert len(project.memory().snapshots()) == 1


def test_section_3_a_a_registered_message_is_on_disk_and_counted_at_once(project: Project) -> None:
    project.context().register_message("user", "포트를 바꿔 줘")
    (message,) = project.stored()["conversation"]["recent_window"]
    told = {key: message[key] for key in ("role", "content", "ts")}
    assert told == {"role": "user", "content": "포트를 바꿔 줘", "ts": "2026-03-01T12:00:00.123456Z"}
    asked = project.stored()["stats"]
    project.context().register_message("assistant", "무엇으로 바꿀까요?")
    stats = project.stored()["stats"]
    assert asked["dialog_turns"] == stats["dialog_turns"] == 1
    assert 0 < asked["total_tokens"] < stats["total_tokens"] - 5


def test_section_4_3_a_switch_of_plans_is_saved_and_begins_the_summary_anew(project: Project) -> None:
    project.context().edit_summary("옛 요약")
    workflow = project.workflow()
    first = workflow.open_plan("0.2 배포", "3월 안에 낸다")
    second = workflow.open_plan("문서")
    assert project.context().data.conversation.running_summary == ""
    workflow.switch_plan(first.id)
    stored = project.stored()
    assert stored["memory"]["active_plan_id"] == project.stored("workflow.json")["current_plan_id"] == first.id
    assert stored["conversation"]["running_summary"] == "3월 안에 낸다"
    project.context().edit_summary("그 뒤의 일")
    assert workflow.switch_plan(first.id) == first
    assert project.context().data.conversation.running_summary == "그 뒤의 일"
    assert workflow.complete_plan(second.id).status == "done"
    assert project.workflow().active_plan == first


def test_section_5_a_secret_is_masked_in_dialog_and_summary_and_refused_elsewhere(project: Project) -> None:
    context, workflow = project.context(), project.workflow()
    context.register_message("user", f"토큰은 {TOKEN} 이야")
    context.edit_summary(f"토큰은 {TOKEN}")
    refused: set[tuple[str, str]] = set()
    for attempt in (
        lambda: context.record_decision(f"토큰은 {TOKEN}"),
        lambda: workflow.open_plan(TOKEN),
        lambda: workflow.open_plan("계획", f"설명 {TOKEN}"),
        lambda: workflow.open_task(TOKEN),
        lambda: workflow.name_project(TOKEN),
        lambda: context.note_open_files([f"keys/{TOKEN}"]),
    ):
        with pytest.raises(InputError) as error:
            attempt()
        refused.add((error.value.code, str(error.value)))
    assert refused == {("input", "input: GitHub token")}
    conversation = project.stored()["conversation"]
    assert conversation["recent_window"][0]["content"] == "토큰은 [secret: GitHub token] 이야"
    assert conversation["running_summary"] == "토큰은 [secret: GitHub token]"
    assert not any(TOKEN in path.read_text(encoding="utf-8") for path in project.brain.rglob("*") if path.is_file())


# Section 6, the check list.


def test_section_6_1_2_and_5_over_the_limit_the_oldest_are_rolled_up_into_the_summary(project: Project) -> None:
    talk(project.context(), 30)
    conversation = project.context().data.conversation
    summary, window = conversation.running_summary, conversation.recent_window
    assert "정했습니다" in summary
    assert len(summary) <= 400
    assert (conversation.message_count, window[-1].id) == (60, "msg_060")
    assert window_tokens(window) <= 800
    told = project.context().hydrate_prompt()
    assert f"SUMMARY: {summary} (2026-03-01)" in told
    assert told[told.index("RECENT DIALOG:") + 1].startswith(("USER: ", "ASSISTANT: "))
    assert told[-1] == f"ASSISTANT: {ANSWER.format(number=30, port=8030)} (2026-03-01)"
    talk(project.context(), 20)
    assert project.context().data.conversation.running_summary != summary
    assert project.stored()["stats"]["dialog_turns"] == 50


def test_section_6_3_active_plan_and_task_and_the_state_of_the_workflow(project: Project) -> None:
    workflow = project.workflow()
    plan = workflow.open_plan("0.2 배포", "3월 안에 낸다")
    first, second = workflow.open_task("릴리스 노트"), workflow.open_task("태그 붙이기")
    workflow.complete_task(second.id)
    again = project.workflow()
    assert (again.plan(plan.id).title, again.task(second.id).status) == ("0.2 배포", "done")
    assert (again.active_plan, again.active_task) == (again.plan(plan.id), again.task(first.id))
    memory, stored = project.stored()["memory"], project.stored("workflow.json")
    assert (memory["active_plan_id"], memory["active_task_id"]) == (plan.id, first.id)
    assert (stored["current_plan_id"], stored["current_task_id"]) == (plan.id, first.id)
    told = set(project.context().hydrate_prompt())
    assert {"ACTIVE PLAN: 0.2 배포 (2026-03-01)", "ACTIVE TASK: 릴리스 노트 (2026-03-01)"} <= told


def test_section_6_4_last_decisions_open_files_and_paths(project: Project) -> None:
    (project.root / "app").mkdir()
    (project.root / "app/main.py").touch()
    context = project.context()
    context.record_decision("API 호환성 유지하기로 결정")
    project.clock.move(86_400)
    context.record_decision("명령은 단수형")
    context.note_open_files(["app/gone.py", "app/main.py"])
    told = context.hydrate_prompt()
    assert "DECISIONS: API 호환성 유지하기로 결정 (2026-03-01), 명령은 단수형 (2026-03-02)" in told
    assert "OPEN FILES: app/gone.py (2026-03-02, 지금은 없음), app/main.py (2026-03-02)" in told
    memory = project.stored()["memory"]
    assert memory["last_decisions"] == ["API 호환성 유지하기로 결정", "명령은 단수형"]
    assert memory["open_files"] == ["app/gone.py", "app/main.py"]
    assert memory["working_directory"] == str(project.root)


def test_section_6_6_a_new_session_is_primed_by_hydrate_prompt(project: Project) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    project.clock.now = project.clock.now.replace(year=2024, month=5, day=28)
    note, *told = project.context().hydrate_prompt()
    assert "사용자의 말이 우선" in note
    assert told == [
        "PROJECT: flow (2024-05-27)",
        "ACTIVE PLAN: CLI 정리 (날짜 없음)",
        "ACTIVE TASK: 문서 고치기 (날짜 없음)",
        "DECISIONS: API 호환성 유지하기로 결정 (2024-05-27), /flow 명령 패턴은 단수형 유지 (2024-05-27)",
        "OPEN FILES: app/workflow.py (2024-05-27, 지금은 없음), docs/cli.md (2024-05-27, 지금은 없음)",
        "SUMMARY: CLI 명령을 단수형으로 바꾸는 중이다. (2024-05-27)",
        "RECENT DIALOG:",
        "USER: 다음은 뭐지? (2024-05-27)",
        "ASSISTANT: 문서를 고치면 됩니다. (2024-05-27)",
    ]
