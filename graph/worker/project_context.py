"""Composes the context blocks of a turn: rules, tools and project memory before, request context last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from graph.core.pin import ContextRequest
from graph.core.turn import text_of
from graph.file.root_folder import RootFolders
from graph.layer.app_context import (
    CURRENT_FILE,
    SELECTION,
    ContextRegistry,
    ContextSnapshot,
    PersistentRefreshTrigger,
    RequestPolicy,
    apply_request,
    execution_tree,
)
from graph.layer.prompt_composer import LLMTaskType, PromptComposer, layer_of_tools, memory_of, render_block
from graph.layer.rule_reader import locate
from graph.server.newest import Newest
from graph.store.project import RuleAgreementStore
from graph.value.error import PathError, TurnfoldError
from graph.worker.project_turns import ProjectTurns, agreed_rules
from prompt.system.framing import VOLATILE_HEADING, Language

_KEPT_SESSIONS: Final = 1_000


class SessionContexts:
    """Request context of the newest 1,000 sessions without a project, in memory. Thread-safe.

    The server's own folder isn't part of it: without a project, nobody works there.
    """

    def __init__(self, policy: RequestPolicy) -> None:
        self._policy = policy
        self._lock = threading.Lock()
        self._values: Newest[str, ContextSnapshot] = Newest(_KEPT_SESSIONS)

    def apply_context(self, session_id: str, context: Mapping[str, object], language: Language) -> ContextSnapshot:
        """Applies a request's `currentFile` and `selection`, and returns the resulting values for the session."""
        given = {key: context[key] for key in (CURRENT_FILE, SELECTION) if key in context}
        with self._lock:
            stored = self._values.get(session_id) or {}
            values = apply_request(stored, given, policy=self._policy, language=language)
            if values and self._policy == "merge":
                self._values.put(session_id, values)
            elif stored:
                self._values.drop(session_id)
        return values

    def forget(self, session_id: str) -> None:
        self._values.drop(session_id)


def without_project(request: ContextRequest) -> tuple[str, str]:
    """Composes the blocks of a turn without a project, from the request's context alone; a `ContextSource`."""
    values = {key: request.context[key] for key in (CURRENT_FILE, SELECTION) if key in request.context}
    return "", render_block(VOLATILE_HEADING, values)


# Reasons why a folder is no longer one of the owner's projects.
_TAKEN_AWAY: Final = frozenset({"not_allowed", "symlink_outside"})


class ProjectContext:
    """A `ContextSource` for projects. Thread-safe.

    The prefix block contains the default rules, the accepted rules, the tools, and the memory's lines at the start of
    the session: these are copied from the session's earlier prefix block, even if the memory has changed.
    """

    def __init__(
        self,
        roots: RootFolders,
        registry: ContextRegistry,
        agreements: RuleAgreementStore,
        turns: ProjectTurns,
    ) -> None:
        self._roots = roots
        self._registry = registry
        self._agreements = agreements
        self._turns = turns

    def __call__(self, request: ContextRequest) -> tuple[str, str]:
        """Returns prefix and turn block; no prefix without a project, neither if the folder is no longer allowed.

        If the memory can't be read, the problem is recorded for the session and the memory is left out until it can be.

        Raises:
            PathError: The project's folder is gone, or can't be read.
            StoreError: A file or table of ours can't be read or written.
        """
        self._turns.forget_problem(request.session_id)
        if not request.root:
            return without_project(request)
        try:
            return self._composed(request, partial(self._primed, request))
        except PathError as error:
            self._turns.failed(request.session_id, error)
            if error.reason in _TAKEN_AWAY:
                return "", ""
            raise
        except TurnfoldError as error:
            self._turns.failed(request.session_id, error)
            raise

    def preview(self, request: ContextRequest) -> tuple[str, str]:
        """Returns what `__call__` would without a question; what fails is left out and told nobody."""
        if not request.root:
            return without_project(request)
        try:
            return self._composed(request, partial(self._preview_primed, request))
        except PathError as error:
            return ("" if error.reason in _TAKEN_AWAY else request.front), ""
        except TurnfoldError:
            return request.front, ""

    def _composed(self, request: ContextRequest, prime: Callable[[], Sequence[str]]) -> tuple[str, str]:
        owner, root, language = request.owner, request.root, request.language
        with self._roots.opened(root) as folder:
            volatile = self._registry.apply_context(owner, root, request.context, language)
            location = locate(folder, volatile.get(CURRENT_FILE))
        app_context = self._registry.app_context(owner, root)
        agreed = agreed_rules(self._agreements.newest(owner, root))
        app_context.refresh_persistent_if_needed(PersistentRefreshTrigger(root, agreed.digest))
        execution = execution_tree(
            f"{request.session_id}/{request.turn}",
            text_of(request.message),
            volatile,
            file_rules=agreed.text_for(location).volatile,
        )
        earlier = memory_of(request.front) if request.has_memory else ""
        memory = prime() if request.has_memory and not earlier else ()
        composer = PromptComposer(language, layer_of_tools(request.tools))
        sent = composer.parts(LLMTaskType.CHAT, app_context, execution=execution, memory=memory)
        return sent.front + earlier, sent.volatile

    def _primed(self, request: ContextRequest) -> Sequence[str]:
        try:
            asked = text_of(request.message)
            return self._turns.primed(request.owner, request.root, request.language, asked=asked)
        except TurnfoldError as error:
            self._turns.failed(request.session_id, error)
            return ()

    def _preview_primed(self, request: ContextRequest) -> Sequence[str]:
        with suppress(TurnfoldError):
            return self._turns.primed(request.owner, request.root, request.language)
        return ()


def loader_of(agreements: RuleAgreementStore) -> Callable[[str, str], str]:
    """Returns a function that loads the persistent text of the rules accepted by an owner for a root."""
    return lambda owner, root: agreed_rules(agreements.newest(owner, root)).text_for().persistent
