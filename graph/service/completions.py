"""Answers programs: finds the session that a request goes on with, and begins its turn."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby, takewhile

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from graph.core.attached import references_in, urls_of
from graph.core.text import has_visible
from graph.core.turn import closed_mark, text_of, words_of
from graph.model.factory import ChatModels
from graph.recognise.client_chain import (
    ArchivedTurn,
    ChainKey,
    FingerprintHash,
    FingerprintRow,
    Known,
    canonical,
    newest_results,
    results_first,
    squeezed,
)
from graph.recognise.client_turns import is_imported, join_questions, newest_ids, said_by, sent_ids, unasked
from graph.recognise.decide import Decision, decide
from graph.recognise.match import Case
from graph.recognise.side_request import is_side_request
from graph.service.access import AFTERMATH_SECONDS, SessionAccess
from graph.service.program_input import tokens_beside
from graph.service.sessions import Sessions
from graph.service.turn_stream import (
    NO_END,
    Response,
    ResponseKey,
    found_response,
    messages_of,
    read_end,
    read_response_id,
    response_id,
    stored_log,
)
from graph.service.turns import Turns
from graph.store.fingerprint import FingerprintStore
from graph.store.stores import ProgramStores
from graph.store.turn import TurnRow
from graph.value.client import ClientMessage, ClientRequest, CompletionEnd, FoundResponse, Matched
from graph.value.error import BusyError, InputError, NotFoundError, ServerBusyError, TurnRateError
from graph.value.record import ArchivedMessage
from graph.value.view import TurnOptions
from graph.worker.side_request_runner import SideRequestRunner

_MOST_ROWS = 1_000
_TRIES = 3
# Room for our own prompt and the beginning of an answer.
_PROMPT_TOKENS = 1_000


@dataclass(frozen=True)
class Recognition:
    """Recognises an owner's sessions by the messages that programs send again."""

    access: SessionAccess
    programs: ProgramStores
    models: ChatModels

    def decide(self, request: ClientRequest) -> Decision:
        """Decides what a request continues, by the tables as they are now; reads only, but for the key of all hashes.

        Raises `NotFoundError`: the named session or response doesn't exist or is of another scope.
        """
        key, owner = ChainKey(self.programs.keys.get("anchor")), self.access.owner
        if is_side_request(request):
            return Decision("aside", "aside")
        chain = key.read(request, owner=owner)
        with self.access.stores.database.reading():
            scope, name = chain.fingerprint.scope, request.options.name
            if request.session:
                self.access.own(request.session)
                scopes = self.programs.fingerprints.scopes(request.session)
                if request.user and scopes and scope not in scopes:
                    raise NotFoundError(request.session)
            known = _KnownToStores(self.access, self.programs.fingerprints, scope, name)
            previous = self._named_response(request, known) if request.previous else None
            told: tuple[ClientMessage, ...] = ()
            if previous is not None:
                request = replace(request, session=previous.session_id)
                told = self._told(request, previous, known)
                request = replace(request, messages=(*told, *request.messages))
                # The hashes are those of the first time, when nothing had to be told.
                chain = replace(key.read(request, owner=owner), fingerprint=chain.fingerprint)
                previous = replace(previous, is_live=previous.is_live and not told)
            case = Case(request, chain, known, self.models.default_name, previous)
            decision = replace(decide(case, now=self.access.clock()), told=told)
            if decision.kind in {"fork", "new"} and (key_hash := chain.fingerprint.idempotency):
                earlier = len(known.find("idempotency", [key_hash]))  # too old to be answered by their response
                decision = replace(decision, once=f"{key_hash.hex()}-{earlier}")
            is_last = decision.kind in {"append", "regenerate"}
            last = self.access.stores.turns.last(decision.session_id) if is_last else None
            return replace(decision, turn=last.number, attempt=last.attempt) if last else decision

    def _named_response(self, request: ClientRequest, known: Known) -> FingerprintRow:
        session_id, turn, attempt, ordinal = read_response_id(request.previous) or ("", 0, 0, 0)
        if request.session in ("", session_id):
            self.access.own(session_id)
            started = self.programs.fingerprints.of_attempt(session_id, turn, attempt)[ordinal - 1 : ordinal]
            for row in known.find("asked", [each.asked for each in started]):
                if (row.session_id, row.turn, row.attempt) == (session_id, turn, attempt):
                    return row
        raise NotFoundError(request.previous)

    def _told(self, request: ClientRequest, row: FingerprintRow, known: Known) -> tuple[ClientMessage, ...]:
        """Returns question and answer of the named response if no turn ends with it.

        Another attempt replaced it, or the request answers its calls and no turn waits for them.
        """
        answered = {message.call_id for message in takewhile(lambda each: each.role == "tool", request.messages)}
        if row.is_live and (not answered or answered & newest_ids(known.open_turn(row.session_id))):
            return ()
        *_, ordinal = read_response_id(request.previous) or (0,)
        later = self.programs.fingerprints.of_attempt(row.session_id, row.turn, row.attempt)[ordinal:]
        end = later[0].first_position if later else NO_END
        said = [
            entry.message
            for entry in self.access.stores.archive.all_of_turn(row.session_id, row.turn)
            if entry.message.type == "human" or (entry.attempt == row.attempt and entry.position < end)
        ]
        # What closed the turn, or was said behind the calls, isn't told.
        calling = max((at for at, message in enumerate(said, 1) if answered & newest_ids([message])), default=0)
        if row.is_live and not calling:
            return ()
        ids, retained = sent_ids(said), self.access.stores.images.get(row.session_id, references_in(said))
        return tuple(said_by(message, retained, ids) for message in (said[:calling] if calling else said))


