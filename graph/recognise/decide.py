"""Decides which session a client's request continues, or that it needs none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from graph.recognise.client_chain import FingerprintRow, Link, OpenFingerprint, RequestChain, newest_results, squeezed
from graph.recognise.client_turns import CALL_ID, newest_ids
from graph.recognise.match import Case, Match, find_match, own_context, stands_before
from graph.value.client import ClientMessage, Matched

# How long a repeated request gets the response that its first try started.
RETRIED_FOR: Final = timedelta(minutes=10)
_MOST_ASKED: Final = 8
_LATER_TURNS: Final = 16

DecisionKind = Literal["aside", "retry", "append", "resume", "regenerate", "fork", "new"]


@dataclass(frozen=True)
class Decision:
    """Interpretation of a request.

    Attributes:
        kind: "aside" is answered without a session; "retry" gets the response of its first try; "append" is a session's
            next turn, "resume" continues its waiting one, "regenerate" is a new attempt of its last one.
        matched: How the session was found.
        session_id: For "fork" its source; "" for "aside" and "new".
        after_turn: For "fork": the last turn taken from the source session; 0 for none.
        turn: For "retry": that of the response. For "append" and "regenerate": the last one when this was decided.
        imported: Messages to be archived before the question, as turns; those before a user's end the waiting turn.
        brought: The client's calls and their results, behind the question, if no turn waits for them.
        preamble: Messages before and between the known ones: the client's own context.
        context: Messages between the newest known one and those `imported`: sent with the question, archived only if
            too long.
        told: What the server itself put in front of the request's messages: what a named response answered and said.
        stop_first: Stops the session's running turn first, as the client no longer listens to it.
        group: The chat group that the session has from now on, "" for its own or none.
        once: For "fork" and "new" with an Idempotency-Key: a name that all tries of the same moment share.
        is_own: False if another person may have begun the session: of it is sent what stands in the request alone.
        fingerprint: Fingerprint that the turn is started with; for "retry", the one of the first try. None for "aside".
    """

    kind: DecisionKind
    matched: Matched
    session_id: str = ""
    after_turn: int = 0
    turn: int = 0
    attempt: int = 0
    imported: tuple[ClientMessage, ...] = ()
    brought: tuple[ClientMessage, ...] = ()
    preamble: tuple[ClientMessage, ...] = ()
    context: tuple[ClientMessage, ...] = ()
    told: tuple[ClientMessage, ...] = ()
    stop_first: bool = False
    group: str = ""
    once: str = ""
    fingerprint: OpenFingerprint | None = None
    is_own: bool = True


def decide(case: Case, *, now: datetime) -> Decision:
    """Interprets a request that isn't a side request.

    It goes on with the chat that an id names, or whose turns all stand in its history; by likeness only with one of the
    same person. Behind an earlier turn, or while another question is answered, it is a fork. All else is new.
    """
    return _tried_before(case, now) or _with_results(case) or _by_history(case)


def _by_history(case: Case) -> Decision:
    if (decision := _asked_before(case)) is not None:
        return decision
    match = find_match(case)
    return _unknown(case, case.messages[:-1]) if match is None else _at(case, match)


def _tried_before(case: Case, now: datetime) -> Decision | None:
    """Finds the first try of a request: by its Idempotency-Key, or if the client library signals a retry."""
    fingerprint = case.chain.fingerprint
    if fingerprint.idempotency:
        rows = case.find("idempotency", [fingerprint.idempotency])
    else:
        asked = case.find("asked", [fingerprint.asked]) if case.request.is_retry else []
        rows = [row for row in asked if row.frame == fingerprint.frame and row.is_last]
    row = next((row for row in rows if row.is_live and now - row.created_at <= RETRIED_FOR), None)
    if row is None:
        return None
    fingerprint = replace(fingerprint, whole=row.whole)
    if row.status in {"failed", "stopped"}:
        # There is no complete answer to repeat. A request that answers calls may still resume its turn.
        is_regenerated = row.is_last and not case.chain.answered
        return Decision("regenerate", "retry", row.session_id, fingerprint=fingerprint) if is_regenerated else None
    return Decision("retry", "retry", row.session_id, turn=row.turn, attempt=row.attempt, fingerprint=fingerprint)


def _with_results(case: Case) -> Decision | None:
    """Decides where the newest results go; None without any, or if the user speaks behind what no turn waits for."""
    places = newest_results(case.messages)
    if not places:
        return None
    first = places.start - bool(places.start and case.messages[places.start - 1].calls)
    users = (link for link in reversed(case.chain.links) if link.role == "user" and link.at < places.start)
    question = next(users, None)
    answered = {case.messages[at].call_id for at in places}
    found = _waiting(case, answered, answered | {call.id for call in case.messages[first].calls}, question)
    is_trailing = places.stop == len(case.messages)
    if found is None:
        return _from_elsewhere(case, question) if is_trailing else None
    if question:
        last, _ = case.known.last(found.session_id)
        own = own_context(_up_to(case, question), found.session_id, last, question.at + 1)
        found = replace(found, preamble=own)
    return found if is_trailing else replace(found, kind="append", imported=case.messages[first:-1])


def _waiting(case: Case, answered: set[str], named: set[str], question: Link | None) -> Decision | None:
    """Goes on with the session that waits for the results of the answered calls.

    An id that we gave leads to its chat. One of the model's own counts where the chat is known otherwise.
    """
    scope, key = case.chain.fingerprint.scope, case.chain.fingerprint.key
    by_call = case.find("answer", [key.call(scope, name) for name in named if CALL_ID.fullmatch(name)])
    by_question = case.find("asked", [question.chain]) if question else []
    rows = [row for row in (*by_call, *filter(case.is_same_person, by_question)) if row.is_last]
    for session_id in dict.fromkeys(filter(None, (case.request.session, *(row.session_id for row in rows)))):
        if answered & newest_ids(case.known.open_turn(session_id)):
            standing = {row.session_id for row in by_question if question and row.whole == question.exact}
            fingerprint = _fingerprint(case, stands=session_id in standing)
            return Decision("resume", _matched(case, rows), session_id, fingerprint=fingerprint)
    return None


def _from_elsewhere(case: Case, question: Link | None) -> Decision:
    """Takes results that no turn waits for, with their calls, into the turn of the question before them."""
    decision = _asked_before(case) or (_by_history(_up_to(case, question)) if question else _unknown(case, ()))
    stands = decision.fingerprint is not None and decision.fingerprint.whole is not None
    brought = case.messages[question.at + 1 if question else 0 :]
    return replace(decision, brought=brought, fingerprint=_fingerprint(case, stands=stands))


def _up_to(case: Case, question: Link) -> Case:
    """Returns the case as it was when the question was asked."""
    asked = replace(case.chain.fingerprint, asked=question.chain, state=question.chain, whole=question.exact)
    links = tuple(link for link in case.chain.links if link.at <= question.at)
    chain = RequestChain(links, (), asked, case.chain.group)
    return replace(case, request=replace(case.request, messages=case.messages[: question.at + 1]), chain=chain)


def _fingerprint(case: Case, *, stands: bool) -> OpenFingerprint:
    """Returns the fingerprint of a turn; `stands` if all turns before it stand in the request."""
    return case.chain.fingerprint if stands else replace(case.chain.fingerprint, whole=None)


def _asked_before(case: Case) -> Decision | None:
    """Decides on a request that is there already; a question without history is the same only in the client's chat."""
    has_history, is_named = bool(case.history or case.chain.answered), bool(case.request.session)
    if is_named and not has_history and case.previous is None:
        return None
    rows = case.find("asked", [case.chain.fingerprint.asked])
    rows = [row for row in rows if has_history or case.is_pinned(row)][:_MOST_ASKED]
    rows = [row for row in rows if _may_be_asked(case, row)]

    def rank(row: FingerprintRow) -> tuple[bool, ...]:
        return case.is_same_person(row), case.has_images_of(row), case.is_in_group(row), row.is_last

    if (row := max(rows, key=rank, default=None)) is None:
        return None
    # Another chat with the same history may end before the question: each has its own session.
    ends, others = case.find("chain", [link.chain for link in case.history[-1:]]), {row.session_id for row in rows}
    ends = [end for end in ends if end.is_live and end.is_last and end.session_id not in others]
    his = find_match(case) if case.names_someone and not case.is_same_person(row) else None
    is_his = his is not None and case.is_same_person(his.row)
    if is_his or any(case.is_in_group(end) >= case.is_in_group(row) for end in ends):
        return None
    stands = case.stands_in(row, case.chain.fingerprint.whole or b"") or stands_before(case, row)
    is_one = case.is_same_person(row) or (len({row.session_id for row in rows}) == 1 and not case.differs_in(row, 0))
    # Several models may answer in one chat, at once or one soon after the other: none replaces another's answer.
    is_same_model = case.request.model in {"", row.model or case.default_model}
    is_over = row.status == "failed" or (row.status != "running" and is_same_model)
    if is_one and row.is_last and is_over and case.has_images_of(row):
        decision = Decision("regenerate", _matched(case, [row]), row.session_id, is_own=case.is_same_person(row))
        return replace(decision, fingerprint=_fingerprint(case, stands=stands))
    # The messages in front of the question that were asked with it, as one.
    turns = case.known.turns(row.session_id, row.turn, row.turn) if case.unanswered else ()
    behind = [link for link in case.unanswered if any(squeezed(link.text) in turn.question for turn in turns)]
    joined = tuple(case.messages[link.at] for link in behind)
    own = own_context(case, row.session_id, row.turn, len(case.messages))
    return _fork(case, Match(row, row.turn, -1, own, stands=stands), row.turn - 1, imported=joined)


