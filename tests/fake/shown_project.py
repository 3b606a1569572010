"""A project as the service would show it, with something of everything."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from graph.value.project_view import (
    DecisionView,
    OpenFileView,
    PlanView,
    PrimedLineView,
    ProjectView,
    RuleFileView,
    RulesView,
    SnapshotView,
    TaskView,
)
from tests.fake.scripted_projects import NO_RULES


def primed_on(day: date) -> tuple[PrimedLineView, ...]:
    """Returns what a chat that starts on that day is told."""
    return (
        PrimedLineView("가게", day, is_old=False, kind="project", item_id=""),
        PrimedLineView("여름 배포", day - timedelta(days=20), is_old=True, kind="plan", item_id="plan-1"),
        PrimedLineView("릴리스 노트", day - timedelta(days=1), is_old=False, kind="task", item_id="task-1"),
        PrimedLineView("포트는 8502", day - timedelta(days=3), is_old=False, kind="decision", item_id="decision-2"),
        PrimedLineView("old.py", None, is_old=False, kind="file", item_id="old.py", is_gone=True),
        PrimedLineView("배포 준비 중", day, is_old=False, kind="summary", item_id=""),
        PrimedLineView("무엇을 적지?", day, is_old=False, kind="message", item_id="m-1", speaker="user"),
    )


ROOT = "/srv/projects/shop"
TODAY = datetime.now(UTC).date()
PLAN = PlanView(
    "plan-1",
    "여름 배포",
    "다음 주까지",
    is_active=True,
    is_done=False,
    tasks=(
        TaskView("task-1", "릴리스 노트", is_active=True, is_done=False),
        TaskView("task-2", "태그 달기", is_active=False, is_done=False),
        TaskView("task-3", "시험 돌리기", is_active=False, is_done=True),
    ),
)
OTHER = PlanView("plan-0", "정리", "", is_active=False, is_done=True, tasks=())
DECISIONS = (
    DecisionView("decision-1", "포트는 8501", TODAY, is_in_force=False, replaces=None),
    DecisionView("decision-2", "포트는 8502", TODAY, is_in_force=True, replaces="decision-1"),
)
PRIMED = primed_on(TODAY)
SNAPSHOT = SnapshotView("20261120T030000000000Z-0123456789ab.json", datetime(2026, 11, 20, 3, tzinfo=UTC), 4_200)
VIEW = ProjectView(
    root=ROOT,
    name="가게",
    rules=NO_RULES,
    snapshots=(SNAPSHOT,),
    active_plan=PLAN,
    plans=(OTHER, PLAN),
    decisions=DECISIONS,
    open_files=(OpenFileView("app.py", is_gone=False), OpenFileView("old.py", is_gone=True)),
    summary="배포 준비 중",
    summary_limit_chars=400,
    primed=PRIMED,
    older_decisions=4,
    primed_tokens=321,
)
FILE = RuleFileView("AGENTS.md", "always", 45_002, 32_768, 12_034, "", "", "규칙 글", 2, 1, 3, 4)


def rules(state: str, *files: RuleFileView, **more: object) -> RulesView:
    return replace(NO_RULES, state=state, digest="d-1", files=files, **more)  # type: ignore[arg-type]  # named by the tests
