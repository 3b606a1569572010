"""The operations on sessions and on `/v1/summarize`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal, Self, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from api.body import BODY_BYTES
from api.chat import project_root_of
from api.problem import refused
from api.request import MESSAGES, Sent, SentMessage, chat_of, parse_model_id, wrong
from api.route_table import Call, Operation
from graph.value.client import ClientMessage
from graph.value.error import NotFoundError
from graph.value.record import Record, RecordOutcome
from graph.value.view import (
    CallInput,
    ChartPoint,
    FoldWhen,
    Gauge,
    LedgerView,
    NextFold,
    SessionItem,
    SessionView,
    Statistics,
    Thinking,
    Transcript,
    TurnOptions,
)

SESSIONS_AT_ONCE = 200
TURNS_AT_ONCE = 1_000
_TEXT_CHARS = 2_000


class Exact(Sent):
    """A model of Turnfold's own routes: an unknown field is an error; null means absent."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class ListSessions(BaseModel, extra="forbid"):
    """The query of the list of sessions, newest first."""

    search: str = Field(default="", max_length=_TEXT_CHARS, description="Words that the title or one message has.")
    last: int = Field(default=30, ge=1, le=SESSIONS_AT_ONCE, description="How many at most.")
    before: str = Field(default="", max_length=512, description="`next` of the page before this one.")


class SessionPage(BaseModel):
    """Some of the sessions, the newest first; `next` leads to the older ones, null if there are none."""

    sessions: tuple[SessionItem, ...]
    next: str | None


_CODE: Final = Annotated[str, BeforeValidator(lambda error: getattr(error, "code", ""))]
_KINDS: Final[dict[str, Any]] = {**get_type_hints(SessionView), "project_problem": _CODE}
_FIELDS: Final[dict[str, Any]] = {name: (kind, ...) for name, kind in _KINDS.items()}
SessionAnswer: Final[type[BaseModel]] = create_model(
    "SessionAnswer",
    __config__=ConfigDict(from_attributes=True),
    __doc__='A session\'s settings and state; `project_problem` is the code of an error, "" for none.',
    **_FIELDS,
)


class ChangeSession(Exact):
    """What is to change; what isn't named stays. Each holds from the next fold and the next turn on."""

    title: str | None = Field(default=None, max_length=_TEXT_CHARS)
    compression_rate: float | None = Field(default=None, ge=0.1, le=0.5)
    strategy: str | None = Field(default=None, max_length=64)
    fold_when: FoldWhen | None = None
    model: str | None = Field(default=None, max_length=256)
    project_root: str | None = Field(default=None, max_length=4_096, description="An allowed folder; empty for none.")
    has_memory: bool | None = None
    thinking: Thinking | None = None


class ListTurns(BaseModel, extra="forbid"):
    """The query of the list of turns, oldest first."""

    last: int = Field(default=30, ge=1, le=TURNS_AT_ONCE, description="How many of the newest.")
    before: int | None = Field(default=None, ge=1, le=2**31, description="Only turns with a smaller number.")


class RecordList(BaseModel):
    """The summaries in force, oldest first, and the ids of those that `restore` can undo, newest first."""

    records: tuple[Record, ...]
    restorable: tuple[str, ...]


class Figures(BaseModel):
    """What folding saved and cost, what is folded next, how full the window is, and what each turn sent."""

    statistics: Statistics
    next_fold: NextFold
    gauge: Gauge
    chart: tuple[ChartPoint, ...]


class TurnInputs(BaseModel):
    """What each call of a turn was sent."""

    calls: tuple[CallInput, ...]


class TurnBegun(BaseModel):
    """The turn that runs now."""

    session_id: str
    turn: int


class Restore(Exact):
    """What is undone: a compaction with every later one, or without `record_id` the last reset."""

    record_id: str | None = Field(default=None, max_length=256)


JSON_LINES: Final = "application/x-ndjson"
_TURN: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def _list(call: Call) -> SessionPage:
    """Lists the sessions, newest first, all or those that a search finds."""
    sent: ListSessions = call.sent
    before = _read_cursor(sent.before) if sent.before else None
    # One more than requested shows if there are older sessions.
    found = call.service.sessions.list(search=sent.search, last=sent.last + 1, before=before)
    shown = found[: sent.last]
    return SessionPage(sessions=shown, next=_cursor(shown[-1]) if len(found) > sent.last else None)


def _cursor(item: SessionItem) -> str:
    return f"{item.updated_at.isoformat()}~{item.session_id}"


def _read_cursor(text: str) -> tuple[datetime, str]:
    moment, _, session_id = text.partition("~")
    try:
        updated_at = datetime.fromisoformat(moment)
        if updated_at.tzinfo is not None and session_id:
            return updated_at.astimezone(UTC), session_id
    except (ValueError, OverflowError):
        pass
    raise refused("invalid_value", "before: It takes `next` of the page before.", "before")


