from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Final, get_args

import pytest
from annotated_types import MaxLen

from graph.offline.note_down import find_note
from graph.project import context_file, part, primer, roll_up, snapshots
from graph.project.context_file import Memory
from graph.project.folder_files import LARGEST_BYTES
from graph.project.part import Part
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_file import Plan, WorkflowFile
from graph.tool.project_note import build_project_notes
from graph.worker.project_roll_up import ROLL_UP_TOKENS
from prompt.system.framing import Language
from tests.fake.project import SEED_CONTEXT, Project

DOCS: Final = Path(__file__).parents[2] / "docs"
GUIDES: Final[dict[Language, str]] = {"ko": "project-memory.ko.md", "en": "project-memory.md"}
LIMITS: Final[dict[Language, str]] = {"ko": "한도", "en": "Limits"}
TOLD: Final[dict[Language, tuple[str, ...]]] = {
    "ko": (
        "0.2 배포",
        "릴리스 노트 쓰기",
        "API 호환성 유지",
        "포트는 9090",
        "CLI 명령을 단수형으로 바꾸는 중이다.",
        "다음은 뭐지?",
        "릴리스 노트를 쓰면 됩니다.",
    ),
    "en": (
        "release 0.2",
        "write the release notes",
        "keep the API stable",
        "the port is 9090",
        "The commands are being renamed.",
        "What comes next?",
        "The release notes.",
    ),
}
MEBIBYTE: Final = 1024 * 1024


def longest(kind: type[Part], field: str) -> int:
    (limit,) = [each for each in kind.model_fields[field].metadata if isinstance(each, MaxLen)]
    return limit.max_length


def section(language: Language, title: str) -> str:
    guide = (DOCS / GUIDES[language]).read_text(encoding="utf-8")
    return guide.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize("language", get_args(Language))
def test_the_guide_s_limits_are_those_of_the_code(language: Language) -> None:
    rows = [line.split("|")[2] for line in section(language, LIMITS[language]).splitlines() if line.startswith("| ")]
    figures = [int(re.sub(r"\D", "", row)) for row in rows[1:]]
    assert figures == [
        part.TITLE_CHARS,
        part.TEXT_CHARS,
        part.PATH_CHARS,
        context_file.MESSAGE_CHARS,
        context_file.SUMMARY_CHARS,
        context_file.SUMMARY_CHARS_ENGLISH,
        longest(Memory, "decisions"),
        longest(WorkflowFile, "plans"),
        longest(Plan, "tasks"),
        context_file.OPEN_FILES,
        roll_up.WINDOW_KEEP,
        ROLL_UP_TOKENS,
        roll_up.TOKEN_LIMIT,
        primer.BUDGET_TOKENS,
        primer.OLD_AFTER.days,
        snapshots.INTERVAL.seconds // 60,
        snapshots.KEPT,
        snapshots.LARGEST_BYTES // MEBIBYTE,
        LARGEST_BYTES // MEBIBYTE,
        inspect.signature(ProjectMemory).parameters["wait_seconds"].default,
    ]


@pytest.mark.parametrize("language", get_args(Language))
def test_what_is_told_in_running_text_has_the_figures_of_the_limits(language: Language) -> None:
    limits = section(language, LIMITS[language])
    guide = (DOCS / GUIDES[language]).read_text(encoding="utf-8")
    for figure in ("1,600", "800", "2,048", "4,096", "400", "700", "14", "30", "48", "10"):
        assert re.search(rf"(?<![\d,]){figure}(?!,?\d)", limits)
        assert re.search(rf"(?<![\d,]){figure}(?!,?\d)", guide.replace(limits, ""))


@pytest.mark.parametrize("language", get_args(Language))
def test_the_guide_s_example_is_what_a_session_starts_with(language: Language, tmp_path: Path) -> None:
    plan, task, first, second, summary, asked, answered = TOLD[language]
    project = Project(tmp_path)
    (project.root / "docs").mkdir()
    (project.root / "docs/cli.md").touch()
    workflow, context = project.workflow(), project.context()
    workflow.open_plan(plan)
    context.record_decision(first)
    project.clock.move(18 * 86_400)
    workflow.open_task(task)
    context.record_decision(second)
    context.note_open_files(["app/old.py", "docs/cli.md"])
    context.edit_summary(summary)
    context.register_message("user", asked)
    context.register_message("assistant", answered)
    assert "```\n" + "\n".join(context.hydrate_prompt(language)) + "\n```" in section(
        language, "세션이 시작할 때 읽는 것" if language == "ko" else "What a session starts with"
    )


@pytest.mark.parametrize("language", get_args(Language))
def test_the_guide_names_every_tool_and_every_key(language: Language, tmp_path: Path) -> None:
    guide = (DOCS / GUIDES[language]).read_text(encoding="utf-8")
    project = Project(tmp_path)
    project.put(SEED_CONTEXT)
    project.context().record_decision("포트는 9090")
    tools = [tool.name for tool in build_project_notes(project.memory, tuple, language)]
    stored = project.stored()
    keys = [*stored["memory"], *stored["conversation"], *stored["memory"]["decisions"][0], "applied", "stats"]
    for name in [*tools, *keys]:
        assert re.search(rf"[`.]{name}`", guide), name


@pytest.mark.parametrize("language", get_args(Language))
def test_what_the_guide_says_to_the_embedded_model_is_understood(language: Language) -> None:
    said = section(language, "누가 무엇을 적나" if language == "ko" else "Who notes what").rpartition("\n\n")[2]
    notes = [find_note(sentence) for sentence in re.findall(r"`([^`]+)`", said)]
    assert [note.tool for note in notes if note] == [
        "record_decision",
        "open_task",
        "complete_task",
        "note_open_files",
        "switch_plan",
    ]
    assert len(notes) == 5


def test_both_guides_have_the_same_sections_and_tables() -> None:
    shapes = []
    for name in GUIDES.values():
        lines = (DOCS / name).read_text(encoding="utf-8").splitlines()
        cells = [line.split("|")[1] for line in lines if line.startswith("| `")]
        shapes.append(
            (cells, sum(line.startswith("## ") for line in lines), sum(line.startswith("- ") for line in lines))
        )
    assert shapes[0] == shapes[1]
