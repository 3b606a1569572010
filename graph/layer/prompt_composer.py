"""Composes prompts from contexts: persistent block, volatile block, then the task's own prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from graph.core.text import plain_text
from graph.layer.app_context import (
    EXECUTION_ID,
    LAYER_SUMMARY,
    PROJECT_MEMORY,
    USER_MESSAGE,
    VOLATILE_KEYS,
    AppContextService,
    ContextScope,
    ContextSnapshot,
    ContextStore,
    MemoryContextStore,
    PersistenceKind,
)
from prompt.system.framing import PERSISTENT_HEADING, VOLATILE_HEADING, Language

# In Markdown, only an indent of four or more keeps a line from being a heading.
_INDENT: Final = "    "
# Every line end of Python, Unicode or a terminal.
_LINE_END: Final = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_KEY: Final = re.compile(r"[A-Za-z][A-Za-z0-9]*", re.ASCII)


def render_block(heading: str, entries: ContextSnapshot) -> str:
    """Renders `heading` and the entries, a line or more each; "" if no entry has a value.

    A value of one line follows its key: `key: value`. A longer value stands below `key:`, each line indented by four
    spaces, whatever its line end. So only headings and keys start at the first character of a line. Raises `ValueError`
    for a key that isn't a name of ASCII letters and digits.
    """
    lines = [_render_entry(key, value) for key, value in entries.items() if value]
    return "\n".join([heading, *lines]) if lines else ""


def join_lines(items: Iterable[str]) -> str:
    """Joins texts to one value, a line each; further lines of a text are indented, so that none imitates a text."""
    return "\n".join(f"\n{_INDENT}".join(_lines_of(item)) for item in items)


def _render_entry(key: str, value: str) -> str:
    if not _KEY.fullmatch(key):
        detail = f"no name of a key: {key!r}"
        raise ValueError(detail)
    lines = _lines_of(value)
    return f"{key}: {lines[0]}" if len(lines) == 1 else "\n".join([f"{key}:", *(_INDENT + line for line in lines)])


def _lines_of(text: str) -> list[str]:
    return _LINE_END.split(plain_text(text))


class LLMTaskType(StrEnum):
    """The purpose of a model call.

    `CHAT` gets both contexts, `SUMMARY` the persistent one, `CREATE_TREE` also the turn's id and the user's message.
    """

    CREATE_TREE = "create_tree"
    CHAT = "chat"
    SUMMARY = "summary"


_VOLATILE_KEYS_OF: Final[Mapping[LLMTaskType, Sequence[str]]] = {
    LLMTaskType.CREATE_TREE: (*VOLATILE_KEYS, EXECUTION_ID, USER_MESSAGE),
    LLMTaskType.CHAT: VOLATILE_KEYS,
    LLMTaskType.SUMMARY: (),
}


@dataclass(frozen=True)
class ComposedContext:
    """The contexts sent in one call; neither text ends with a line end.

    `front` is part of the stable prefix: its bytes depend on nothing in a request. `volatile` is sent just before the
    user's message, and not again in later turns.
    """

    front: str
    volatile: str


def memory_of(front: str) -> str:
    """Returns the project memory of a persistent block; its key is unambiguous, as no value can imitate it."""
    _, key, lines = front.partition(f"\n{PROJECT_MEMORY}:")
    return key + lines


class PromptComposer:
    """Composes contexts in one language; without `layer` the prompt doesn't describe the tools."""

    def __init__(self, language: Language = "ko", layer: ContextStore | None = None) -> None:
        self._language = language
        self._layer = layer

    def parts(
        self,
        task_type: LLMTaskType,
        app_context: AppContextService,
        *,
        execution: ContextStore | None = None,
        memory: Sequence[str] = (),
    ) -> ComposedContext:
        """Returns both blocks for a task.

        Without `execution` the volatile values are the latest request's. `memory` must stay unchanged as long as the
        persistent block.
        """
        persistent, volatile = app_context.get_app_context_for_prompt(self._language)
        if execution is not None:
            volatile = execution.snapshot()
        layer = {} if self._layer is None else self._layer.snapshot()
        retained = {**persistent, **layer, PROJECT_MEMORY: join_lines(memory)}
        passing = {key: volatile.get(key, "") for key in _VOLATILE_KEYS_OF[task_type]}
        return ComposedContext(render_block(PERSISTENT_HEADING, retained), render_block(VOLATILE_HEADING, passing))

    def compose(
        self,
        task_type: LLMTaskType,
        app_context: AppContextService,
        body: str,
        *,
        execution: ContextStore | None = None,
    ) -> str:
        """Returns a prompt of one string: persistent block, volatile block and body, separated by empty lines."""
        context = self.parts(task_type, app_context, execution=execution)
        return "\n\n".join(part for part in (context.front, context.volatile, body) if part)


_LINE_CHARS: Final = 160
_SENTENCE_END: Final = re.compile(r"(?<=[.!?。])\s")


def layer_of_tools(descriptions: Mapping[str, str]) -> MemoryContextStore:
    """Returns `layerSummary`: each tool's name and the first sentence of its description, the same bytes each time."""
    store = MemoryContextStore(ContextScope.LAYER, PersistenceKind.PERSISTENT)
    store.put(LAYER_SUMMARY, "\n".join(f"{name}: {_first_sentence(text)}" for name, text in descriptions.items()))
    return store


def _first_sentence(description: str) -> str:
    sentence = _SENTENCE_END.split(" ".join(description.split()), maxsplit=1)[0]
    return sentence if len(sentence) <= _LINE_CHARS else sentence[: _LINE_CHARS - 1].rstrip() + "…"