def _get(call: Call) -> BaseModel:
    """Returns a session's settings and state."""
    return SessionAnswer.model_validate(call.service.sessions.get(call.session_id))


def _change(call: Call) -> BaseModel:
    """Changes a session's title and settings: all that is sent, or nothing."""
    sent: ChangeSession = call.sent
    changes = sent.model_dump(exclude_unset=True)
    if sent.model is not None:
        changes["model"], _ = parse_model_id(sent.model)
    return SessionAnswer.model_validate(call.service.sessions.configure(call.session_id, **changes))


def _delete(call: Call) -> None:
    """Stops the running turn and deletes everything that is stored of the session."""
    call.service.sessions.delete(call.session_id)


def _turns(call: Call) -> Transcript:
    """Returns the newest turns with questions, answers and tool steps, or those before a number."""
    return call.service.turns.transcript(call.session_id, last=call.sent.last, before=call.sent.before)


def _records(call: Call) -> RecordList:
    """Returns the summaries in force, each with what it covers, keeps and cost."""
    folds = call.service.folds
    undone = tuple(record.id for record in folds.compactions(call.session_id))
    return RecordList(records=folds.records(call.session_id), restorable=undone)


def _ledger(call: Call) -> LedgerView:
    """Returns what is kept of the user's words of folded turns: rules, choices, preferences, people."""
    return call.service.folds.ledger(call.session_id)


class ChangeLine(Exact):
    """Whether a line of the ledger is struck out; false restores it."""

    struck: bool


def _change_line(call: Call) -> LedgerView:
    """Strikes a line of the ledger out, from the next turn on, or restores it."""
    sent: ChangeLine = call.sent
    return call.service.folds.strike(call.session_id, call.path["line"], is_struck=sent.struck)


def _statistics(call: Call) -> Figures:
    """Returns what folding saved and cost, what is folded next, and how full the window is."""
    view, folds = call.service.sessions.get(call.session_id), call.service.folds
    return Figures(
        statistics=folds.statistics(call.session_id),
        next_fold=folds.next_fold(call.session_id, strategy=view.strategy),
        gauge=folds.gauge(call.session_id),
        chart=folds.chart(call.session_id),
    )


def _inputs(call: Call) -> TurnInputs:
    """Returns what each model call of a turn was sent, block by block, checked by its hash."""
    if not _TURN.fullmatch(turn := call.path["turn"]):
        call.service.sessions.get(call.session_id)
        raise NotFoundError
    return TurnInputs(calls=call.service.inputs.of_turn(call.session_id, int(turn)))


def _update_context(call: Call) -> dict[str, str]:
    """Takes over what the user is at: currentFile, selection, projectRoot."""
    context: dict[str, str] = call.sent
    if (root := project_root_of(context)) is not None:
        call.service.sessions.configure(call.session_id, project_root=root)
    return dict(call.service.sessions.update_context(call.session_id, context))


def _stop(call: Call) -> None:
    """Stops the running turn or compaction; what was said is kept. Without one it does nothing."""
    call.service.turns.stop(call.session_id)


def _by(call: Call) -> TurnOptions:
    return TurnOptions(client=call.client.options())


def _retry(call: Call) -> TurnBegun:
    """Runs a failed or stopped last turn again."""
    return TurnBegun(session_id=call.session_id, turn=call.service.turns.retry(call.session_id, options=_by(call)))


def _regenerate(call: Call) -> TurnBegun:
    """Answers the last turn again; the old answer stays in the archive."""
    started = call.service.turns.regenerate(call.session_id, options=_by(call))
    return TurnBegun(session_id=started.session_id, turn=started.number)


def _compact(call: Call) -> Record:
    """Replaces all but the newest messages by one summary, and waits for it."""
    return call.service.folds.compact(call.session_id)


def _restore(call: Call) -> None:
    """Undoes a compaction and every later one; without record_id, the last reset."""
    sent: Restore = call.sent
    if sent.record_id is None:
        call.service.folds.undo_reset(call.session_id)
    else:
        call.service.folds.restore(call.session_id, sent.record_id)


def _reset(call: Call) -> None:
    """Empties the context: nothing said so far is sent again. The transcript stays."""
    call.service.folds.reset(call.session_id)


def _export(call: Call) -> str:
    """Returns the session as JSON Lines, as the operator's export has them."""
    return "".join(f"{line}\n" for line in call.service.sessions.export(call.session_id))


