"""Turnfold's public interface; opens and closes the whole engine. Used by the page, the HTTP routes and the tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from langchain_core.tools import BaseTool
from pydantic import SecretStr

from graph.core.cost import PriceList, TokenUse, cost_of
from graph.core.pin import ContextSource
from graph.core.text import plain_text
from graph.file.root_folder import RootFolders
from graph.layer.app_context import ContextRegistry
from graph.mcp.config import read_servers
from graph.mcp.servers import McpServers
from graph.model.factory import ChatModels, open_models
from graph.model.spending import Spending
from graph.node.builder import build_graph
from graph.node.fold_worker import FoldWorker
from graph.node.model_call import looked_up, past_turns, tools_of
from graph.node.recovery import StateRecovery
from graph.node.state import NodeDeps
from graph.server.identity import NAME_CHARS, ApiToken, Identity, SignIn, is_name, new_token
from graph.server.metrics import Metrics
from graph.server.settings import Settings
from graph.service.access import Choices, SessionAccess
from graph.service.completions import Completions
from graph.service.deletion import SessionEraser
from graph.service.example import ExampleWriter
from graph.service.folds import Folds
from graph.service.inputs import Inputs
from graph.service.instructions import Instructions
from graph.service.mcp import McpChat
from graph.service.projects import Projects
from graph.service.sessions import Sessions
from graph.service.summaries import Summaries
from graph.service.turn_start import TurnStarter
from graph.service.turns import Turns
from graph.store.access import ApiTokenStore
from graph.store.project import RuleAgreementStore
from graph.store.stores import Stores, open_stores
from graph.store.token_use import TokenUseStore
from graph.strategy.strategies import build_strategies
from graph.tool.registry import KnownTools, ToolContext, build_tools
from graph.tool.tool_context import PastTurns
from graph.value.error import InputError
from graph.value.view import CostView, MadeToken, ProgramToken
from graph.worker.limiter import TurnLimiter
from graph.worker.next_input import NextInputs
from graph.worker.project_context import ProjectContext, SessionContexts, loader_of, without_project
from graph.worker.project_turns import ProjectTurns
from graph.worker.session_watcher import SessionWatcher
from graph.worker.side_request_runner import SideRequestRunner
from graph.worker.title_maker import TitleMaker
from graph.worker.turn_blocks import TurnBlocks
from graph.worker.turn_poller import TurnPoller
from graph.worker.turn_runner import TurnRunner
from graph.worker.vector_worker import VectorWorker


class Costs:
    """Costs of one owner's sessions; methods return None without a price list."""

    def __init__(
        self, access: SessionAccess, *, token_uses: TokenUseStore, prices: PriceList | None, models: ChatModels
    ) -> None:
        self._access = access
        self._token_uses = token_uses
        self._prices = prices
        self._models = models

    def of_session(self, session_id: str) -> CostView | None:
        """Returns the cost of all calls of a session, earlier attempts and discarded summaries included.

        A fork costs what it adds to its origin.
        """
        self._access.own(session_id)
        return self._view(lambda: self._token_uses.of_session(session_id))

    def of_all(self) -> CostView | None:
        """Returns the cost of all of the owner's sessions."""
        self._access.check_admitted()
        return self._view(lambda: self._token_uses.of_owner(self._access.owner))

    def _view(self, read: Callable[[], list[TokenUse]]) -> CostView | None:
        if self._prices is None:
            return None
        return cost_of(read(), self._prices, default_model=self._models.default_name)