def _may_be_asked(case: Case, row: FingerprintRow) -> bool:
    """Whether a turn with the request's words is of its chat: of the same person, or all turns before it stand."""
    if case.stands_in(row, case.chain.fingerprint.whole or b""):
        return True
    if case.is_same_person(row):
        return not case.is_told_otherwise(row)
    return not case.chain.answered and stands_before(case, row)


def _at(case: Case, match: Match) -> Decision:
    """Decides by the end of the history: at the newest turn known to the client, or before it."""
    row, rest = match.row, case.messages[match.index + 1 : -1]
    known = case.known.turns(row.session_id, match.turn, match.turn) if rest and rest[0].role != "user" else ()
    next_role = next((link.role for link in case.chain.links if link.at > match.index), "user")
    ended = {"failed", "stopped"} | ({"finished"} if next_role == "assistant" else set())
    if match.is_replaced or any(turn.status in ended for turn in known):
        # The turn is told again: with another answer, or with results that came too late.
        users = (link.at for link in reversed(case.chain.links) if link.role == "user" and link.at <= match.index)
        return _fork(case, match, match.turn - 1, imported=case.messages[next(users, 0) : -1])
    if all(link.at <= match.index for link in case.chain.links[:-1]):
        rest = ()  # only tool messages of known turns
    # A question that was left with its calls stands nowhere else, and is no context that comes with each request.
    left = [link.at for link in case.unanswered]
    is_last = row.is_last and row.turn == match.turn
    if is_fork := not is_last and _has_gone_on(case, match):
        has_own = case.known.seen(row.session_id, match.turn)[1]  # a program that moves files behind its history
        left += [match.index + 1] if not has_own else [each.links[0].at for each in case.exchanges if each.is_joined]
    split = min((at for at in left if at > match.index), default=len(case.messages)) - match.index - 1
    behind: dict[str, Any] = {"context": rest[:split], "imported": rest[split:]}
    if is_fork:
        return _fork(case, match, match.turn, **behind)
    if any(turn.status == "requires_action" for turn in known):
        behind = {"imported": rest}
    matched: Matched = "tail" if match.is_tail and not case.request.session else _matched(case, [row])
    decision = Decision(
        "append", matched, row.session_id, preamble=match.preamble, stop_first=match.is_running, **behind
    )
    group, fingerprint = case.chain.group if match.stands else "", _fingerprint(case, stands=match.stands and is_last)
    return replace(decision, group=group, fingerprint=fingerprint, is_own=case.is_same_person(row))


