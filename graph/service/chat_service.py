"""Turnfold's public interface, used by the page, the HTTP routes and the tests; opens and closes the whole engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime

from langchain_core.tools import BaseTool

from graph.builder import build_graph
from graph.core.context_block import ContextSource
from graph.model.factory import ChatModels, open_models
from graph.recovery import StateRecovery
from graph.root_folder import RootFolders
from graph.service.access import SessionAccess
from graph.service.folds import Folds
from graph.service.projects import Projects
from graph.service.sessions import Sessions
from graph.service.turns import Turns
from graph.settings import Settings
from graph.store.stores import Stores, open_stores
from graph.strategy.strategies import build_strategies
from graph.tool.registry import ToolContext, build_tools
from graph.worker.fold_worker import FoldWorker
from graph.worker.limiter import TurnLimiter
from graph.worker.turn_blocks import TurnBlocks
from graph.worker.turn_runner import TurnRunner


class ChatService:
    """Turnfold for one owner. Get one from `open_service`; every method may be called from any thread.

    Attributes:
        settings: The settings that it was opened with.
        turns: Send, retry, regenerate, stop, follow.
        sessions: List, get, configure, rename, delete, open the example.
        folds: Records and figures; compact, restore, reset.
        projects: A project's memory and rules: show, change, agree, restore.
    """

    def __init__(self, access: SessionAccess) -> None:
        self._access = access
        self.settings = access.settings
        self.turns = Turns(access)
        self.sessions = Sessions(access, self.turns.stop)
        self.folds = Folds(access)
        self.projects = Projects(access)

    def health(self) -> None:
        """Checks that the database answers.

        Raises:
            DatabaseError: It doesn't.
        """
        self._access.stores.database.check()


@contextmanager
def open_service(
    settings: Settings,
    *,
    clock: Callable[[], datetime] | None = None,
    models: Callable[[Settings], AbstractContextManager[ChatModels]] = open_models,
    tools: Callable[[ToolContext], list[BaseTool]] = build_tools,
    stores: Callable[[Settings, Callable[[], datetime]], AbstractContextManager[Stores]] = open_stores,
    context: ContextSource | None = None,
) -> Iterator[ChatService]:
    """Opens the stores, models and workers of a server, and closes them in order; running turns end as stopped.

    Usage:
        >>> with open_service(load_settings()) as service:
        ...     number = service.turns.send("budget", "The budget is 1.2 million won.")
        ...     *_, last = service.turns.follow("budget")
        ...     print(number, type(last).__name__, service.folds.statistics("budget").record_count)
        1 TurnFinished 0

    Args:
        settings: See `graph.settings`.
        clock: Returns the time in UTC; the system clock if None.
        models: Opens the models that answer and summarise.
        tools: Builds the tools of one turn.
        stores: Opens the stores, given the clock.
        context: Composes the context blocks of turns in a project; None if there are none.

    Raises:
        DatabaseError: The database can't be opened; the subclass says why.
    """
    now = clock or (lambda: datetime.now(UTC))
    with stores(settings, now) as chat_stores, models(settings) as chat_models, ExitStack() as stack:
        fold_worker = FoldWorker(
            stores=chat_stores,
            models=chat_models,
            clock=now,
            deadline_seconds=settings.fold_deadline_seconds,
            in_place="never" if settings.is_offline else settings.fold_in_place,
        )
        stack.callback(fold_worker.close)
        graph = build_graph(
            models=chat_models, fold_worker=fold_worker, tools=tools, stores=chat_stores, clock=now, settings=settings
        )
        strategies = build_strategies(
            settings.limits, default_name=settings.context_strategy, is_enabled=settings.app_context_enabled
        )
        recovery = StateRecovery(graph, chat_stores, strategies)
        limiter = TurnLimiter(concurrent_turns=settings.concurrent_turns, turns_per_minute=settings.turns_per_minute)
        runner = TurnRunner(
            graph=graph,
            stores=chat_stores,
            recovery=recovery,
            fold_worker=fold_worker,
            limiter=limiter,
            blocks=TurnBlocks(context, chat_stores.blocks, chat_models),
            max_workers=settings.concurrent_turns,
        )
        stack.callback(runner.close)
        roots = RootFolders(settings.project_roots)
        yield ChatService(
            SessionAccess(settings, chat_stores, chat_models, runner, recovery, fold_worker, strategies, roots, now)
        )
