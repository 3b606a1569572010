"""Shows a project's memory and rules, and changes them as their owner says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from graph.layer.rule_reader import locate, read_rules
from graph.layer.rule_set import RuleSet
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project.workflow_manager import WorkflowManager
from graph.service.access import SessionAccess
from graph.service.project_views import view_project, view_rules
from graph.value.error import InputError
from graph.value.project_view import ProjectView, RulesView
from graph.worker.project_turns import agreed_rules
from prompt.system.framing import Language

# A page waits for it.
_WAIT_SECONDS: Final = 2.0


class Projects:
    """The projects of one owner, by their root folders.

        view = service.projects.get("/srv/shop")
        if view.rules.state in {"new", "changed"}:
            service.projects.agree("/srv/shop", view.rules.digest)
        view = service.projects.open_task("/srv/shop", "Write the release notes")

    Every method that takes a root raises `PathError` if it isn't in an allowed folder, leads out of one by a symbolic
    link, or is gone, and, unless it says otherwise, `ProjectError` if the memory can't be read or written; the subclass
    says why. Each one that changes something returns the project as it is then, in the language of the default.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._owner = access.owner
        self._memory_owner = access.settings.memory_owner(access.owner)
        self._agreements = access.stores.agreements
        self._roots = access.roots
        self._clock = access.clock

    def roots(self) -> tuple[str, ...]:
        """Returns the real paths of the allowed folders; none if no project can be chosen."""
        return tuple(map(str, self._roots.roots))

    def get(self, root: str, *, language: Language = "ko", current_file: str = "") -> ProjectView:
        """Returns a project.

        Args:
            root: Its folder.
            language: Of what a new session would start with.
            current_file: The file that the user is in: the rules on the way to it are shown, too.
        """
        return view_project(self._memory(root), self.rules(root, current_file=current_file), language)

    def rules(self, root: str, *, current_file: str = "") -> RulesView:
        """Returns a project's rules alone; its memory isn't touched, so that no `ProjectError` is raised."""
        found, place = self._found(root, current_file)
        return view_rules(found, self._agreements.newest(self._owner, self._root(root)), place)

    def agree(self, root: str, digest: str, *, current_file: str = "") -> None:
        """Has the rules used that were shown, from the next turn on.

        Args:
            root: The project's folder.
            digest: That of the rules as they were shown.
            current_file: What they were shown for.

        Raises:
            InputError: `rules_changed`: they aren't what was shown any more; nothing was agreed to.
        """
        found, _ = self._found(root, current_file)
        if found.digest != digest:
            raise InputError("rules_changed")
        real = self._root(root)
        renewed = agreed_rules(self._agreements.newest(self._owner, real)).renewed(found)
        self._agreements.agree(self._owner, real, digest=renewed.digest, rules=renewed.model_dump_json())

    def name(self, root: str, name: str) -> ProjectView:
        """Names the project.

        Raises:
            InputError: The name is empty, too long or has a secret.
        """
        return self._work(root, lambda workflow: workflow.name_project(name))

    def open_plan(self, root: str, title: str, description: str = "") -> ProjectView:
        """Adds a plan and switches to it; the summary begins anew with its description.

        Raises:
            InputError: A text is empty, too long or has a secret; or there are too many plans.
        """
        return self._work(root, lambda workflow: workflow.open_plan(title, description))

    def switch_plan(self, root: str, plan_id: str) -> ProjectView:
        """Makes a plan the active one; the summary begins anew with its description.

        Raises:
            NotFoundError: There is no such plan.
        """
        return self._work(root, lambda workflow: workflow.switch_plan(plan_id))

    def complete_plan(self, root: str, plan_id: str) -> ProjectView:
        """Marks a plan as done.

        Raises:
            NotFoundError: There is no such plan.
        """
        return self._work(root, lambda workflow: workflow.complete_plan(plan_id))

    def open_task(self, root: str, title: str) -> ProjectView:
        """Adds a task to the active plan and makes it the active one.

        Raises:
            InputError: The title is empty, too long or has a secret; or there are too many tasks.
        """
        return self._work(root, lambda workflow: workflow.open_task(title))

    def start_task(self, root: str, task_id: str) -> ProjectView:
        """Makes a task the active one, open again if it was done.

        Raises:
            NotFoundError: There is no such task.
        """
        return self._work(root, lambda workflow: workflow.start_task(task_id))

    def complete_task(self, root: str, task_id: str) -> ProjectView:
        """Marks a task as done.

        Raises:
            NotFoundError: There is no such task.
        """
        return self._work(root, lambda workflow: workflow.complete_task(task_id))

    def rename(self, root: str, item_id: str, title: str) -> ProjectView:
        """Gives a plan or a task another title.

        Raises:
            NotFoundError: There is none of this id.
            InputError: The title is empty, too long or has a secret.
        """
        return self._work(root, lambda workflow: workflow.rename(item_id, title))

    def forget(self, root: str, item_id: str) -> ProjectView:
        """Deletes a plan with its tasks, or a task.

        Raises:
            NotFoundError: There is none of this id.
        """
        return self._work(root, lambda workflow: workflow.forget(item_id))

    def record_decision(self, root: str, text: str, replaces: str | None = None) -> ProjectView:
        """Adds a decision, which may replace another one.

        Raises:
            NotFoundError: There is no decision to be replaced.
            InputError: The text is empty, too long or has a secret; or there are too many decisions.
        """
        return self._note(root, lambda context: context.record_decision(text, replaces=replaces))

    def forget_decision(self, root: str, decision_id: str) -> ProjectView:
        """Deletes a decision.

        Raises:
            NotFoundError: There is no such decision.
        """
        return self._note(root, lambda context: context.forget_decision(decision_id))

    def open_file(self, root: str, path: str) -> ProjectView:
        """Notes that a file is open.

        Raises:
            PathError: It isn't inside the project.
            InputError: The path has a secret or is too long.
        """
        return self._note(root, lambda context: context.note_open_files([path]))

    def close_file(self, root: str, path: str) -> ProjectView:
        """Notes that a file is open no more; by the path that is listed."""
        return self._note(root, lambda context: context.note_open_files(closed=[path]))

    def edit_summary(self, root: str, text: str) -> ProjectView:
        """Sets the running summary, cut to its limit; "" forgets it."""
        return self._note(root, lambda context: context.edit_summary(text))

    def forget_dialog(self, root: str) -> ProjectView:
        """Forgets the recent dialog; the summary stays."""
        return self._note(root, lambda context: context.forget_dialog())

    def restore(self, root: str, snapshot: str) -> ProjectView:
        """Returns to a snapshot, by its name; what stands now becomes one, and a damaged file is kept aside.

        Raises:
            NotFoundError: There is no such snapshot.
        """
        self._memory(root).restore(snapshot)
        return self.get(root)

    def start_over(self, root: str) -> ProjectView:
        """Begins with an empty memory; what stands now becomes a snapshot, and damaged files are kept aside."""
        self._memory(root).start_over()
        return self.get(root)

    def _work(self, root: str, change: Callable[[WorkflowManager], object]) -> ProjectView:
        change(WorkflowManager.load(self._memory(root)))
        return self.get(root)

    def _note(self, root: str, change: Callable[[ContextManager], object]) -> ProjectView:
        change(ContextManager(self._memory(root)))
        return self.get(root)

    def _memory(self, root: str) -> ProjectMemory:
        return ProjectMemory(self._roots, root, self._memory_owner, clock=self._clock, wait_seconds=_WAIT_SECONDS)

    def _root(self, root: str) -> str:
        return str(self._roots.resolve(root))

    def _found(self, root: str, current_file: str) -> tuple[RuleSet, str]:
        """Returns the rules on the disk, and the current file's path from the root."""
        with self._roots.opened(root) as folder:
            place = locate(folder, current_file)
            return read_rules(folder, place), place
