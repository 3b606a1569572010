"""Records the messages of chats in project memories, in separate threads, so that no turn waits or fails for it."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final, Literal

from langchain_core.messages import AnyMessage
from pydantic import ValidationError

from graph.core.pin import ContextRequest
from graph.core.turn import text_of
from graph.file.root_folder import RootFolders
from graph.fold.review import SummaryDraft
from graph.fold.spec import fold_of_messages
from graph.layer.app_context import ContextRegistry, ContextSnapshot
from graph.layer.rule_set import RuleSet
from graph.model.embedder import QUERY_SECONDS, Embedder, numbers_of
from graph.model.factory import ChatModels
from graph.model.spending import Spending
from graph.model.summariser import generate_summary
from graph.project.context_manager import ContextManager, Meaning
from graph.project.project_memory import ProjectMemory
from graph.project.roll_up import TOKEN_LIMIT, Summarise, window_tokens
from graph.server.newest import Newest
from graph.server.settings import Settings
from graph.store.project import RuleAgreement, RuleAgreementStore
from graph.tool.tool_context import ProjectAccess
from graph.value.error import InternalError, ProjectBusyError, TurnfoldError, TurnStoppedSignal
from graph.value.event import Event, TurnFinished
from prompt.system.framing import Language


def agreed_rules(agreement: RuleAgreement | None) -> RuleSet:
    """Returns the accepted rules; an empty set without an agreement, or if its row can't be read."""
    if agreement is None:
        return RuleSet()
    try:
        return RuleSet.model_validate_json(agreement.rules)
    except ValidationError:
        _LOG.warning("the agreement of %s can't be read, and counts as none", agreement.decided_at)
        return RuleSet()


# Each summary costs a call; until then, the context for new sessions uses picked sentences.
ROLL_UP_TOKENS: Final = TOKEN_LIMIT // 2


class RollUps:
    """Runs roll-ups one after another; a pending roll-up serves all requests for the same memory."""

    def __init__(self, models: ChatModels, spending: Spending, *, deadline_seconds: float | None) -> None:
        self._models = models
        self._spending = spending
        self._deadline_seconds = deadline_seconds
        self.stop = threading.Event()
        self._waiting: set[tuple[str, str]] = set()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="project-roll-up")

    def soon(self, memory: tuple[str, str], roll_up: Callable[[], object]) -> None:
        """Schedules the roll-up of a memory, identified by owner and root; not thread-safe."""
        if memory not in self._waiting:
            self._waiting.add(memory)
            self._pool.submit(self._run, memory, roll_up)

    def summarise(self, owner: str, model: str, language: Language) -> Summarise:
        """Returns a function like `Summariser.summarise` for an owner's session with this chat model."""

        def summarise(messages: Sequence[AnyMessage], target_chars: int) -> str:
            write = partial(
                self._models.summariser(model).summarise,
                # The first message may be the previous summary, which has no turn.
                spec=replace(fold_of_messages(messages, target_chars, language=language), message_turns=()),
                stop=self.stop,
                deadline_seconds=self._deadline_seconds,
            )
            drafts: list[SummaryDraft] = []
            began, error_code = time.monotonic(), ""
            try:
                return generate_summary(messages, target_chars, write, drafts=drafts)
            except TurnfoldError as error:
                error_code = error.code
                raise
            finally:
                seconds = time.monotonic() - began
                self._spending.add_summary(owner, drafts, seconds=seconds, error_code=error_code)

        return summarise

    def close(self) -> None:
        """Cancels a summary in progress: it is made after a later answer."""
        self.stop.set()
        self._pool.shutdown(wait=True)

    def _run(self, memory: tuple[str, str], roll_up: Callable[[], object]) -> None:
        self._waiting.discard(memory)
        if not self.stop.is_set():
            roll_up()


_LOG = logging.getLogger(__name__)
_KEPT_PROBLEMS: Final = 1_000
# Limits for a turn's wait for the memory's lines, and for the lock in the background thread.
_PRIME_SECONDS: Final = 1.5
_LOCK_SECONDS: Final = 3.0
_EMBED_SECONDS: Final = 60.0
_EMBEDDED_TOGETHER: Final = 32


