"""Shows a project's memory and rules, and gives the managers that change its memory."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final

from graph.file.root_folder import RootFolders
from graph.layer.rule_file import RuleFile
from graph.layer.rule_reader import locate, read_rules
from graph.layer.rule_set import RuleSet, RuleShare
from graph.project.brain_folder import BrainFolder
from graph.project.context_file import DONE, Decision, Plan, summary_limit_chars
from graph.project.context_manager import ContextManager, PrimedLine
from graph.project.file_pair import CONTEXT, WORKFLOW, ProjectState
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_manager import WorkflowManager
from graph.server.settings import Settings
from graph.store.project import RuleAgreement, RuleAgreementStore
from graph.value.error import InputError, PathError, ProjectDamagedError
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
from prompt import project_memory as words
from prompt.system.framing import Language

# A page waits for it.
_WAIT_SECONDS: Final = 2.0


class Projects:
    """The projects of one owner, by root folder.

    Methods that take a root raise `PathError` if it is gone or outside the allowed folders (also by a symbolic link),
    and `ProjectError` if the memory can't be read or written.
    """

    def __init__(
        self,
        owner: str,
        *,
        settings: Settings,
        agreements: RuleAgreementStore,
        roots: RootFolders,
        clock: Callable[[], datetime],
    ) -> None:
        self._owner = owner
        self._memory_owner = settings.memory_owner(owner)
        self._agreements = agreements
        self._roots = roots
        self._clock = clock

    def roots(self) -> tuple[str, ...]:
        """Returns the real paths of the allowed folders; none if no project can be chosen."""
        return tuple(map(str, self._roots.roots))

    def noted(self) -> tuple[str, ...]:
        """Returns the allowed folders, and those directly below them, that have a memory; makes none."""
        below = [root / name for root in self._roots.roots for name in self._folders_in(root)]
        return tuple(root for root in dict.fromkeys(map(str, (*self._roots.roots, *below))) if self.has_memory(root))

    def has_memory(self, root: str) -> bool:
        """Whether anything is noted of a project, without making a memory; False for a folder that is gone."""
        folder = BrainFolder(self._roots, root, self._memory_owner)
        try:
            return folder.has_any((CONTEXT, WORKFLOW))
        except PathError:
            return False

    def _folders_in(self, root: Path) -> tuple[str, ...]:
        try:
            with self._roots.opened(root) as folder:
                return folder.entries("").folders
        except PathError:
            return ()

    def get(self, root: str, *, language: Language = "ko", current_file: str = "") -> ProjectView:
        """Returns a project, with the rules on the way to `current_file` if there is one."""
        return _view_project(self._memory(root), self.rules(root, current_file=current_file), language)

    def rules(self, root: str, *, current_file: str = "") -> RulesView:
        """Returns a project's rules alone; its memory isn't touched, so that no `ProjectError` is raised."""
        found, location = self._found(root, current_file)
        return _view_rules(found, self._agreements.newest(self._owner, self._root(root)), location)

    def agree(self, root: str, digest: str, *, current_file: str = "") -> None:
        """Activates the rules with this digest from the next turn on.

        Raises `InputError`: `rules_changed`: they were changed since they were shown.
        """
        found, _ = self._found(root, current_file)
        if found.digest != digest:
            raise InputError("rules_changed")
        real = self._root(root)
        renewed = agreed_rules(self._agreements.newest(self._owner, real)).renewed(found)
        self._agreements.agree(self._owner, real, digest=renewed.digest, rules=renewed.model_dump_json())

    def workflow(self, root: str) -> WorkflowManager:
        """Loads a project's plans and tasks, to be changed."""
        return WorkflowManager.load(self._memory(root))

    def context(self, root: str) -> ContextManager:
        """Opens a project's decisions, open files and summary, to be changed."""
        return ContextManager(self._memory(root))

    def restore(self, root: str, snapshot: str) -> None:
        """Restores a snapshot by name; the present state becomes a snapshot, and damaged files are preserved."""
        self._memory(root).restore(snapshot)

    def start_over(self, root: str) -> None:
        """Empties the memory; the current one becomes a snapshot, and damaged files are renamed."""
        self._memory(root).start_over()

    def _memory(self, root: str) -> ProjectMemory:
        return ProjectMemory(self._roots, root, self._memory_owner, clock=self._clock, wait_seconds=_WAIT_SECONDS)

    def _root(self, root: str) -> str:
        return str(self._roots.resolve(root))

    def _found(self, root: str, current_file: str) -> tuple[RuleSet, str]:
        """Returns the rules on the disk, and the current file's path from the root."""
        with self._roots.opened(root) as folder:
            location = locate(folder, current_file)
            return read_rules(folder, location), location


_KINDS: Final[dict[str, PrimedKind]] = {
    words.PROJECT: "project",
    words.ACTIVE_PLAN: "plan",
    words.ACTIVE_TASK: "task",
    words.DECISIONS: "decision",
    words.OPEN_FILES: "file",
    words.SUMMARY: "summary",
    words.RECENT_DIALOG: "message",
}


def _view_project(memory: ProjectMemory, rules: RulesView, language: Language) -> ProjectView:
    """Returns the view of a project; with its snapshots alone if its memory is damaged."""
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
        prompt="\n".join(primed.prompt()),
    )


def _view_rules(found: RuleSet, agreement: RuleAgreement | None, current_file: str) -> RulesView:
    """Returns the view of the rules on the disk and of those that the owner has accepted."""
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
