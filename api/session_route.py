"""The operations on sessions: list, read, change, delete; stop, retry, compact, reset, export."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

from api.model_id import parse_model_id
from api.problem import refused
from api.route_table import Call, Operation
from api.session_answer import (
    ChangeSession,
    Figures,
    ListSessions,
    ListTurns,
    RecordList,
    Restore,
    SessionAnswer,
    SessionPage,
    TurnBegun,
    TurnInputs,
)
from graph.value.error import NotFoundError
from graph.value.record import Record
from graph.value.view import SessionItem, Transcript, TurnOptions

JSON_LINES: Final = "application/x-ndjson"
_TURN: Final = re.compile(r"[1-9]\d{0,8}", re.ASCII)


def _list(call: Call) -> SessionPage:
    sent: ListSessions = call.sent
    before = _place_of(sent.before) if sent.before else None
    # One more than asked for tells whether there are older ones.
    found = call.service.sessions.list(search=sent.search, last=sent.last + 1, before=before)
    shown = found[: sent.last]
    return SessionPage(sessions=shown, next=_place(shown[-1]) if len(found) > sent.last else None)


def _place(item: SessionItem) -> str:
    return f"{item.updated_at.isoformat()}~{item.session_id}"


def _place_of(text: str) -> tuple[datetime, str]:
    """Reads what `_place` wrote.

    Raises:
        ProblemError: 400: it is something else.
    """
    moment, _, session_id = text.partition("~")
    try:
        updated_at = datetime.fromisoformat(moment)
        if updated_at.tzinfo is not None and session_id:
            return updated_at.astimezone(UTC), session_id
    except (ValueError, OverflowError):
        pass
    raise refused("invalid_value", "before: It takes `next` of the page before.", "before")


def _get(call: Call) -> SessionAnswer:
    return SessionAnswer.model_validate(call.service.sessions.get(call.session_id))


def _change(call: Call) -> SessionAnswer:
    sent: ChangeSession = call.sent
    changes = sent.model_dump(exclude_unset=True)
    if sent.model is not None:
        changes["model"], _ = parse_model_id(sent.model)
    return SessionAnswer.model_validate(call.service.sessions.configure(call.session_id, **changes))


def _delete(call: Call) -> None:
    call.service.sessions.delete(call.session_id)


def _turns(call: Call) -> Transcript:
    return call.service.turns.transcript(call.session_id, last=call.sent.last, before=call.sent.before)


def _records(call: Call) -> RecordList:
    folds = call.service.folds
    undone = tuple(record.id for record in folds.compactions(call.session_id))
    return RecordList(records=folds.records(call.session_id), restorable=undone)


def _statistics(call: Call) -> Figures:
    view, folds = call.service.sessions.get(call.session_id), call.service.folds
    return Figures(
        statistics=folds.statistics(call.session_id),
        next_fold=folds.next_fold(call.session_id, strategy=view.strategy),
        gauge=folds.gauge(call.session_id, model=view.model),
        chart=folds.chart(call.session_id),
    )


def _inputs(call: Call) -> TurnInputs:
    if not _TURN.fullmatch(turn := call.path["turn"]):
        call.service.sessions.get(call.session_id)
        raise NotFoundError
    return TurnInputs(calls=call.service.folds.inputs(call.session_id, int(turn)))


def _stop(call: Call) -> None:
    call.service.turns.stop(call.session_id)


def _by(call: Call) -> TurnOptions:
    return TurnOptions(client=call.client.options())


def _retry(call: Call) -> TurnBegun:
    return TurnBegun(session_id=call.session_id, turn=call.service.turns.retry(call.session_id, options=_by(call)))


def _regenerate(call: Call) -> TurnBegun:
    begun = call.service.turns.regenerate(call.session_id, options=_by(call))
    return TurnBegun(session_id=begun.session_id, turn=begun.number)


def _compact(call: Call) -> Record:
    return call.service.folds.compact(call.session_id)


def _restore(call: Call) -> None:
    sent: Restore = call.sent
    if sent.record_id is None:
        call.service.folds.undo_reset(call.session_id)
    else:
        call.service.folds.restore(call.session_id, sent.record_id)


def _reset(call: Call) -> None:
    call.service.folds.reset(call.session_id)


def _export(call: Call) -> str:
    return "".join(f"{line}\n" for line in call.service.sessions.export(call.session_id))


_ONE: Final = "/sessions/{session_id}"
OPERATIONS: Final = (
    Operation("listSessions", "GET", "/sessions", SessionPage, query=ListSessions, call=_list),
    Operation("getSession", "GET", _ONE, SessionAnswer, call=_get),
    Operation("changeSession", "PATCH", _ONE, SessionAnswer, body=ChangeSession, call=_change),
    Operation("deleteSession", "DELETE", _ONE, status=204, refusals=(409,), call=_delete),
    Operation("listTurns", "GET", f"{_ONE}/turns", Transcript, query=ListTurns, call=_turns),
    Operation("listRecords", "GET", f"{_ONE}/records", RecordList, call=_records),
    Operation("getStatistics", "GET", f"{_ONE}/statistics", Figures, call=_statistics),
    Operation("getInput", "GET", f"{_ONE}/input/{{turn}}", TurnInputs, call=_inputs),
    Operation("stopTurn", "POST", f"{_ONE}/stop", status=204, call=_stop),
    Operation("retryTurn", "POST", f"{_ONE}/retry", TurnBegun, status=202, refusals=(400, 409), call=_retry),
    Operation(
        "regenerateTurn", "POST", f"{_ONE}/regenerate", TurnBegun, status=202, refusals=(400, 409), call=_regenerate
    ),
    Operation("compactSession", "POST", f"{_ONE}/compact", Record, refusals=(400, 409), call=_compact, is_slow=True),
    Operation("restoreContext", "POST", f"{_ONE}/restore", status=204, body=Restore, refusals=(409,), call=_restore),
    Operation("resetContext", "POST", f"{_ONE}/reset", status=204, refusals=(409,), call=_reset),
    Operation("exportSession", "POST", f"{_ONE}/export", str, media_types=(JSON_LINES,), call=_export),
)