class ProjectTurns:
    """Records the turns of all sessions in their projects, each message once and in order.

    No error reaches the turn: it is logged, and returned by `problem` until the next turn.
    """

    def __init__(
        self,
        roots: RootFolders,
        registry: ContextRegistry,
        agreements: RuleAgreementStore,
        models: ChatModels,
        spending: Spending,
        settings: Settings,
        *,
        clock: Callable[[], datetime],
    ) -> None:
        self._roots = roots
        self._registry = registry
        self._agreements = agreements
        self._memory_owner = settings.memory_owner
        self._is_offline = settings.is_offline
        self._clock = clock
        self._problems: Newest[str, TurnfoldError] = Newest(_KEPT_PROBLEMS)
        self._notes = ThreadPoolExecutor(max_workers=1, thread_name_prefix="project-note")
        self._embedder = models.embedder
        self._spending = spending
        self._roll_ups = RollUps(models, spending, deadline_seconds=settings.fold_deadline_seconds)

    def access(self, owner: str, root: str) -> ProjectAccess | None:
        """Returns the project's access for the tools of a session; None without a project."""
        if not root:
            return None
        return ProjectAccess(
            memory=partial(self._memory, owner, root),
            find_rule=lambda name: agreed_rules(self._agreements.newest(owner, root)).read_rule(name),
        )

    def primed(self, owner: str, root: str, language: Language, *, asked: str = "") -> Sequence[str]:
        """Returns the context for a new session, after all pending notes; `asked` is its first message.

        Raises:
            PathError: The folder is gone or refused.
            ProjectError: The memory can't be read; the subclass says why.
            InternalError: A defect, which is logged.
        """
        meant = self._meaning(owner, asked)
        lines = self._notes.submit(
            lambda: ContextManager(self._memory(owner, root)).hydrate_prompt(language, meant=meant)
        )
        try:
            error = lines.exception(timeout=_PRIME_SECONDS)
        except FutureTimeoutError:
            lines.cancel()
            raise ProjectBusyError(root, f"{_PRIME_SECONDS:g} s") from None
        if error is not None and not isinstance(error, TurnfoldError):
            _LOG.error("the memory of a project can't be read because of a defect", exc_info=error)
            raise InternalError from error
        return lines.result()

    def apply_context(
        self, owner: str, root: str, context: Mapping[str, object], language: Language
    ) -> ContextSnapshot:
        """Applies context sent by a program for turns from now on, and returns the resulting values.

        Raises:
            PathError: The folder is gone or refused.
            StoreError: A file of ours can't be read or written.
        """
        with self._roots.opened(root):
            return self._registry.apply_context(owner, root, context, language)

    def begin(self, request: ContextRequest) -> None:
        if request.root:
            self._soon(
                request, partial(self._register, request, "user", str(request.message.id), text_of(request.message))
            )

    def end(self, request: ContextRequest, ending: Event, *, model: str) -> None:
        """Schedules the recording of the answer, then the summary of older messages if the dialog is too long."""
        if not request.root:
            return
        if isinstance(ending, TurnFinished):
            self._soon(request, partial(self._register, request, "assistant", ending.message_id, ending.text))
        if not self._is_offline:
            self._soon(request, partial(self._roll_up_soon, request, model))
        if self._embedder is not None:
            self._soon(request, partial(self._embed_soon, request, self._embedder))

    def take_back(self, owner: str, root: str, session_id: str, message_ids: Sequence[str]) -> None:
        """Schedules the deletion of these messages, because another attempt replaces them."""
        ids = [_operation_id(session_id, message_id) for message_id in message_ids]
        self._notes.submit(self._safely, session_id, lambda: ContextManager(self._memory(owner, root)).take_back(ids))

    def problem(self, session_id: str) -> TurnfoldError | None:
        """Returns the project's problem in the session's newest turn, or None."""
        return self._problems.get(session_id)

    def failed(self, session_id: str, error: TurnfoldError) -> None:
        _LOG.warning("project of session=%s: %s", session_id, error.code)
        self._problems.put(session_id, error)

    def forget_problem(self, session_id: str) -> None:
        self._problems.drop(session_id)

    def close(self) -> None:
        self._notes.shutdown(wait=True)
        self._roll_ups.close()

    def _soon(self, request: ContextRequest, action: Callable[[], object]) -> None:
        self._notes.submit(self._safely, request.session_id, action)

    def _safely(self, session_id: str, action: Callable[[], object]) -> None:
        try:
            action()
        except TurnStoppedSignal:
            _LOG.info("a summary for the project of session=%s ends with the server", session_id)
        except TurnfoldError as error:
            self.failed(session_id, error)
        except BaseException:  # noqa: BLE001 - the edge of a worker: no turn may end by it
            _LOG.exception("a note of session=%s ended by a defect", session_id)
            self._problems.put(session_id, InternalError())

    def _memory(self, owner: str, root: str) -> ProjectMemory:
        whose = self._memory_owner(owner)
        return ProjectMemory(self._roots, root, whose, clock=self._clock, wait_seconds=_LOCK_SECONDS)

    def _context(self, request: ContextRequest, model: str = "") -> ContextManager:
        summarise = None if self._is_offline else self._roll_ups.summarise(request.owner, model, request.language)
        return ContextManager(self._memory(request.owner, request.root), summarise=summarise)

    def _register(
        self, request: ContextRequest, role: Literal["user", "assistant"], message_id: str, text: str
    ) -> None:
        self._context(request).register_message(
            role,
            text,
            is_repetition=self._is_offline and role == "assistant",
            operation_id=_operation_id(request.session_id, message_id),
        )

    def _roll_up_soon(self, request: ContextRequest, model: str) -> None:
        context = self._context(request, model)
        if window_tokens(context.data.conversation.recent_window) > ROLL_UP_TOKENS:
            memory = (self._memory_owner(request.owner), request.root)
            self._roll_ups.soon(memory, partial(self._safely, request.session_id, context.roll_up))

    def _embed_soon(self, request: ContextRequest, embedder: Embedder) -> None:
        """Schedules the vectors of the dialog's messages, behind the summary that may take some of them away."""
        memory = (self._memory_owner(request.owner), f"{request.root}\0vectors")
        embed = partial(self._embed, request, embedder)
        self._roll_ups.soon(memory, partial(self._safely, request.session_id, embed))

    def _embed(self, request: ContextRequest, embedder: Embedder) -> None:
        context = self._context(request)
        while batch := context.without_vectors(embedder.model)[:_EMBEDDED_TOGETHER]:
            embedded = self._embedded(request.owner, embedder, [each.content for each in batch], _EMBED_SECONDS)
            if embedded is None:
                return
            context.keep_vectors(embedder.model, dict(zip((each.id for each in batch), embedded, strict=True)))

    def _meaning(self, owner: str, text: str) -> Meaning | None:
        embedder = self._embedder
        if embedder is None or not text.strip():
            return None
        embedded = self._embedded(owner, embedder, [text], QUERY_SECONDS)
        return Meaning(embedder.model, embedded[0]) if embedded else None

    def _embedded(
        self, owner: str, embedder: Embedder, texts: Sequence[str], seconds: float
    ) -> Sequence[Sequence[float]] | None:
        began = time.monotonic()
        embedded = embedder.embed(texts, deadline_seconds=seconds, stop=self._roll_ups.stop)
        if embedded is None:
            return None
        self._spending.add(
            owner, "embedding", input_tokens=embedded.tokens, output_tokens=0, seconds=time.monotonic() - began
        )
        return [numbers_of(vector) for vector in embedded.vectors]


def _operation_id(session_id: str, message_id: str) -> str:
    """Hashes session and message id: callers choose message ids, so another session may use the same."""
    return hashlib.sha256(f"{len(session_id)}:{session_id}{message_id}".encode("utf-8", "surrogatepass")).hexdigest()
