"""Composes what a model reads of the contexts: persistent first, volatile last, the task's own prompt behind both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from graph.layer.app_context import AppContextService
from graph.layer.block_text import join_lines, render_block
from graph.layer.context_key import LAYER_SUMMARY, PROJECT_MEMORY, RECENT_EXECUTIONS
from graph.layer.execution import ExecutionContext
from graph.layer.scope import ContextStore
from prompt.system.context_layer import PERSISTENT_HEADING, VOLATILE_HEADING
from prompt.system.framing import Language


class LLMTaskType(StrEnum):
    """What a model is called for, which decides the contexts that it reads.

    Attributes:
        CREATE_TREE: A task of one prompt: persistent, volatile, and all of the turn: its id, the user's message, and
            the lines of the turns before it.
        CHAT: An answer of the chat: persistent and volatile; the user's message follows them anyway.
        SUMMARY: A summary of what was said: persistent alone.
    """

    CREATE_TREE = "create_tree"
    CHAT = "chat"
    SUMMARY = "summary"


@dataclass(frozen=True)
class ComposedContext:
    """The LLM_TASK scope: what one call reads of the contexts; neither text ends with a line end.

    Attributes:
        front: The persistent block, "" for none: part of the stable beginning of an input. Its bytes depend on the
            default rules, the agreed rules, the tools and the lines of memory, and on nothing that a request says.
        volatile: The block of this turn, "" for none: stands just before the user's words, and isn't sent again later.
    """

    front: str
    volatile: str


def memory_of(front: str) -> str:
    """Returns the end of a front, from the lines of project memory on, for another front to end with; "" without any.

    No value can imitate the key that they stand behind.
    """
    _, key, lines = front.partition(f"\n{PROJECT_MEMORY}:")
    return key + lines


class PromptComposer:
    """Composes contexts in one language.

    Args:
        language: The session's language.
        layer: LAYER x PERSISTENT; None if the tools aren't described in the prompt.
    """

    def __init__(self, language: Language = "ko", layer: ContextStore | None = None) -> None:
        self._language = language
        self._layer = layer

    def parts(
        self,
        task_type: LLMTaskType,
        app_context: AppContextService,
        *,
        execution: ExecutionContext | None = None,
        memory: Sequence[str] = (),
    ) -> ComposedContext:
        """Returns the two blocks that a task of this type reads.

        Args:
            task_type: What the model is called for.
            app_context: Of the owner and the project root.
            execution: The turn, whose request then gives the volatile values; None for the latest request's.
            memory: Lines of project memory, oldest first; the same ones for as long as the front is to stay the same.

        Raises:
            FileAccessError: A persistent file can't be read.
        """
        persistent, volatile = app_context.get_app_context_for_prompt(self._language)
        if execution is not None:
            volatile = execution.request_context()
        kept = {**persistent, LAYER_SUMMARY: self._layer_summary(), PROJECT_MEMORY: join_lines(memory)}
        if task_type is LLMTaskType.SUMMARY:
            volatile = {}
        elif task_type is LLMTaskType.CREATE_TREE and execution is not None:
            kept[RECENT_EXECUTIONS] = join_lines(execution.persistent_store.snapshot().values())
            volatile = {**volatile, **execution.own_context()}
        return ComposedContext(render_block(PERSISTENT_HEADING, kept), render_block(VOLATILE_HEADING, volatile))

    def compose(
        self,
        task_type: LLMTaskType,
        app_context: AppContextService,
        body: str,
        *,
        execution: ExecutionContext | None = None,
    ) -> str:
        """Returns a prompt of one string: persistent block, volatile block, body, an empty line between them.

        Args:
            task_type: What the model is called for.
            app_context: Of the owner and the project root.
            body: The task's own prompt.
            execution: See `parts`.

        Raises:
            FileAccessError: A persistent file can't be read.
        """
        context = self.parts(task_type, app_context, execution=execution)
        return "\n\n".join(part for part in (context.front, context.volatile, body) if part)

    def _layer_summary(self) -> str:
        return "" if self._layer is None else self._layer.snapshot().get(LAYER_SUMMARY, "")
