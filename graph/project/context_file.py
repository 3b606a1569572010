"""The schema of `.ai-brain/context.json` and `workflow.json`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from graph.core.language import is_written_in
from graph.fold.extract import cut_at_word

VERSION: Final = "1.0"
ID_CHARS: Final = 64
TITLE_CHARS: Final = 300
TEXT_CHARS: Final = 1_000
PATH_CHARS: Final = 1_024


def _in_utc(value: datetime) -> datetime:
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        message = "no time in UTC"
        raise ValueError(message) from error


Time = Annotated[datetime, AfterValidator(_in_utc)]
"""A time in UTC; times without a zone count as UTC."""
Identifier = Annotated[str, StringConstraints(min_length=1, max_length=ID_CHARS)]
Title = Annotated[str, StringConstraints(max_length=TITLE_CHARS)]
Text = Annotated[str, StringConstraints(max_length=TEXT_CHARS)]
PathText = Annotated[str, StringConstraints(max_length=PATH_CHARS)]
Version = Annotated[str, StringConstraints(max_length=ID_CHARS)]


class Part(BaseModel):
    """A frozen object of a file. Each copy is validated; unknown fields are preserved."""

    # Messages of pydantic would quote the user's text.
    model_config = ConfigDict(extra="allow", frozen=True, hide_input_in_errors=True)

    def changed(self, **changes: Any) -> Self:  # noqa: ANN401  # any field's value; it is checked
        """Returns a copy with these fields changed; raises `ValidationError` beyond a limit."""
        return self.model_validate({**dict(self), **changes})


def next_id(kind: str, taken: list[str]) -> str:
    """Returns the id after the highest of this kind: `plan_002` after `plan_001`."""
    numbers = [int(digits) for each in taken if (digits := each.removeprefix(f"{kind}_")).isdecimal()]
    return f"{kind}_{max(numbers, default=0) + 1:03}"


OPEN: Final = "open"
DONE: Final = "done"


class Task(Part):
    id: Identifier
    title: Title
    status: Title = OPEN
    created_at: Time | None = None
    completed_at: Time | None = None


class Plan(Part):
    """A plan with its tasks, oldest first; `status` is "open" or "done"."""

    id: Identifier
    title: Title
    description: Text = ""
    status: Title = OPEN
    created_at: Time | None = None
    completed_at: Time | None = None
    tasks: Annotated[tuple[Task, ...], Field(max_length=500)] = ()

    def next_task(self) -> Task | None:
        return next((task for task in self.tasks if task.status != DONE), None)


class WorkflowFile(Part):
    """The root of `workflow.json`.

    `updated_at` changes with each write by us; `context.json` repeats it, so that an interrupted change is detected.
    """

    version: Version = VERSION
    created_at: Time | None = None
    updated_at: Time | None = None
    project_name: Title = ""
    plans: Annotated[tuple[Plan, ...], Field(max_length=200)] = ()
    current_plan_id: Identifier | None = None
    current_task_id: Identifier | None = None

    def find_plan(self, plan_id: str | None) -> Plan | None:
        return next((plan for plan in self.plans if plan.id == plan_id), None)

    def find_task(self, task_id: str | None) -> tuple[Plan, Task] | None:
        return next(((plan, task) for plan, task in self.tasks() if task.id == task_id), None)

    def tasks(self) -> Iterator[tuple[Plan, Task]]:
        return ((plan, task) for plan in self.plans for task in plan.tasks)

    def with_plan(self, changed: Plan) -> WorkflowFile:
        """Returns the file with the plan replaced or appended; raises `ValidationError` for too many plans."""
        plans = [changed if plan.id == changed.id else plan for plan in self.plans]
        return self.changed(plans=plans if self.find_plan(changed.id) else [*plans, changed])


MESSAGE_CHARS: Final = 16_000
SUMMARY_CHARS: Final = 400
SUMMARY_CHARS_ENGLISH: Final = 700
OPEN_FILES: Final = 50
_DECISIONS: Final = 500
_APPLIED: Final = 256


def summary_limit_chars(text: str) -> int:
    """Returns the maximum length of a summary: 400 characters in Korean (or if unclear), 700 in other scripts."""
    return SUMMARY_CHARS if is_written_in(text, {"ko"}) else SUMMARY_CHARS_ENGLISH


def _cut_message(text: str) -> str:
    return cut_at_word(text, MESSAGE_CHARS)


def _cut_summary(text: str) -> str:
    return text if len(text) <= SUMMARY_CHARS else cut_at_word(text, summary_limit_chars(text))


def _keep_newest(applied: dict[str, str]) -> dict[str, str]:
    return dict(list(applied.items())[-_APPLIED:])


class Decision(Part):
    """A decision by "user", or by "model" for the user; a replaced one is retained with `in_force` false."""

    id: Identifier
    text: Text
    date: Time | None = None
    source: Title = "user"
    replaces: Identifier | None = None
    in_force: bool = True


class Memory(Part):
    """The context of the work; open files are relative to the root, newest last.

    `last_decisions` are the texts in force, oldest first, for readers of the seed's format.
    """

    active_plan_id: Identifier | None = None
    active_task_id: Identifier | None = None
    last_decisions: Annotated[tuple[Text, ...], Field(max_length=_DECISIONS)] = ()
    open_files: Annotated[tuple[PathText, ...], Field(max_length=OPEN_FILES)] = ()
    working_directory: PathText = ""
    decisions: Annotated[tuple[Decision, ...], Field(max_length=_DECISIONS)] = ()
    file_times: dict[str, Time] = Field(default_factory=dict)

    def with_decisions(self, decisions: Iterable[Decision]) -> Self:
        """Returns a copy with these decisions in both forms; of more than 500, the oldest replaced ones are dropped.

        Raises `ValidationError` if more than 500 are in force.
        """
        retained = list(decisions)
        over = len(retained) - _DECISIONS
        for each in [each for each in retained if not each.in_force][: max(0, over)]:
            retained.remove(each)
        return self.changed(decisions=retained, last_decisions=[each.text for each in retained if each.in_force])

    def with_all_decisions(self, at: datetime | None) -> Self:
        """Returns a copy with a decision for each text that only `last_decisions` has, such as a line added by hand."""
        decisions = list(self.decisions)
        known = {each.text for each in decisions if each.in_force}
        for text in dict.fromkeys(self.last_decisions):
            if text not in known:
                number = next_id("decision", [each.id for each in decisions])
                decisions.append(Decision(id=number, text=text, date=at))
        return self.with_decisions(decisions)


class Message(Part):
    """A message of the dialog; a very long one is cut. Messages without an id were written by other programs.

    Summaries ignore an `is_repetition`.
    """

    id: Annotated[str, StringConstraints(max_length=64)] = ""
    role: Title
    content: Annotated[str, AfterValidator(_cut_message)]
    ts: Time | None = None
    is_repetition: bool = False


class Conversation(Part):
    """The dialog: a summary of older messages, cut to its limit, and the later messages, oldest first.

    `vector_cache` is of `vector_model`, or, without one, another program's, which is preserved (`vector_cache.py`).
    `message_count` counts all messages ever and numbers the next.
    """

    running_summary: Annotated[str, AfterValidator(_cut_summary)] = ""
    summary_at: Time | None = None
    recent_window: Annotated[tuple[Message, ...], Field(max_length=5_000)] = ()
    vector_cache: tuple[Any, ...] = ()
    vector_model: Title = ""
    message_count: Annotated[int, Field(ge=0)] = 0

    def base_of(self, count: int) -> str:
        """Hashes the summary and the oldest `count` messages, the source of a new summary."""
        parts = [self.running_summary, *(f"{each.id} {each.content}" for each in self.recent_window[:count])]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Stats(Part):
    """Counts over all registered messages; the tokens are estimates."""

    dialog_turns: Annotated[int, Field(ge=0)] = 0
    total_tokens: Annotated[int, Field(ge=0)] = 0


class ContextFile(Part):
    """The root of `context.json`.

    Attributes:
        workflow_updated_at: The `updated_at` of the matching `workflow.json`.
        workflow_pending: That file, if it was not yet written at the time; else None.
        workflow_base: Hash of the `workflow.json` to be replaced; "" for none.
        applied: Ids of the newest 256 operations, each with the id of the item it made, or "".
    """

    version: Version = VERSION
    created_at: Time | None = None
    updated_at: Time | None = None
    memory: Memory = Memory()
    conversation: Conversation = Conversation()
    stats: Stats = Stats()
    workflow_updated_at: Time | None = None
    workflow_pending: WorkflowFile | None = None
    workflow_base: Title = ""
    applied: Annotated[dict[str, str], AfterValidator(_keep_newest)] = Field(default_factory=dict)