@dataclass(frozen=True)
class _KnownToStores:
    """What the tables know of the histories of one scope; `client` is the program that asks."""

    access: SessionAccess
    fingerprints: FingerprintStore
    scope: bytes
    client: str

    def find(self, kind: FingerprintHash, hashes: Sequence[bytes]) -> Sequence[FingerprintRow]:
        rows = self.fingerprints.find(self.scope, kind, hashes, limit=_MOST_ROWS)
        is_dead = [row.status == "running" and not self.access.is_running(row.session_id) for row in rows]
        return [replace(row, status="failed") if dead else row for row, dead in zip(rows, is_dead, strict=True)]

    def turns(self, session_id: str, first: int, last: int) -> Sequence[ArchivedTurn]:
        entries = self.access.stores.archive.live_turns(session_id, first, last)
        rows = {row.number: row for row in self.access.stores.turns.between(session_id, first, last)}
        own = self.fingerprints.turns(session_id, self.scope)
        return [
            self._archived_turn(rows[number], list(messages), is_own=number in own)
            for number, messages in groupby(entries, key=lambda entry: entry.turn)
        ]

    def seen(self, session_id: str, last: int) -> tuple[int, bool]:
        return self.access.stores.turns.seen_by_programs(session_id, last)

    def last(self, session_id: str) -> tuple[int, bool]:
        last = self.access.stores.turns.last(session_id)
        return (last.number, self.access.is_running(session_id)) if last else (0, False)

    def open_turn(self, session_id: str) -> Sequence[AnyMessage]:
        last = self.access.stores.turns.last(session_id)
        if last is None or not last.is_open or self.access.is_running(session_id):
            return ()
        entries = self.access.stores.archive.live_turns(session_id, last.number, last.number)
        return [entry.message for entry in entries]

    def _archived_turn(self, row: TurnRow, entries: Iterable[ArchivedMessage], *, is_own: bool) -> ArchivedTurn:
        messages = [entry.message for entry in entries]
        closing = closed_mark(messages[-1])
        if closing is not None and not closing.get("is_partial"):
            messages.pop()  # a sentence of ours for people, never sent to a program
        said = [message for message in messages if isinstance(message, AIMessage)]
        answers = [text_of(message) for message in said]
        final = "\n".join(text_of(message) for message in said if not message.tool_calls)
        results = [message for message in messages if isinstance(message, ToolMessage)]
        ids = sent_ids(messages)
        status = row.status
        if status == "running":
            live = self.access.live_turn(row.session_id)
            status, text = ("running", live.text) if live else ("failed", row.partial_text)
            # What this process streamed has all of it; what another one wrote down has only its newest part.
            written = squeezed(canonical("assistant", "\n".join(answers)))
            answers = [text] if squeezed(canonical("assistant", text)).startswith(written) else [*answers, text]
        return ArchivedTurn(
            row.number,
            squeezed(canonical("user", words_of(messages[0]))),
            frozenset(squeezed(canonical("assistant", text)) for text in ("\n".join(answers), final)) - {""},
            status,
            is_elsewhere=not is_own and not row.is_imported and row.client != self.client,
            is_imported=row.is_imported,
            images=urls_of(messages[0]),
            results=tuple(canonical("tool", words_of(message)) for message in results if is_imported(message)),
            calls=tuple(ids.values()),
        )


