"""The tools with which the model edits a project's memory and reads its rules."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Final

from langchain_core.tools import BaseTool, ToolException

from graph.project.context_file import DONE, Plan, Task
from graph.project.context_manager import ContextManager
from graph.project.project_memory import ProjectMemory
from graph.project.secret import mask_secrets
from graph.project.workflow_manager import WorkflowManager
from graph.tool.tool_context import build_tool
from graph.value.error import InputError, NotFoundError, PathError, ProjectError
from prompt.system.framing import Language
from prompt.tool import project as words
from prompt.tool.project import DESCRIPTIONS, no_rule

_MOST_LINES: Final = 20
_ID_CHARS: Final = 64
# A shorter quotation must be a whole message: almost every message contains "a".
_LEAST_QUOTE_CHARS: Final = 4
_AROUND: Final = "\"'`“”‘’「」『』«»"


def build_project_notes(
    open_memory: Callable[[], ProjectMemory], user_words: Callable[[], Iterable[str]], language: Language
) -> list[BaseTool]:
    """Returns the tools; results list the resulting state, and refusals the reason and the available items.

    `open_memory` is called only with a tool, so that the same tools are offered while the memory can't be opened.
    """
    notes, texts = ProjectNotes(open_memory, user_words, language), words.DESCRIPTIONS[language]
    decision = {"text": texts.decision_text, "said": texts.decision_quote, "replaces": texts.decision_replaces}
    return [
        build_tool(notes.record_decision, texts.decision, **decision),
        build_tool(notes.open_task, texts.task, title=texts.task_title),
        build_tool(notes.complete_task, texts.done, task_id=texts.done_id),
        build_tool(notes.switch_plan, texts.plan, plan_id=texts.plan_id),
        build_tool(notes.note_open_files, texts.files, paths=texts.files_paths),
    ]


class ProjectNotes:
    """Implementation of the tools; the arguments of each method are those of its tool.

    If nothing was noted, the methods raise `ToolException` with a sentence for the model.
    """

    def __init__(
        self, open_memory: Callable[[], ProjectMemory], user_words: Callable[[], Iterable[str]], language: Language
    ) -> None:
        self._open_memory = open_memory
        self._user_words = user_words
        self._language = language

    def record_decision(self, text: str, said: str, replaces: str = "") -> str:
        """Records a decision of the user; `said` must be a quotation of the user's messages."""
        if not is_quoted(said, self._user_words()):
            raise ToolException(words.NEEDS_WORDS[self._language])
        with self._refusals(replaces, self._decisions):
            context = ContextManager(self._memory)
            if replaces and all(each.id != replaces for each in context.data.memory.decisions):
                raise NotFoundError
            context.record_decision(text, replaces=replaces or None, source="model")
            return self._decisions()

    def open_task(self, title: str) -> str:
        with self._refusals("", self._tasks):
            WorkflowManager.load(self._memory).open_task(title)
            return self._tasks()

    def complete_task(self, task_id: str) -> str:
        with self._refusals(task_id, self._tasks):
            workflow = WorkflowManager.load(self._memory)
            workflow.complete_task(workflow.task(task_id).id)
            return self._tasks()

    def switch_plan(self, plan_id: str) -> str:
        with self._refusals(plan_id, self._plans):
            workflow = WorkflowManager.load(self._memory)
            workflow.switch_plan(workflow.plan(plan_id).id)
            return f"{self._plans()}\n{self._tasks()}"

    def note_open_files(self, paths: list[str]) -> str:
        with self._refusals("", self._plans):
            noted = ContextManager(self._memory).note_open_files(paths)
            return self._listed(words.FILES, noted)

    @cached_property
    def _memory(self) -> ProjectMemory:
        return self._open_memory()

    @contextmanager
    def _refusals(self, name: str, present: Callable[[], str]) -> Iterator[None]:
        """Converts errors to a sentence for the model; an unknown id is answered with the present items."""
        language = self._language
        try:
            yield
        except NotFoundError:
            raise ToolException(words.no_such(name[:_ID_CHARS], present(), language)) from None
        except InputError as error:
            raise ToolException(words.refused(error.reason, error.detail, language)) from None
        except PathError as error:
            raise ToolException(words.refused(error.code, mask_secrets(error.detail)[:200], language)) from None
        except ProjectError as error:
            raise ToolException(words.refused(error.code, "", language)) from None

    def _decisions(self) -> str:
        decisions = ContextManager(self._memory).data.memory.decisions
        lines = [
            f"{each.id} ({each.date:%Y-%m-%d}): {each.text}" if each.date else f"{each.id}: {each.text}"
            for each in decisions
            if each.in_force
        ]
        return self._listed(words.DECISIONS, lines)

    def _tasks(self) -> str:
        workflow = WorkflowManager.load(self._memory)
        plan, active = workflow.active_plan, workflow.active_task
        lines = [self._line(task, active) for task in plan.tasks] if plan else []
        return self._listed(words.TASKS, lines)

    def _plans(self) -> str:
        workflow = WorkflowManager.load(self._memory)
        return self._listed(words.PLANS, [self._line(plan, workflow.active_plan) for plan in workflow.data.plans])

    def _line(self, item: Plan | Task, active: Plan | Task | None) -> str:
        if active is not None and item.id == active.id:
            return f"{item.id} [{words.ACTIVE[self._language]}]: {item.title}"
        done = f" [{words.DONE[self._language]}]" if item.status == DONE else ""
        return f"{item.id}{done}: {item.title}"

    def _listed(self, heading: words.Heading, lines: Iterable[str]) -> str:
        """Renders lines of untrusted origin: one line each, without secrets."""
        plain = [mask_secrets(_plain(line)) for line in lines]
        return words.listed(heading, plain, _MOST_LINES, self._language)


def is_quoted(quote: str, messages: Iterable[str]) -> bool:
    """Returns True if a message contains the quotation; consecutive white space counts as one space."""
    wanted = _plain(_plain(quote).strip(_AROUND))
    said = (_plain(message) for message in messages)
    if len(wanted) < _LEAST_QUOTE_CHARS:
        return bool(wanted) and any(wanted == message.strip(_AROUND + " .!?~") for message in said)
    return any(wanted in message for message in said)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def build_read_rule(find: Callable[[str], str | None], language: Language) -> BaseTool:
    """Returns `read_rule`; `find` returns the quoted text of a rule agreed to by the owner, None if there is none."""
    texts = DESCRIPTIONS[language]

    def read_rule(name: str) -> str:
        text = find(name.strip())
        if text is None:
            raise ToolException(no_rule(name[:100], language))
        return text

    return build_tool(read_rule, texts.rule, name=texts.rule_name)
