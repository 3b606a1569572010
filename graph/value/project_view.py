"""Frozen values for the page of a project: memory and rules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal

RulesState = Literal["none", "new", "agreed", "changed"]
RuleKind = Literal["always", "globs", "described", "listed"]
PrimedKind = Literal["project", "plan", "task", "decision", "file", "summary", "message"]


@dataclass(frozen=True)
class TaskView:
    id: str
    title: str
    is_active: bool
    is_done: bool


@dataclass(frozen=True)
class PlanView:
    id: str
    title: str
    description: str
    is_active: bool
    is_done: bool
    tasks: tuple[TaskView, ...]


@dataclass(frozen=True)
class DecisionView:
    """A decision; `date` is UTC, and `replaces` the id of the earlier one."""

    id: str
    text: str
    date: date | None
    is_in_force: bool
    replaces: str | None


@dataclass(frozen=True)
class OpenFileView:
    path: str
    is_gone: bool


@dataclass(frozen=True)
class PrimedLineView:
    """A line of the context for new sessions of the project; `date` is UTC, `is_old` means over 14 days.

    `item_id` is the id of a plan, task, decision or message, or a file's path.
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
    """A rules file on the disk.

    Attributes:
        kind: When it applies: always, for files that match its globs, when the model reads it, or never by itself.
        sent_bytes: Bytes sent to a model for the current file, once the rules are accepted.
        left_out_bytes: Bytes left out for lack of room.
        problem: Why a file that was read isn't applied (a reason of `PathError` or of the front matter), or "".
        refusal: Why the file wasn't read (a reason of `PathError`), or "".
        text: Invisible characters are shown as code points; "" if not read.
        import_count: Imports, which aren't followed.
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
    """The rules files on the disk, and the owner's agreement.

    Attributes:
        state: "none": no files; "new": never accepted; "agreed": the files are used; "changed": the files differ from
            the accepted ones, which stay in use.
        digest: Identifies this version of the rules; the argument of `projects.agree`.
        difference: For "changed" the lines of a unified diff from the accepted rules.
        exceeded: Limits reached while reading: "files", "folders".
    """

    state: RulesState
    digest: str
    files: tuple[RuleFileView, ...]
    difference: tuple[str, ...]
    exceeded: tuple[str, ...]
    agreed_at: datetime | None


@dataclass(frozen=True)
class ProjectView:
    """A project's memory and rules; plans and decisions oldest first, open files newest last, snapshots newest first.

    Attributes:
        older_decisions: Number of decisions in force outside `primed`.
        prompt: What a new session is told, made of `primed`.
        damage: The file of the memory that can't be parsed, and the position; only snapshots and rules are filled then.
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
    prompt: str = ""
