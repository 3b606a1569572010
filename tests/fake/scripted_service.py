"""A service without an engine: answers at once from a script, for states of the page that are hard to bring about."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Literal

from graph.core.attached import Attachment, data_urls, images_of, question_of, url_of
from graph.core.long_file import sent_files
from graph.core.turn import text_of
from graph.server.settings import Settings
from graph.value.error import InputError, NotFoundError, TurnfoldError
from graph.value.record import Record
from graph.value.view import (
    ChartPoint,
    CostView,
    EndpointProblem,
    ExportSize,
    FoldWhen,
    Gauge,
    LiveTurn,
    ModelOption,
    NamedImage,
    NextFold,
    Outline,
    PastStatistics,
    Place,
    Savings,
    SavingsMoney,
    SessionItem,
    SessionView,
    StartedTurn,
    Statistics,
    ToolStep,
    Transcript,
    TurnOptions,
    TurnStatus,
    TurnView,
)
from prompt.system.framing import Language
from tests.fake.scripted_branches import ScriptedBranches
from tests.fake.scripted_instructions import ScriptedInstructions
from tests.fake.scripted_mcp import ScriptedMcp
from tests.fake.scripted_programs import ScriptedPrograms
from tests.fake.scripted_projects import ScriptedProjects
from tests.fake.scripted_session import COMMANDS, OFFLINE, START, ScriptedSession, chart_of, echo
from tests.fake.scripted_steering import ScriptedSteering


class ScriptedService:
    """The service and its three parts in one, over plain lists.

    Attributes:
        answer: Makes the answer to a message.
        status: What becomes of the next turns.
        error_code: Why they fail, with status "failed".
        steps: The tool calls of the next turns.
        refusal: Raised by the next action, once.
        stopped: The sessions that Stop was asked for.
        images: The pictures that were sent, by reference.
        sent: The options of each send, retry and regenerate.
        problem: Why the endpoint's models can't be listed.
        calls: The names of all methods called, for query budgets.
        reset_after: The chart begins behind this turn.
        deleted_when_asked_for: When this is read of a session next, another tab has just deleted it.
        size: How long each session's file is.
        projects: The one project, if there is any.
        programs: The tokens of the user's programs.
        cost: What each session and all of them cost, None without prices.
        saved_money: What folding has saved in each session, None without prices.
    """

    def __init__(self, folder: Path, *, models: tuple[ModelOption, ...] = (OFFLINE,)) -> None:
        self.settings = Settings.model_construct(turnfold_data_dir=folder)
        self.stored: dict[str, ScriptedSession] = {}
        self.models = models
        self.problem: EndpointProblem | None = None
        self.answer: Callable[[str], str] = echo
        self.status: TurnStatus = "finished"
        self.error_code = "unreachable"
        self.steps: tuple[ToolStep, ...] = ()
        self.refusal: TurnfoldError | None = None
        self.stopped: list[str] = []
        self.sent: list[TurnOptions] = []
        self.images: dict[str, str] = {}
        self.whole_results: dict[tuple[int, int, str], str] = {}
        self.calls: list[str] = []
        self.deleted_when_asked_for = ""
        self.reset_after = 0
        self.size = ExportSize(2_000, 0, 0)
        self.now = START
        self.gauge_now = Gauge(sent_tokens=1416, window_tokens=8192)
        self._numbers = itertools.count(1)
        self.folds = ScriptedSteering(self)
        self.turns = self.sessions = ScriptedBranches(self)
        self.projects = ScriptedProjects()
        self.programs = ScriptedPrograms()
        self.instructions = ScriptedInstructions(self.session_of)
        self.mcp = ScriptedMcp(self)
        self.costs = self
        self.cost: CostView | None = None
        self.saved_money: SavingsMoney | None = None

    def new_id(self) -> str:
        return f"session-{next(self._numbers)}"

    def open_example(self, language: str) -> str:
        self.act("open_example")
        identifier = f"example-{language}"
        self.stored.setdefault(identifier, ScriptedSession(identifier, self.now))
        self.send(identifier, "예시로 묻습니다", message_id="example", options=TurnOptions())
        return identifier

    def send(
        self,
        session_id: str,
        text: str,
        *,
        message_id: str,
        options: TurnOptions,
        images: Sequence[str | NamedImage] = (),
    ) -> int:
        self.act("send")
        if not text.strip() and not images:
            raise InputError("empty")
        assert message_id
        if session_id not in self.stored:
            self.stored[session_id] = ScriptedSession(text[:40], self.now)
        session = self.stored[session_id]
        self._apply(session, options)
        number = len(session.turns) + 1
        session.turns[-1:] = [replace(turn, is_last=False) for turn in session.turns[-1:]]
        asked = question_of(text, images, message_id=message_id)
        self.images |= data_urls(map(url_of, images))
        session.turns.append(replace(self._turn(number, 1, text_of(asked), session), images=images_of(asked)))
        session.fold_before(number)
        return number

    def whole_result(self, session_id: str, turn: int, attempt: int, call_id: str) -> str:
        self._look("whole_result", session_id)
        return self.whole_results[turn, attempt, call_id]

    def image(self, session_id: str, reference: str) -> str:
        self._look("image", session_id)
        return self.images.get(reference, "")

    def retry(self, session_id: str, *, options: TurnOptions) -> int:
        self.act("retry")
        return self._again(session_id, options)

    def regenerate(self, session_id: str, *, turn: int | None = None, options: TurnOptions) -> StartedTurn:
        self.act("regenerate")
        if turn is not None:
            return self.turns.branch(session_id, turn, self.session_of(session_id).turns[turn - 1].user_text, options)
        return StartedTurn(session_id, self._again(session_id, options))

    def stop(self, session_id: str) -> None:
        self.act("stop")
        self.stopped.append(session_id)

    def live(self, session_id: str) -> LiveTurn | None:
        return self._look("live", session_id).live

    def get(self, session_id: str) -> SessionView:
        return self._look("session", session_id).view(session_id)

    def list(
        self,
        *,
        search: str = "",
        last: int | None = None,
        also: str = "",
        pinned_first: bool = False,
    ) -> tuple[SessionItem, ...]:
        self.calls.append("sessions")
        found = sorted(self._found(search), key=lambda item: not (pinned_first and item.is_pinned))
        shown = found[:last]
        return (*shown, *(item for item in found[len(shown) :] if item.session_id == also))

    def count(self, *, search: str = "") -> int:
        self.calls.append("session_count")
        return len(self._found(search))

    def export_size(self, session_id: str) -> ExportSize:
        self.session_of(session_id)
        return self.size

    def leave(self, tab: str) -> None:
        """Tells no tab anything."""

    def rename(self, session_id: str, title: str) -> None:
        self.act("rename")
        if not title:
            raise InputError("empty")
        self.session_of(session_id).title = title

    def delete(self, session_id: str) -> None:
        self.act("delete")
        self.session_of(session_id)
        del self.stored[session_id]

    def configure(self, session_id: str, **changes: Any) -> SessionView:  # noqa: ANN401  # as TurnOptions has them
        self.act("configure")
        self._apply(self.session_of(session_id), TurnOptions(**changes))
        return self.get(session_id)

    def transcript(self, session_id: str, *, last: int = 30, before: int | None = None) -> Transcript:
        session = self._look("transcript", session_id)
        shown = tuple(session.turns[: before and before - 1][-last:])
        can_undo = session.resets[-1:] == [len(session.turns)]
        left_out = session.turns[: -len(shown)]
        previous_at = left_out[-1].started_at if left_out else None
        return Transcript(shown, len(left_out), tuple(session.resets), can_undo, previous_at)

    def records(self, session_id: str, *, last: int | None = None) -> tuple[Record, ...]:
        records = self._look("records", session_id).records
        return tuple(records if last is None else records[-last:])

    def statistics(self, session_id: str, *, ready: Sequence[Record] = ()) -> Statistics:
        return self._look("statistics", session_id).statistics(ready)

    def past_statistics(self, session_id: str) -> PastStatistics:
        session = self._look("past_statistics", session_id)
        return PastStatistics(**asdict(replace(session, records=session.past_records).statistics()))

    def savings(self, session_id: str, *, ready: Sequence[Record] = ()) -> Savings:
        session = self._look("savings", session_id)
        sums = session.statistics(ready)
        return Savings(
            sums.unsent_tokens,
            sums.fold_tokens,
            is_fold_usage=True,
            lost_tokens=60,
            net_tokens=sums.unsent_tokens - sums.fold_tokens - 60,
            money=self.saved_money,
            pays_from=session.pays_from,
            broken_off_count=session.broken_off_count,
            full_tokens=2 * sums.unsent_tokens,
        )

    def of_session(self, session_id: str) -> CostView | None:
        self._look("cost", session_id)
        return self.cost

    def of_all(self) -> CostView | None:
        return self.cost

    def next_fold(self, session_id: str | None, *, strategy: str, fold_when: FoldWhen = "due") -> NextFold:
        assert strategy in self.strategies()
        new = ScriptedSession("", self.now, fold_when=fold_when)
        session = self._look("next_fold", session_id) if session_id is not None else new
        return session.next_fold or session.blocks_next()

    def uses_rate(self, strategy: str) -> bool:
        return strategy == "interval"

    def chart(self, session_id: str) -> tuple[ChartPoint, ...]:
        return chart_of(self._look("chart", session_id).turns[self.reset_after :])

    def gauge(
        self,
        session_id: str | None,
        *,
        options: TurnOptions,
        language: str,
        files: Collection[Attachment | NamedImage],
    ) -> Gauge:
        if session_id is not None:
            self._look("gauge", session_id)
        assert language in {"ko", "en"}
        assert options.client is None
        gauge = self.gauge_now if session_id else Gauge(210, 8192)
        return replace(gauge, sent_tokens=gauge.sent_tokens + 1_000 * len(files))

    def sent_files(
        self,
        session_id: str | None,
        files: Sequence[Attachment | NamedImage],
        *,
        options: TurnOptions,
        language: Language,
    ) -> Sequence[Attachment | NamedImage]:
        texts = [file for file in files if isinstance(file, Attachment)]
        assert options.client is None
        window = self.gauge_now.window_tokens if session_id else 8_192
        sent = iter(sent_files(texts, window_tokens=window, most_chars=200_000, language=language))
        return tuple(next(sent) if isinstance(file, Attachment) else file for file in files)

    def model_options(self) -> tuple[ModelOption, ...]:
        self.calls.append("model_options")
        return self.models

    def endpoint_problem(self) -> EndpointProblem | None:
        return self.problem

    def default_model(self) -> str:
        return self.models[0].name if self.models else ""

    def default_strategy(self) -> str:
        return "interval"

    def command_of(self, text: str) -> tuple[Literal["compact", "reset"], str] | None:
        name, _, words = text.strip().partition(" ")
        return (COMMANDS[name], words) if name in COMMANDS else None

    def compact(self, session_id: str, *, instruction: str = "") -> Record:
        self.act(f"compact {session_id} {instruction}".strip())
        return self.records(session_id)[-1]

    def restore(self, session_id: str, record_id: str) -> None:
        self.act(f"restore {session_id} {record_id}")

    def reset(self, session_id: str) -> None:
        self.act(f"reset {session_id}")
        session = self.session_of(session_id)
        session.past_records, session.records = [*session.past_records, *session.records], []
        session.resets.append(len(session.turns))

    def expect_message(self, session_id: str) -> None:
        self.act(f"expect_message {session_id}")

    def undo_reset(self, session_id: str) -> None:
        self.act(f"undo_reset {session_id}")
        session = self.session_of(session_id)
        session.past_records, session.records = [], session.past_records
        session.resets.pop()

    def past_records(self, session_id: str, *, last: int) -> tuple[Record, ...]:
        return tuple(self._look("past_records", session_id).past_records[-last:])

    def compactions(self, session_id: str) -> tuple[Record, ...]:
        return tuple(self.session_of(session_id).compactions)

    def outline(self, session_id: str, *, search: str = "") -> Outline:
        turns = self.session_of(session_id).turns
        found = [
            Place(turn.number, turn.user_text, turn.started_at or self.now)
            for turn in turns
            if search in turn.user_text
        ]
        return Outline(tuple(found), (search,) if search else ())

    def strategies(self) -> tuple[str, ...]:
        return ("interval", "rolling", "compaction", "window")

    def health(self) -> None:
        self.act("health")

    def act(self, name: str) -> None:
        self.calls.append(name)
        refusal, self.refusal = self.refusal, None
        if refusal is not None:
            raise refusal

    def _found(self, search: str) -> Sequence[SessionItem]:
        items = (item.row(key) for key, item in self.stored.items() if search.lower() in item.title.lower())
        return sorted(items, key=lambda item: item.updated_at, reverse=True)

    def _look(self, name: str, session_id: str) -> ScriptedSession:
        self.calls.append(name)
        if name == self.deleted_when_asked_for:
            self.deleted_when_asked_for = ""
            self.stored.pop(session_id, None)
        return self.session_of(session_id)

    def session_of(self, session_id: str) -> ScriptedSession:
        if session_id not in self.stored:
            raise NotFoundError
        return self.stored[session_id]

    def _apply(self, session: ScriptedSession, options: TurnOptions) -> None:
        self.sent.append(options)
        session.compression_rate = options.compression_rate or session.compression_rate
        session.strategy = options.strategy or session.strategy
        session.fold_when = options.fold_when or session.fold_when
        session.model = options.model or session.model
        session.project_root = session.project_root if options.project_root is None else options.project_root
        session.has_memory = session.has_memory if options.has_memory is None else options.has_memory
        session.thinking = session.thinking if options.thinking is None else options.thinking

    def _again(self, session_id: str, options: TurnOptions) -> int:
        session = self.session_of(session_id)
        self._apply(session, options)
        last = session.turns[-1]
        session.aside += [last] if last.answer_text else []
        session.turns[-1] = self._turn(last.number, last.attempt + 1, last.user_text, session)
        if (attempts := [turn.attempt for turn in session.aside if turn.number == last.number]) and not session.live:
            session.turns[-1] = replace(session.turns[-1], attempts=(*attempts, last.attempt + 1))
        return last.number

    def _turn(self, number: int, attempt: int, text: str, session: ScriptedSession) -> TurnView:
        if self.status == "running":
            session.live = LiveTurn(number, attempt, "waiting", (), "", (), stop_requested=False)
        return TurnView(
            number=number,
            attempt=attempt,
            status=self.status,
            user_text=text,
            answer_text=self.answer(text) if self.status in {"finished", "stopped"} else "",
            steps=self.steps if self.status != "running" else (),
            error_code=self.error_code if self.status == "failed" else "",
            error_detail="",
            model=session.model,
            is_last=True,
            started_at=self.now,
            seconds=2.34 if self.status != "running" else 0.0,
            input_tokens=1238,
            output_tokens=45,
            user_message_id=f"user-{number}",
            answer_message_id=f"answer-{number}" if self.status in {"finished", "stopped"} else "",
        )