_ONE: Final = "/sessions/{session_id}"
OPERATIONS: Final = (
    Operation("listSessions", "GET", "/sessions", SessionPage, query=ListSessions, call=_list),
    Operation("getSession", "GET", _ONE, SessionAnswer, call=_get),
    Operation("changeSession", "PATCH", _ONE, SessionAnswer, body=ChangeSession, is_body_optional=True, call=_change),
    Operation("updateContext", "PUT", f"{_ONE}/context", dict[str, str], body=dict[str, str], call=_update_context),
    Operation("deleteSession", "DELETE", _ONE, status=204, refusals=(409,), call=_delete),
    Operation("listTurns", "GET", f"{_ONE}/turns", Transcript, query=ListTurns, call=_turns),
    Operation("listRecords", "GET", f"{_ONE}/records", RecordList, call=_records),
    Operation("getLedger", "GET", f"{_ONE}/ledger", LedgerView, call=_ledger),
    Operation("changeLedgerLine", "PATCH", f"{_ONE}/ledger/{{line}}", LedgerView, body=ChangeLine, call=_change_line),
    Operation("getStatistics", "GET", f"{_ONE}/statistics", Figures, call=_statistics),
    Operation("getInput", "GET", f"{_ONE}/input/{{turn}}", TurnInputs, call=_inputs),
    Operation("stopTurn", "POST", f"{_ONE}/stop", status=204, call=_stop),
    Operation("retryTurn", "POST", f"{_ONE}/retry", TurnBegun, status=202, refusals=(400, 409), call=_retry),
    Operation(
        "regenerateTurn", "POST", f"{_ONE}/regenerate", TurnBegun, status=202, refusals=(400, 409), call=_regenerate
    ),
    Operation("compactSession", "POST", f"{_ONE}/compact", Record, refusals=(400, 409), call=_compact, is_slow=True),
    Operation(
        "restoreContext",
        "POST",
        f"{_ONE}/restore",
        status=204,
        body=Restore,
        is_body_optional=True,
        refusals=(409,),
        call=_restore,
    ),
    Operation("resetContext", "POST", f"{_ONE}/reset", status=204, refusals=(409,), call=_reset),
    Operation("exportSession", "POST", f"{_ONE}/export", str, media_types=(JSON_LINES,), call=_export),
)


# No summary prompt asks for more at once.
_MOST_TARGET_CHARS: Final = 6_000


class Summarize(Exact):
    """What is summarised, `messages` or a `text`, and how short: a `rate` of its characters, or a `target_length`."""

    messages: list[SentMessage] = Field(default=[], max_length=MESSAGES)
    text: str = ""
    rate: float | None = Field(default=None, ge=0.1, le=0.5)
    target_length: int | None = Field(default=None, ge=1, le=_MOST_TARGET_CHARS, description="In characters.")
    language: Literal["ko", "en"] | None = None

    @model_validator(mode="after")
    def _is_either(self) -> Self:
        if bool(self.messages) == bool(self.text):
            raise wrong("invalid_value", "Either messages or a text is summarised")
        if self.rate is not None and self.target_length is not None:
            raise wrong("invalid_value", "Either a rate or a target_length says how short")
        return self


class SummaryAnswer(BaseModel):
    """A summary and its figures.

    `outcome` is "picked" if sentences of the source stand for drafts that couldn't be taken, and "inflated" if it
    stands word for word. Tokens are those that the provider reported if `is_usage`, else estimates; over all drafts.
    Facts are those that the user said. `needed_rate` is the share asked for where it isn't the rate, or 0;
    `invented_facts` are numbers, dates, amounts and identifiers of the summary that the source lacks.
    """

    model_config = ConfigDict(from_attributes=True)

    summary: str
    outcome: RecordOutcome
    original_chars: int
    summary_chars: int
    target_chars: int
    model: str
    input_tokens: int
    output_tokens: int
    is_usage: bool
    seconds: float
    kept_facts: tuple[str, ...]
    missing_facts: tuple[str, ...]
    needed_rate: float
    invented_facts: tuple[str, ...]


def _summarize(call: Call) -> SummaryAnswer:
    """Summarises messages or a text to a rate or a length, with its figures. Nothing is stored."""
    sent: Summarize = call.sent
    messages = chat_of(sent.messages) if sent.messages else (ClientMessage("user", sent.text),)
    record = call.service.summaries.make(
        messages, client=call.client.name, rate=sent.rate, target_chars=sent.target_length, language=sent.language
    )
    return SummaryAnswer.model_validate(record)


SUMMARIZE: Final = Operation(
    "summarize",
    "POST",
    "/v1/summarize",
    SummaryAnswer,
    body=Summarize,
    body_bytes=BODY_BYTES,
    refusals=(404, 502),
    call=_summarize,
    is_slow=True,
)
