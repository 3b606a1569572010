"""Seed 000, sections 1 to 5, a test for each promise.

What it promises of a chat as a whole is in `test_project_seed_turn`, section 6, its check list, in
`test_project_checklist`.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from bpe_openai import get_encoding
from langchain_core.messages import AnyMessage

from graph.error import InputError
from graph.project.context_manager import ContextManager
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


def test_section_1_plans_and_tasks_stand_in_workflow_json_and_the_session_s_memory_in_context_json(
    project: Project,
) -> None:
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


def test_section_2_files_as_the_seed_shows_them_are_read_and_their_other_fields_kept(project: Project) -> None:
    project.put({**SEED_CONTEXT, "note": {"by": "another program"}}, SEED_WORKFLOW)
    project.context().save()
    stored = project.stored()
    assert lacking(SEED_CONTEXT["memory"], {key: stored["memory"][key] for key in SEED_CONTEXT["memory"]}) == []
    assert stored["conversation"]["vector_cache"] == SEED_CONTEXT["conversation"]["vector_cache"]
    assert stored["stats"] == SEED_CONTEXT["stats"]
    assert stored["note"] == {"by": "another program"}


def test_section_2_stats_count_turns_and_tokens(project: Project) -> None:
    context = project.context()
    context.register_message("user", "안녕하세요")
    context.register_message("assistant", "무엇을 도와드릴까요?")
    stats = project.stored()["stats"]
    assert stats["dialog_turns"] == 1
    assert stats["total_tokens"] > 5


def test_section_2_a_seed_file_is_kept_readable_and_snapshotted_before_it_gets_our_fields(project: Project) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    project.context().record_decision("포트는 8501")
    stored = project.stored()
    assert stored["memory"]["last_decisions"] == [*SEED_CONTEXT["memory"]["last_decisions"], "포트는 8501"]
    assert stored["conversation"]["vector_cache"] == SEED_CONTEXT["conversation"]["vector_cache"]
    assert len(project.memory().snapshots()) == 1


def test_section_3_a_the_path_and_the_limits_are_the_seed_s() -> None:
    limits = (ContextManager.TOKEN_LIMIT, ContextManager.WINDOW_KEEP, ContextManager.SUMMARY_MAXLEN)
    assert (ContextManager.PATH, *limits) == (".ai-brain/context.json", 4096, 800, 400)


def test_section_3_a_without_a_file_an_empty_memory_is_made(project: Project) -> None:
    data = project.context().data
    assert (data.version, data.memory.last_decisions, data.conversation.recent_window) == ("1.0", (), ())
    assert data.memory.working_directory == str(project.root)
    assert project.context().hydrate_prompt()[1:] == ["PROJECT: shop (날짜 없음)"]


def test_section_3_a_a_registered_message_is_on_disk_at_once(project: Project) -> None:
    project.context().register_message("user", "포트를 바꿔 줘")
    (message,) = project.stored()["conversation"]["recent_window"]
    told = {key: message[key] for key in ("role", "content", "ts")}
    assert told == {"role": "user", "content": "포트를 바꿔 줘", "ts": "2026-03-01T12:00:00.123456Z"}


def test_section_3_a_hydrate_prompt_has_the_labels_of_the_seed_in_its_order(project: Project) -> None:
    project.put(SEED_CONTEXT, SEED_WORKFLOW)
    labels = [
        line.split(":")[0] for line in project.context().hydrate_prompt()[1:] if not line.startswith("OPEN FILES")
    ]
    assert labels == [
        "PROJECT", "ACTIVE PLAN", "ACTIVE TASK", "DECISIONS", "SUMMARY", "RECENT DIALOG", "USER", "ASSISTANT",
    ]  # fmt: skip


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


def test_section_4_3_a_switch_of_the_plan_is_saved_and_the_summary_begins_with_its_description(
    project: Project,
) -> None:
    workflow = project.workflow()
    first = workflow.open_plan("0.2 배포", "3월 안에 낸다")
    workflow.open_plan("문서")
    project.context().edit_summary("문서를 옮기는 중이다.")
    workflow.switch_plan(first.id)
    stored = project.stored()
    assert stored["memory"]["active_plan_id"] == project.stored("workflow.json")["current_plan_id"] == first.id
    assert stored["conversation"]["running_summary"] == "3월 안에 낸다"


def test_section_4_3_only_a_switch_to_another_plan_begins_the_summary_anew(project: Project) -> None:
    talk(project.context(), 30)
    workflow = project.workflow()
    first = workflow.open_plan("첫째", "첫째 설명")
    second = workflow.open_plan("둘째")
    assert project.context().data.conversation.running_summary == ""
    workflow.switch_plan(first.id)
    assert project.context().data.conversation.running_summary == "첫째 설명"
    assert workflow.switch_plan(first.id) == first
    project.context().edit_summary("그 뒤의 일")
    workflow.switch_plan(first.id)
    assert project.context().data.conversation.running_summary == "그 뒤의 일"
    assert workflow.complete_plan(second.id).status == "done"
    assert project.workflow().active_plan == first


def test_section_4_3_a_completed_task_makes_way_for_the_next_in_both_files(project: Project) -> None:
    workflow = project.workflow()
    workflow.open_plan("0.2 배포")
    first, second = workflow.open_task("릴리스 노트"), workflow.open_task("태그")
    workflow.complete_task(second.id)
    assert project.stored()["memory"]["active_task_id"] == first.id
    assert project.stored("workflow.json")["current_task_id"] == first.id


def test_section_5_budgets_hold_in_true_tokens(project: Project) -> None:
    context = project.context()
    talk(context, 60)
    for number in range(60):
        context.record_decision(f"{number}번 API의 호환성을 유지하고 for every release we keep the old names")
    encode = get_encoding("o200k_base").encode
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


def test_section_5_no_secret_stands_in_the_memory(project: Project) -> None:
    context = project.context()
    context.register_message("user", f"토큰은 {TOKEN} 입니다")
    with pytest.raises(InputError):
        context.record_decision(f"토큰은 {TOKEN}")
    assert not any(TOKEN in path.read_text(encoding="utf-8") for path in project.brain.rglob("*") if path.is_file())


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