class Programs:
    """API tokens of one owner's programs; `named` are the tokens in the server's settings."""

    def __init__(self, owner: str, *, tokens: ApiTokenStore, named: Sequence[ApiToken]) -> None:
        self._owner = owner
        self._tokens = tokens
        self._named = named

    def list(self) -> tuple[ProgramToken, ...]:
        """Returns the owner's tokens that are in force, oldest first."""
        return tuple(self._tokens.of_owner(self._owner))

    def admit(self, name: str, *, tools: Collection[str] | None = None, is_personal: bool = True) -> MadeToken:
        """Makes a token for a program, which works with this owner's sessions.

        Args:
            name: Shown on the page beside the program's questions.
            tools: The server's tools it may use; None for all.
            is_personal: Whether one person uses it; only such a token's chats are recognised by likeness.

        Raises `InputError`: `bad_program_name`, `token_name_taken` or `too_many_tokens`.
        """
        name = plain_text(name).strip()
        if not is_name(name, most_chars=NAME_CHARS):
            raise InputError("bad_program_name")
        if any(token.owner == self._owner and token.name == name for token in self._named):
            raise InputError("token_name_taken", name)
        secret = new_token()
        made = self._tokens.add(self._owner, name, secret, tools, is_personal=is_personal)
        return MadeToken(SecretStr(secret), made)

    def withdraw(self, token_id: str) -> None:
        """Revokes a token, from the next request on; does nothing if it's no token of this owner."""
        self._tokens.withdraw(self._owner, token_id)

    def find(self, secret: str) -> ApiToken | None:
        """Returns the token with this secret, of any owner; None if there is none."""
        found = self._tokens.find(secret)
        if found is None:
            return None
        owner, token = found
        return ApiToken(token.name, owner, SecretStr(secret), token.tools, token.is_personal)

    def are_let_in(self) -> bool:
        """Whether any owner has made a token that is in force."""
        return self._tokens.has_any()

    def counts(self) -> tuple[int, int]:
        """Returns how many tokens that owners made are in force: one person's, and shared ones."""
        return self._tokens.counts()