class Completions:
    """The responses to one owner's programs: `begin(request).watch(print)` prints the events of one.

    `locks` are shared by all owners; one is held while a request with an idempotency key begins.
    """

    def __init__(
        self,
        access: SessionAccess,
        turns: Turns,
        sessions: Sessions,
        *,
        programs: ProgramStores,
        models: ChatModels,
        side_requests: SideRequestRunner,
        locks: Sequence[threading.Lock],
    ) -> None:
        self._access = access
        self._turns = turns
        self._sessions = sessions
        self._fingerprints = programs.fingerprints
        self._models = models
        self._side_requests = side_requests
        self._locks = locks
        self._recognition = Recognition(access, programs, models)

    def models(self) -> dict[str, int]:
        """Returns the context windows of the models, as far as they are known now, by name; the default one first."""
        return {option.name: self._models.window_tokens(option.name) for option in self._models.options()}

    def begin(self, request: ClientRequest) -> Response:
        """Starts to answer a request, or finds the response to an earlier try; a refused request stores nothing.

        Raises:
            InputError: A message or option is invalid, or answers of open calls are missing.
            NotFoundError: This owner has no session of the given name.
            BusyError: A turn is in progress, or (`ServerBusyError`, `TurnRateError`) a limit of the server is reached.
            StoreError: The message couldn't be committed.
        """
        request = replace(request, messages=results_first(request.messages))
        lock = self._locks[hash((self._access.owner, request.idempotency_key)) % len(self._locks)]
        # Tries that come at once would all be the first one.
        with lock if request.idempotency_key else nullcontext():
            for _ in range(_TRIES):
                try:
                    return self._begin(request)
                except (ServerBusyError, TurnRateError):
                    raise
                except BusyError:
                    pass  # one that came at the same moment was first: beside it, this one is a fork
            return self._begin(request)

    def _begin(self, request: ClientRequest) -> Response:
        decision = self._settled(request)
        request = replace(request, messages=(*decision.told, *request.messages))
        session_id, turn = decision.session_id, decision.turn
        match decision.kind:
            case "aside":
                return self._begin_side_request(request)
            case "fork" | "new":
                new_id = self._sessions.new_id(decision.once or None)
                if decision.kind == "fork":
                    after_turn, group, client = decision.after_turn, decision.group, request.options.name
                    self._turns.fork(session_id, after_turn=after_turn, group=group, client=client, new_id=new_id)
                session_id = new_id
                try:
                    turn = self._send(session_id, request, decision)
                except BaseException:  # then nothing of the new session stays, unless another server has begun it
                    with suppress(NotFoundError):
                        if self._access.own(session_id).turn_count <= decision.after_turn:
                            self._sessions.delete(session_id)
                    raise
            case "append":
                turn = self._send(session_id, request, decision)
            case "regenerate":
                options = _options_of(request, decision)
                turn = self._turns.regenerate_answer(session_id, options=options, decision=decision)
            case "resume":
                turn = self._resume(request, decision)
        return self._response(session_id, turn, decision)

    def _settled(self, request: ClientRequest) -> Decision:
        """Decides what the request is, after stopped turns that it may continue have ended.

        A program that left a turn mustn't find its session busy; other sessions aren't waited for.
        """
        decision, runner = self._recognition.decide(request), self._access.runner
        goes_on = decision.stop_first or runner.running(decision.session_id) is not None
        last = self._access.stores.turns.last(decision.session_id) if goes_on else None
        log = self._access.log_of(last) if last is not None else None
        stopping = [log] if log is not None and log.stop.is_set() and not log.is_over else []
        if decision.kind == "new" and any(message.role == "assistant" for message in request.messages):
            stopping = runner.stopping(self._access.owner)  # the end of one may be what is unknown of the history
        for log in stopping:
            log.wait_for_end(AFTERMATH_SECONDS)
        return self._recognition.decide(request) if stopping else decision

    def _begin_side_request(self, request: ClientRequest) -> Response:
        side_request = self._side_requests.begin(request, self._access.owner)
        log, created = side_request.log, int(self._access.clock().timestamp())
        return Response(
            response_id(uuid.uuid4().hex), created, "", 0, "aside", log, lambda: side_request.end, log.stop.set
        )

    def _resume(self, request: ClientRequest, decision: Decision) -> int:
        options, results = _options_of(request, decision), _results_of(request)
        try:
            return self._turns.resume(decision.session_id, results, options=options, decision=decision)
        except InputError as error:
            if error.reason != "unknown_call":
                raise
            raise BusyError from error  # the turn was closed at the same moment

    def _send(self, session_id: str, request: ClientRequest, decision: Decision) -> int:
        sent = request.messages[: len(request.messages) - len(decision.brought)]
        is_asked = bool(sent) and (has_visible(sent[-1].text) or bool(sent[-1].images))
        last = sent[-1] if is_asked else unasked(decision.brought)
        history, asked = join_questions((*decision.context, *decision.imported), last)
        context = history[: len(decision.context)]
        if context and not self._has_room(session_id, request, (*decision.preamble, *context, asked)):
            context = ()
        preamble, imported = (*decision.preamble, *context), history[len(context) :]
        decision = replace(decision, preamble=preamble, imported=imported)
        options, wait_seconds = _options_of(request, decision), AFTERMATH_SECONDS if decision.stop_first else 0.0
        return self._turns.send(
            session_id,
            asked.text,
            message_id=f"user-{decision.once}" if decision.once else None,
            images=asked.images,
            options=options,
            wait_seconds=wait_seconds,
            decision=decision,
        )

    def _has_room(self, session_id: str, request: ClientRequest, messages: Iterable[ClientMessage]) -> bool:
        """Returns True if all that the program sends fits the model's window, word for word and without our memory."""
        name = request.model or self._access.own(session_id).model
        sent = tokens_beside(replace(request.options, preamble=tuple(messages)))
        return sent <= self._models.window_tokens(name) - _PROMPT_TOKENS

    def _response(self, session_id: str, turn: int, decision: Decision) -> Response:
        """Returns the response that has just started, or of an earlier try; `BusyError` if its server has just died."""
        asked, is_retry = decision.fingerprint and decision.fingerprint.asked, decision.kind == "retry"
        with self._access.stores.database.reading():
            row = self._access.stores.turns.get(session_id, turn)
            keys = self._response_keys(session_id, turn, decision.attempt if is_retry else row.attempt)
            response_key = next(each for each in reversed(keys) if asked in {None, each.asked})
            is_newest = response_key is keys[-1] and response_key.attempt == row.attempt
            log = self._access.log_of(row) if is_newest else None
            if log is None and is_newest and is_retry and row.status == "running":
                raise BusyError
            messages = messages_of(self._access.stores, response_key) if log is None else ()
        log = log or stored_log(turn, response_key.attempt, messages)
        response = response_id(session_id, turn, response_key.attempt, response_key.ordinal)
        created, matched = int(response_key.started_at.timestamp()), decision.matched
        read_completion_end = partial(self._end_of, response_key, matched)
        request_stop = partial(self._access.stores.turns.request_stop, session_id, turn)
        return Response(response, created, session_id, turn, matched, log, read_completion_end, request_stop)

    def _response_keys(self, session_id: str, turn: int, attempt: int) -> list[ResponseKey]:
        """Returns the responses of an attempt, oldest first."""
        started = self._fingerprints.of_attempt(session_id, turn, attempt)
        ends = [*((later.first_position, later.first_call) for later in started[1:]), (NO_END, NO_END)]
        keys = list[ResponseKey]()
        for number, (each, (position, call)) in enumerate(zip(started, ends, strict=False), 1):
            said, called = range(each.first_position, position), range(each.first_call, call)
            keys.append(ResponseKey(session_id, turn, attempt, number, each.asked, each.created_at, said, called))
        return keys

    def _end_of(self, response_key: ResponseKey, matched: Matched) -> CompletionEnd:
        """Returns how a response ended; the next response of the turn may have started meanwhile."""
        now = self._response_keys(response_key.session_id, response_key.turn, response_key.attempt)
        response_key = next((each for each in now if each.ordinal == response_key.ordinal), response_key)
        return read_end(self._access, response_key, matched)

    def find(self, name: str) -> FoundResponse:
        """Returns a response to a program of this owner's by its id; `NotFoundError` if there is none."""
        session_id, turn, attempt, ordinal = read_response_id(name) or ("", 0, 0, 0)
        self._access.own(session_id)
        keys = self._response_keys(session_id, turn, attempt)
        if not 0 < ordinal <= len(keys):
            raise NotFoundError(name)
        return found_response(self._access, keys, ordinal)


def _options_of(request: ClientRequest, decision: Decision) -> TurnOptions:
    """Returns the options of the turn; the session keeps its model if the request names none."""
    return TurnOptions(model=request.model or None, client=replace(request.options, preamble=decision.preamble))


def _results_of(request: ClientRequest) -> list[ClientMessage]:
    """Returns the newest results of the request, with the assistant's messages that call before and between them."""
    sent = request.messages[: newest_results(request.messages).stop]
    return [*takewhile(lambda each: each.calls or each.role == "tool", reversed(sent))][::-1]
