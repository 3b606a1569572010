"""Redraws only the parts of the page changed by an action or an answer.

Parts that change often are fragments with keys. A callback, or a fragment that finds a change in its own run, has the
outdated ones run right behind its run.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import streamlit as st
from streamlit.errors import StreamlitAPIException

from component import background, dialog, page_state, reading, session_list
from component.bridge import delivery, service_provider
from graph.value.error import TurnfoldError
from graph.value.project_view import ProjectView

if TYPE_CHECKING:
    from graph.service import ChatService
    from graph.value.record import Record
    from graph.value.view import NextFold, PinView, SessionView, Transcript, TurnView

TURNS_BEFORE: Final = 6  # two blocks: the older one may be folded while the chat is in the newer one
TURNS_AFTER: Final = 12
_SLOTS, _DRAWN, _OLDER = "turn_places", "drawn_turns", "older_folds"


class Shown(NamedTuple):
    """The newest turns and the records that end among them.

    `past` are records before a reset, `pinned` message ids, `siblings` by turn the sessions that part there.
    """

    transcript: Transcript
    records: Sequence[Record]
    past: Sequence[Record]
    pinned: frozenset[str]
    siblings: Mapping[int, Sequence[str]]

    def turn(self, number: int) -> TurnView:
        return next(turn for turn in self.transcript.turns if turn.number == number)


def read(service: ChatService, identifier: str, last: int) -> Shown:
    transcript = reading.transcript(service, identifier, last)
    # A block is three turns, so these records reach back to the oldest turn. Never fewer than at the last drawing: an
    # older record that first shows up with a later turn would look like a new one.
    count = max(len(transcript.turns), TURNS_BEFORE + TURNS_AFTER) // 3 + 1
    records = reading.records(service, identifier, count)
    has_reset = any(turn >= transcript.turns[0].number for turn in transcript.reset_after)
    past = service.folds.past_records(identifier, last=count) if has_reset else ()
    pinned = frozenset(pinned.message_id for pinned in page_state.pins(service, identifier).messages)
    siblings = reading.once(service, identifier, "siblings", lambda: service.sessions.siblings(identifier), of="all")
    return Shown(transcript, records, past, pinned, siblings)


def key(number: int, part: str = "slot") -> str:
    return f"{part}_{number}"


def begin(shown: Shown, session: SessionView) -> range:
    """Reserves a fragment for each of the newest turns; returns their numbers. `shown` has them and older ones."""
    first = max(1, session.turn_count - TURNS_BEFORE + 1)
    slots = range(first, session.turn_count + TURNS_AFTER + 1)
    older = _ends_before(shown, first), shown.transcript.reset_after, _pinned_before(shown, first)
    st.session_state.update({_SLOTS: slots, _DRAWN: {}, _OLDER: older})
    return slots


def read_slots(service: ChatService, session: SessionView) -> Shown:
    return read(service, session.session_id, session.turn_count - st.session_state[_SLOTS].start + 1)


def has_slot(number: int) -> bool:
    return number in st.session_state.get(_SLOTS, ())


def note_drawn(session: SessionView, turn: TurnView, shown: Shown, *, has_words: bool) -> None:
    """Stores what a turn was drawn from, or its tail alone."""
    drawn, (words, tail) = st.session_state[_DRAWN], _look(session, turn, shown)
    drawn[turn.number] = words if has_words else drawn[turn.number][0], tail


def _changed_turns(service: ChatService, session: SessionView) -> list[str] | None:
    """Returns the outdated fragments of turns; None if the whole page is outdated. Raises `TurnfoldError`."""
    slots: range | None = st.session_state.get(_SLOTS)
    if slots is None or session.turn_count not in slots:
        return None
    shown = read_slots(service, session)
    folds, resets, pinned = st.session_state[_OLDER]
    older = shown.transcript.reset_after, _pinned_before(shown, slots.start)
    if older != (resets, pinned) or _ends_before(shown, slots.start) - folds:
        return None  # older turns changed, too
    drawn = {turn.number: (None, None) for turn in shown.transcript.turns} | st.session_state[_DRAWN]
    looks = {turn.number: _look(session, turn, shown) for turn in shown.transcript.turns}
    changed = {number: look[0] != drawn[number][0] for number, look in looks.items() if look != drawn[number]}
    return [key(number, "slot" if has_words else "tail") for number, has_words in changed.items()]


def _ends_before(shown: Shown, number: int) -> set[str]:
    return {record.id for record in (*shown.records, *shown.past) if record.turns and record.turns[-1] < number}


def _pinned_before(shown: Shown, number: int) -> frozenset[str]:
    turns = [turn for turn in shown.transcript.turns if turn.number >= number]
    return shown.pinned.difference(*((turn.user_message_id, turn.answer_message_id) for turn in turns))


def _look(session: SessionView, turn: TurnView, shown: Shown) -> tuple[Hashable, Hashable]:
    """Returns what the drawing of a turn depends on, and what that of its tail depends on besides.

    The next message changes the tail alone: the words, which may be long, aren't sent again.
    """
    problem = session.project_problem and str(session.project_problem)
    notices = (session.fold_failures, session.context_notice, session.unsent_messages, problem) if turn.is_last else ()
    retried = turn.is_last and turn.status == "failed"
    words = (turn.number, turn.attempt) if turn.status == "running" else replace(turn, is_last=retried)
    pinned = shown.pinned.intersection((turn.user_message_id, turn.answer_message_id))
    ending = ending_with(turn, (*shown.records, *shown.past))
    reset = turn.number in shown.transcript.reset_after and (shown.transcript.can_undo_reset, turn.is_last)
    drawn = words, notices if any(notices) else (), pinned, shown.siblings.get(turn.number)
    return drawn, (turn.is_last, ending, reset, session.strategy)


def ending_with(turn: TurnView, records: Sequence[Record]) -> tuple[Record, ...]:
    return tuple(record for record in records if record.turns and record.turns[-1] == turn.number)


COMPOSER: Final = "composer"
HEARD: Final = "heard"
PANEL: Final = "panel"
HEAD: Final = "head"
LACK: Final = "lack"
SESSIONS: Final = "sessions"
TITLE: Final = "title"
FIND: Final = "find"
WATCH: Final = "watch"
PROJECT: Final = "project"
_WHOLE, _CARDS, _ANSWERED = "whole_page", "cards", "answered"
CARDS_AT_ONCE: Final = 3


def need_page() -> None:
    """Requires the next drawing to be of the whole page; until `end_page` no part can be redrawn."""
    st.session_state.pop(_WHOLE, None)


def end_page() -> None:
    st.session_state[_WHOLE] = page_state.session_id()


def note(part: str, state: object) -> None:
    """Stores the state that a part was drawn from."""
    st.session_state[f"drawn_{part}"] = state


def _noted(part: str) -> Any:  # noqa: ANN401  # of each part another type
    return st.session_state.get(f"drawn_{part}")


def note_panel(
    records: Sequence[Record], following: NextFold, pins: PinView, session: SessionView, *, answered: int | None
) -> None:
    """Stores the state drawn in the panel; `answered` finished turns, None if it shows the head alone."""
    note(_CARDS, (cards(records, following), pins, background.last_change(session)))
    note(_ANSWERED, answered)
    note_head(following, session)


def note_head(following: NextFold, session: SessionView | None) -> None:
    note(HEAD, (following, session.fold_failures if session else 0))


def tab_title() -> str:
    title = _noted(TITLE)
    return f"{title} · Turnfold" if title else "Turnfold"


def places_of(session: SessionView) -> tuple[object, ...]:
    """Returns what the list of places found in a session is made of."""
    return session.session_id, session.turn_count, session.is_running


def changed() -> None:
    """Ends a widget callback: redraws outdated parts and the notices, or the whole page if necessary."""
    if _can_draw():
        parts = stale_parts()
        ask(parts if parts is None else [*parts, COMPOSER])


def turn_changed(number: int) -> None:
    """Ends a widget callback: redraws a turn and the notices; the whole page if the turn has no fragment."""
    if _can_draw():
        ask([key(number), COMPOSER] if has_slot(number) else None)


def page() -> None:
    if _can_draw():
        st.rerun()


def ask(parts: Sequence[str] | None) -> None:
    """Draws these parts, and what the page's script hears, right behind this run; the whole page if it's None."""
    if parts is None:
        st.rerun()
    if parts and not delivery.is_whole():
        try:
            delivery.draw_next([*dict.fromkeys(parts), HEARD])
        except StreamlitAPIException:
            st.rerun()


def stale_parts(*, keeps_order: bool = False) -> list[str] | None:
    """Returns the keys of outdated parts; None if the whole page has to be drawn.

    The session list keeps the order until a running answer is drawn. Redrawing the part that opened a dialog would lose
    typed text: such parts wait for the close.
    """
    identifier = page_state.session_id()
    if identifier is None or st.session_state.get(_WHOLE) != identifier or dialog.is_left():
        return None
    strategy = page_state.chosen(page_state.STRATEGY)
    try:
        service = service_provider.current()
        session = reading.session(service, identifier)
        turns = _changed_turns(service, session)
        if turns is None:
            return None
        parts = [*turns]
        following = page_state.next_fold(service, identifier, strategy)
        records = reading.records(service, identifier, CARDS_AT_ONCE)
        drawn = cards(records, following), page_state.pins(service, identifier), background.last_change(session)
        if _noted(_CARDS) != drawn or _is_project_changed(service):
            parts.append(PANEL)
        elif _noted(HEAD) != (following, session.fold_failures):
            parts += [HEAD, LACK] if _noted(_ANSWERED) is None else [PANEL]
        elif _noted(_ANSWERED) not in {None, session.turn_count - session.is_running}:
            parts.append(PANEL)
        if session_list.is_changed(service, keeps_order=keeps_order or session.is_running or bool(turns)):
            parts.append(SESSIONS)
        places = places_of(session) if page_state.is_finding() else _noted(FIND)
        states = {TITLE: session.title, COMPOSER: (session.can_stop, following.ready), FIND: places}
        parts += [part for part, state in states.items() if _noted(part) != state]
    except TurnfoldError:  # the whole page shows the error
        return None
    if dialog.has_form(dialog.PANEL):  # drawing the panel alone could lose typed text
        parts = [part for part in parts if part not in {PANEL, HEAD, LACK}]
    return [part for part in parts if part != SESSIONS] if dialog.is_open() else parts


def is_restless() -> bool:
    """Whether something is shown that changes unheard: a project's folder, or a turn whose server may die."""
    return isinstance(_noted(PROJECT), ProjectView) or session_list.has_marked()


def cards(records: Sequence[Record], following: NextFold) -> Sequence[tuple[Record, bool]]:
    """Returns the records drawn as cards, oldest first, and True for a compaction that no turn has used yet.

    Any other card stays as it is once a turn uses it.
    """
    replaced = [record for record in records if any(newer.covers(record) for newer in following.ready)]
    sent = [(record, False) for record in records if following.sent_turns is None and record not in replaced]
    ready = [(record, record.kind == "compaction") for record in following.ready]
    return [*sent, *ready][-max(CARDS_AT_ONCE, len(ready)) :]


def _is_project_changed(service: ChatService) -> bool:
    drawn: ProjectView | str | None = _noted(PROJECT)
    if drawn is None or isinstance(drawn, str):
        return drawn is not None
    return drawn != service.projects.get(drawn.root, language=st.session_state[page_state.LANGUAGE])


def _can_draw() -> bool:
    # In tests of the page every run draws the whole page, and an early press has no effect.
    return delivery.is_served() and not delivery.is_early()