_LOCKS: Final = 64


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Everything a server opens once; `ChatService` hands each of its parts the pieces it uses.

    Attributes:
        access: Of the sessions of `TURNFOLD_OWNER`; other owners get copies.
        contexts: Client context of sessions without a project.
        project_turns: None if no project folder is allowed.
        titles: None if no model titles sessions.
        vectors: None if no model makes vectors.
        past_turns: Returns the turns of a session that `recall` may show.
        locks: For requests with an idempotency key; shared by all owners.
    """

    access: SessionAccess
    choices: Choices
    stores: Stores
    fold_worker: FoldWorker
    side_requests: SideRequestRunner
    eraser: SessionEraser
    contexts: SessionContexts
    project_turns: ProjectTurns | None
    titles: TitleMaker | None
    vectors: VectorWorker | None
    known_tools: KnownTools
    example_writer: ExampleWriter
    next_inputs: NextInputs
    past_turns: Callable[..., PastTurns]
    spending: Spending
    locks: Sequence[threading.Lock] = field(default_factory=lambda: [threading.Lock() for _ in range(_LOCKS)])


class ChatService:
    """Turnfold for one owner, made by `open_service`; all methods are thread-safe.

    Parts: `turns` (send, retry, edit, fork, follow), `sessions` (list, configure, delete), `folds` (records, compact,
    reset, edit, undo, pin), `inputs` (what calls were sent), `instructions` (the user's own), `mcp` (tools of MCP
    servers), `costs`, `projects` (memory and rules), `programs` (their tokens), `completions` (OpenAI's protocol), and
    `summaries` (of no session).
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        access, choices, stores = engine.access, engine.choices, engine.stores
        settings, models, strategies = choices.settings, choices.models, choices.strategies
        self.settings = settings
        starter = TurnStarter(
            access,
            choices,
            contexts=engine.contexts,
            project_turns=engine.project_turns,
            titles=engine.titles,
            vectors=engine.vectors,
            metrics=engine.spending.metrics,
        )
        self.turns = Turns(access, choices, eraser=engine.eraser, starter=starter, project_turns=engine.project_turns)
        self.sessions = Sessions(
            access,
            choices,
            self.turns,
            eraser=engine.eraser,
            fold_worker=engine.fold_worker,
            contexts=engine.contexts,
            project_turns=engine.project_turns,
            use=stores.owner.use,
            example_writer=engine.example_writer,
        )
        self.folds = Folds(
            access,
            choices=choices,
            fold_worker=engine.fold_worker,
            token_uses=stores.owner.token_uses,
            past_turns=engine.past_turns,
            next_inputs=engine.next_inputs,
        )
        self.inputs = Inputs(access, models=models, strategies=strategies, known_tools=engine.known_tools)
        self.instructions = Instructions(access)
        self.mcp = McpChat(access, choices, self.turns)
        self.costs = Costs(access, token_uses=stores.owner.token_uses, prices=settings.model_prices, models=models)
        self.projects = Projects(
            access.owner,
            settings=settings,
            agreements=stores.owner.agreements,
            roots=choices.roots,
            clock=access.clock,
        )
        self.programs = Programs(access.owner, tokens=stores.program.tokens, named=settings.api_tokens)
        self.completions = Completions(
            access,
            self.turns,
            self.sessions,
            programs=stores.program,
            models=models,
            side_requests=engine.side_requests,
            locks=engine.locks,
        )
        self.summaries = Summaries(
            access.owner,
            settings=settings,
            models=models,
            limiter=access.runner.limiter,
            spending=engine.spending,
            side_requests=stores.program.side_requests,
            clock=access.clock,
        )

    def for_owner(self, owner: str, *, sign_in: SignIn | None = None) -> ChatService:
        """Returns the service of another owner on the same stores, models, workers and limits; cheap.

        `sign_in` is None for programs. Raises `SignInError` if it has ended or the owner was withdrawn.
        """
        access = self._engine.access
        is_own = (owner, sign_in) == (access.owner, access.sign_in)
        if not is_own:
            access = replace(access, owner=owner, sign_in=sign_in)
        access.check_admitted()
        return self if is_own else ChatService(replace(self._engine, access=access))

    def sign_out(self, visitor: Identity) -> None:
        """Ends a visitor's sign-in on all servers, for every copy of its cookie."""
        self._engine.stores.owner.sign_ins.end(visitor.owner, visitor.sign_in)

    def sign_out_everywhere(self) -> None:
        """Ends all sign-ins of this owner; programs keep their tokens."""
        self._engine.stores.owner.sign_ins.end_all(self._engine.access.owner)

    def health(self) -> None:
        """Raises `DatabaseError` if the database doesn't answer."""
        self._engine.stores.chat.database.check()

    def metrics(self) -> bytes:
        """Returns the server's figures, in Prometheus's text format."""
        return self._engine.spending.metrics.render()


def open_mcp(settings: Settings) -> McpServers:
    """Returns the servers of `MCP_SERVERS`, not started yet. Raises `SettingsError`: it names no file of servers."""
    configs = read_servers(settings.mcp_servers) if settings.mcp_servers else ()
    return McpServers(configs, allow=settings.mcp_allow, silence_seconds=settings.tool_deadline_seconds)


@contextmanager
def open_service(
    settings: Settings,
    *,
    clock: Callable[[], datetime] | None = None,
    models: Callable[[Settings], AbstractContextManager[ChatModels]] = open_models,
    tools: Callable[[ToolContext], list[BaseTool]] = build_tools,
    stores: Callable[[Settings, Callable[[], datetime]], AbstractContextManager[Stores]] = open_stores,
    context: ContextSource | None = None,
    mcp: Callable[[Settings], McpServers] = open_mcp,
) -> Iterator[ChatService]:
    """Opens the stores, models and workers of a server, and closes them in order; running turns end as stopped.

    Usage:
        >>> with open_service(load_settings()) as service:
        ...     number = service.turns.send("budget", "The budget is 1.2 million won.")
        ...     *_, last = service.turns.follow("budget")
        ...     print(number, type(last).__name__, service.folds.statistics("budget").record_count)
        1 TurnFinished 0

    Args:
        clock: Returns the time in UTC.
        models: Opens the models that answer and summarise.
        tools: Builds the tools of one turn.
        stores: Opens the stores, given the clock.
        context: Composes the context blocks of project turns, in place of `ProjectContext`.
        mcp: Makes the servers of `MCP_SERVERS`, which start when they are needed.

    Raises `DatabaseError`: the database can't be opened; the subclass says why. `SettingsError`: `MCP_SERVERS` names no
    file of servers.
    """
    now = clock or (lambda: datetime.now(UTC))
    servers = mcp(settings)
    with stores(settings, now) as opened, models(settings) as chat_models, ExitStack() as stack:
        stack.callback(servers.close)
        metrics = Metrics()
        metrics.watch_database(opened.chat.database.engine)
        metrics.watch_pool("checkpoints", opened.chat.checkpoints.connections())
        spending = Spending(opened.owner.use, metrics)
        fold_worker = FoldWorker(
            stores=opened.chat,
            models=chat_models,
            spending=spending,
            clock=now,
            deadline_seconds=settings.fold_deadline_seconds,
            quiet_seconds=settings.fold_wait_seconds,
        )
        stack.callback(fold_worker.close)
        titles = None
        if settings.auto_titles and not settings.is_offline:
            titles = TitleMaker(
                stores=opened.chat,
                titles=opened.owner.titles,
                use=opened.owner.use,
                models=chat_models,
                last_inputs=fold_worker.last_inputs,
                spending=spending,
                settings=settings,
                clock=now,
            )
            stack.callback(titles.close)
        vectors = None
        if chat_models.embedder is not None:
            vectors = VectorWorker(
                opened.chat.vectors,
                chat_models.embedder,
                spending,
                gives_way=lambda: chat_models.has_one_slot and settings.embedding_base_url is None,
                quiet_seconds=settings.fold_wait_seconds,
            )
            stack.callback(vectors.close)
        deps = NodeDeps(
            models=chat_models,
            fold_worker=fold_worker,
            tools=tools,
            stores=opened.chat,
            clock=now,
            settings=settings,
            spending=spending,
            mcp=servers,
        )
        graph = build_graph(deps)
        strategies = build_strategies(
            settings.limits, default_name=settings.context_strategy, is_enabled=settings.app_context_enabled
        )
        recovery = StateRecovery(opened.chat)
        roots = RootFolders(settings.project_roots)
        projects, preview = None, context
        contexts = SessionContexts(settings.context_volatile)
        if context is None and roots.roots:
            projects, joined = _join_projects(settings, roots, opened.owner.agreements, chat_models, spending, now)
            context, preview = joined, joined.preview
            stack.callback(projects.close)
        limiter = TurnLimiter(
            concurrent_turns=settings.concurrent_turns,
            owner_turns=settings.owner_turns,
            turns_per_minute=settings.turns_per_minute,
            admit=opened.owner.use.begin,
            metrics=metrics,
        )
        metrics.watch("turns_running", "Turns and other answers that are being made.", lambda: limiter.running_count)
        runner = TurnRunner(
            graph=graph,
            stores=opened.chat,
            recovery=recovery,
            fold_worker=fold_worker,
            limiter=limiter,
            blocks=TurnBlocks(
                context or without_project,
                opened.chat.blocks,
                opened.chat.calls,
                chat_models,
                partial(tools_of, deps),
                partial(looked_up, deps),
            ),
            projects=projects,
            max_workers=settings.concurrent_turns,
        )
        stack.callback(runner.close)
        poller = TurnPoller(opened.chat, opened.program.fingerprints)
        stack.callback(poller.close)
        watcher = SessionWatcher(opened.chat)
        stack.callback(watcher.close)
        side_requests = SideRequestRunner(
            chat_models,
            opened.program.side_requests,
            limiter,
            spending,
            clock=now,
            deadline_seconds=settings.model_deadline_seconds,
            attempts=settings.model_attempts,
            max_workers=settings.concurrent_turns,
        )
        stack.callback(side_requests.close)
        access = SessionAccess(
            owner=settings.turnfold_owner,
            sign_in=None,
            stores=opened.chat,
            owners=opened.owner.owners,
            sign_ins=opened.owner.sign_ins,
            runner=runner,
            poller=poller,
            recovery=recovery,
            watcher=watcher,
            compacting={},
            clock=now,
        )
        eraser = SessionEraser(
            stores=opened.chat, runner=runner, fold_worker=fold_worker, contexts=contexts, project_turns=projects
        )
        stack.callback(eraser.close)
        eraser.erase_expired(has_others=True)
        known_tools = KnownTools(tools, chat_models.caller, now)
        next_inputs = NextInputs(
            deps,
            strategies,
            contexts,
            known_tools,
            preview or without_project,
            (lambda *_: None) if projects is None else projects.access,
        )
        yield ChatService(
            Engine(
                access=access,
                choices=Choices(settings=settings, models=chat_models, strategies=strategies, roots=roots, mcp=servers),
                stores=opened,
                fold_worker=fold_worker,
                side_requests=side_requests,
                eraser=eraser,
                contexts=contexts,
                project_turns=projects,
                titles=titles,
                vectors=vectors,
                known_tools=known_tools,
                example_writer=ExampleWriter(opened.chat, fold_worker, strategies, known_tools, clock=now),
                next_inputs=next_inputs,
                past_turns=partial(past_turns, deps),
                spending=spending,
            )
        )


def _join_projects(
    settings: Settings,
    roots: RootFolders,
    agreements: RuleAgreementStore,
    models: ChatModels,
    spending: Spending,
    clock: Callable[[], datetime],
) -> tuple[ProjectTurns, ProjectContext]:
    """Returns what turns in a project note there and are sent of it."""
    registry = ContextRegistry(
        settings.turnfold_data_dir / "context",
        loader_of(agreements),
        directory=Path.cwd(),
        policy=settings.context_volatile,
    )
    turns = ProjectTurns(roots, registry, agreements, models, spending, settings, clock=clock)
    return turns, ProjectContext(roots, registry, agreements, turns)
