"""Makes the views of a project out of its memory, its rules files and what the owner has agreed to."""

from __future__ import annotations

from typing import Final

from graph.layer.rule_file import RuleFile
from graph.layer.rule_set import RuleSet, RuleShare
from graph.project.context_file import DONE, Decision, Plan, summary_limit_chars
from graph.project.context_manager import ContextManager, PrimedLine
from graph.project.file_pair import ProjectState
from graph.project.project_memory import ProjectMemory
from graph.store.rule_agreement import RuleAgreement
from graph.value.error import ProjectDamagedError
from graph.value.project_view import (
    DecisionView,
    OpenFileView,
    PlanView,
    PrimedKind,
    PrimedLineView,
    ProjectView,
    RuleFileView,
    RulesState,
    RulesView,
    SnapshotView,
    TaskView,
)
from graph.worker.project_turns import agreed_rules
from prompt.project import memory as words
from prompt.system.framing import Language

_KINDS: Final[dict[str, PrimedKind]] = {
    words.PROJECT: "project",
    words.ACTIVE_PLAN: "plan",
    words.ACTIVE_TASK: "task",
    words.DECISIONS: "decision",
    words.OPEN_FILES: "file",
    words.SUMMARY: "summary",
    words.RECENT_DIALOG: "message",
}


def view_project(memory: ProjectMemory, rules: RulesView, language: Language) -> ProjectView:
    """Returns the view of a project; with its snapshots alone if its memory is damaged.

    Raises:
        PathError: The root or the memory's folder is gone or refused.
        ProjectError: The memory can't be read; the subclass says why.
    """
    snapshots = tuple(SnapshotView(each.name, each.at, each.size_bytes) for each in memory.snapshots())
    root = str(memory.root)
    try:
        state = memory.read()
        primed = ContextManager(memory).primed(language)
    except ProjectDamagedError as error:
        return ProjectView(root, memory.root.name, rules, snapshots, damage=error.detail)
    with memory.opened_root() as folder:
        open_files = tuple(OpenFileView(path, is_gone=not folder.has(path)) for path in state.context.memory.open_files)
    plans = tuple(_plan(plan, state) for plan in state.workflow.plans)
    talk = state.context.conversation
    return ProjectView(
        root=root,
        name=state.workflow.project_name,
        rules=rules,
        snapshots=snapshots,
        active_plan=next((plan for plan in plans if plan.is_active), None),
        plans=plans,
        decisions=tuple(map(_decision, state.context.memory.decisions)),
        open_files=open_files,
        summary=talk.running_summary,
        summary_limit_chars=summary_limit_chars(talk.running_summary),
        primed=tuple(map(_primed, primed.lines)),
        older_decisions=primed.older_decisions,
        primed_tokens=primed.tokens,
    )


def view_rules(found: RuleSet, agreement: RuleAgreement | None, current_file: str) -> RulesView:
    """Returns the view of the rules on the disk, beside those that the owner has agreed to."""
    agreed = agreed_rules(agreement)
    known = agreed.within(found.folders)
    state: RulesState = "changed"
    if known.digest == found.digest:
        state = "agreed" if found.digest != RuleSet().digest else "none"
    elif agreement is None:
        state = "new"
    shares = {share.file.path: share for share in agreed.renewed(found).text_for(current_file).shares}
    return RulesView(
        state=state,
        digest=found.digest,
        files=tuple(_rule_file(file, shares.get(file.path)) for file in found.files),
        difference=known.difference(found) if state == "changed" else (),
        exceeded=found.exceeded,
        agreed_at=None if agreement is None else agreement.decided_at,
    )


def _rule_file(file: RuleFile, share: RuleShare | None) -> RuleFileView:
    cleaned = file.cleaned
    return RuleFileView(
        path=file.path,
        kind=file.kind,
        size_bytes=file.size_bytes,
        sent_bytes=share.sent_bytes if share else 0,
        left_out_bytes=share.left_out_bytes if share else 0,
        problem=file.front_matter.problem or "",
        refusal=file.refusal or "",
        text=file.shown,
        invisible_count=cleaned.invisible_count,
        comment_count=cleaned.comment_count,
        import_count=file.import_count,
        bad_count=file.bad_count,
    )


def _plan(plan: Plan, state: ProjectState) -> PlanView:
    active = state.context.memory
    return PlanView(
        id=plan.id,
        title=plan.title,
        description=plan.description,
        is_active=plan.id == active.active_plan_id,
        is_done=plan.status == DONE,
        tasks=tuple(
            TaskView(task.id, task.title, task.id == active.active_task_id, task.status == DONE) for task in plan.tasks
        ),
    )


def _decision(decision: Decision) -> DecisionView:
    day = decision.date.date() if decision.date else None
    return DecisionView(decision.id, decision.text, day, decision.in_force, decision.replaces)


def _primed(line: PrimedLine) -> PrimedLineView:
    return PrimedLineView(
        text=line.text,
        date=line.at.date() if line.at else None,
        is_old=line.is_old,
        kind=_KINDS[line.label],
        item_id=line.item_id,
        speaker=line.speaker.lower(),
        is_gone=line.is_gone,
    )