def _has_gone_on(case: Case, match: Match) -> bool:
    """Whether the session has turns behind the match that the request would have to have.

    Those without an answer needn't stand in it, nor those that its client never saw: unless they may be another's, or
    are told again.
    """
    later = case.known.turns(match.row.session_id, match.turn + 1, match.turn + _LATER_TURNS)
    if len(later) == _LATER_TURNS or not case.is_same_person(match.row) or not match.row.is_live:
        return bool(later)
    return any(turn.status == "running" or (turn.status == "finished" and not turn.is_elsewhere) for turn in later)


def _unknown(case: Case, history: tuple[ClientMessage, ...]) -> Decision:
    """Begins a session, or goes on with the one that the request names: in a fork while it answers another question."""
    session_id, group = case.request.session, case.chain.group
    if not session_id:
        return Decision("new", "new", imported=history, group=group, fingerprint=case.chain.fingerprint)
    last, is_running = case.known.last(session_id)
    fingerprint = _fingerprint(case, stands=last == 0)
    decision = Decision("append", "header", session_id, fingerprint=fingerprint)
    decision = replace(decision, context=history) if last else replace(decision, imported=history)
    return replace(decision, kind="fork", matched="fork", after_turn=last - 1) if is_running else decision


def _fork(case: Case, match: Match, after_turn: int, **behind: tuple[ClientMessage, ...]) -> Decision:
    """Decides for a session with the turns up to `after_turn`; `behind` is what it has of the rest."""
    group = case.chain.group or (match.row.group if case.is_same_person(match.row) else "")
    fields: dict[str, Any] = {"group": group, "fingerprint": _fingerprint(case, stands=match.stands), **behind}
    return Decision("fork", "fork", match.row.session_id, after_turn, preamble=match.preamble, **fields)


def _matched(case: Case, rows: Iterable[FingerprintRow]) -> Matched:
    if case.request.session:
        return "header"
    return "hint" if any(case.is_pinned(row) for row in rows) else "history"
