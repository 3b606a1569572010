"""The frozen values that the service returns to the page of a project: its memory and its rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

RulesState = Literal["none", "new", "agreed", "changed"]
RuleKind = Literal["always", "globs", "described", "listed"]
PrimedKind = Literal["project", "plan", "task", "decision", "file", "summary", "message"]


@dataclass(frozen=True)
class TaskView:
    """A task of a plan."""

    id: str
    title: str
    is_active: bool
    is_done: bool


@dataclass(frozen=True)
class PlanView:
    """A plan with its tasks, oldest first."""

    id: str
    title: str
    description: str
    is_active: bool
    is_done: bool
    tasks: tuple[TaskView, ...]


@dataclass(frozen=True)
class DecisionView:
    """A decision.

    Attributes:
        date: Its day in UTC; None if nobody wrote it down.
        is_in_force: False if another one has replaced it.
        replaces: The id of the decision that it replaced, or None.
    """

    id: str
    text: str
    date: date | None
    is_in_force: bool
    replaces: str | None


@dataclass(frozen=True)
class OpenFileView:
    """An open file, by its path from the root; `is_gone` if it isn't there any more."""

    path: str
    is_gone: bool


@dataclass(frozen=True)
class PrimedLineView:
    """One thing that a new session in the project starts with.

    Attributes:
        date: The day it was noted, in UTC; None if nobody wrote it down.
        is_old: Noted more than 14 days ago.
        kind: What it is.
        item_id: The id of the plan, task, decision or message; the path of a file; else "".
        speaker: "user" or "assistant" of a message, else "".
        is_gone: A file that isn't there any more.
    """

    text: str
    date: date | None
    is_old: bool
    kind: PrimedKind
    item_id: str
    speaker: str = ""
    is_gone: bool = False


@dataclass(frozen=True)
class SnapshotView:
    """A snapshot of the memory; `created_at` is UTC."""

    name: str
    created_at: datetime
    bytes: int


@dataclass(frozen=True)
class RuleFileView:
    """A rules file as it stands on the disk.

    Attributes:
        path: Relative to the root.
        kind: When it applies: always, for files that its globs match, when the model reads it, or never by itself.
        size_bytes: Its size.
        sent_bytes: What a model is sent of it for the current file, once the rules are agreed to.
        left_out_bytes: What isn't sent because there is no room.
        problem: Why it isn't applied though it was read (a reason of `PathError` or of its front matter), or "".
        refusal: Why it wasn't read (a reason of `PathError`), or "".
        text: Its text, with invisible characters as code points; "" if it wasn't read.
        invisible_count: Invisible characters that no model is sent.
        comment_count: HTML comments that no model is sent.
        import_count: Imports that aren't followed.
        bad_count: Places that were no characters.
    """

    path: str
    kind: RuleKind
    size_bytes: int
    sent_bytes: int
    left_out_bytes: int
    problem: str
    refusal: str
    text: str
    invisible_count: int
    comment_count: int
    import_count: int
    bad_count: int


@dataclass(frozen=True)
class RulesView:
    """The rules files on the disk, and whether the owner has agreed to them.

    Attributes:
        state: "none": there are none; "new": the owner was never asked; "agreed": these are used; "changed": those
            that the owner agreed to are used, not these.
        digest: Tells these rules from others; what `projects.agree` takes.
        difference: With state "changed" the lines of a unified diff from the agreed rules to these.
        exceeded: Of which limit more was there than was read: "files", "folders".
        agreed_at: When the owner last agreed, UTC; None if never.
    """

    state: RulesState
    digest: str
    files: tuple[RuleFileView, ...]
    difference: tuple[str, ...]
    exceeded: tuple[str, ...]
    agreed_at: datetime | None


@dataclass(frozen=True)
class ProjectView:
    """A project as its owner sees it.

    Attributes:
        root: Its real path.
        active_plan: One of `plans`, or None.
        plans: Oldest first.
        decisions: Oldest first; those out of force too.
        open_files: The one that was noted last at the end.
        summary: The running summary.
        summary_limit_chars: How long it may be.
        primed: What a new session starts with, in order.
        older_decisions: How many decisions in force aren't among them.
        primed_tokens: How many tokens that is, as an estimate.
        snapshots: Newest first.
        damage: Which file of the memory can't be understood, and where; "" if all can. Then only the snapshots and the
            rules are filled.
        rules: The rules files.
    """

    root: str
    name: str
    rules: RulesView
    snapshots: tuple[SnapshotView, ...]
    damage: str = ""
    active_plan: PlanView | None = None
    plans: tuple[PlanView, ...] = ()
    decisions: tuple[DecisionView, ...] = ()
    open_files: tuple[OpenFileView, ...] = ()
    summary: str = ""
    summary_limit_chars: int = 0
    primed: tuple[PrimedLineView, ...] = ()
    older_decisions: int = 0
    primed_tokens: int = 0
