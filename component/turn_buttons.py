"""The buttons beside a turn, the form for editing the question, and the handlers of presses."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import tzinfo
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import streamlit as st

from component import action, dialog, page_state, redraw, widget
from component.bridge import delivery
from component.words.wording import describe_attempt
from component.words.words import Words
from graph.value.view import TurnView

_OPEN: Final = "edited_question"


def is_open(identifier: str, turn: int, press: str = "edit") -> bool:
    return bool(st.session_state.get(_OPEN) == (identifier, turn, press))


def draw_form(words: Words, identifier: str, turn: TurnView, press: str = "edit") -> None:
    """Draws the form that edits a turn's question or answer; it stays open if that is refused."""
    labels, is_answer = words.sessions, press == "edit_answer"
    key = f"{'edited_answer' if is_answer else 'edited'}_{identifier}_{turn.number}"
    question = "edit_question", labels.question, turn.user_text, labels.ask_in_branch
    answer = "edit_answer", labels.edit_answer, turn.answer_text, words.save
    name, label, text, save = answer if is_answer else question
    note = f":material/alt_route: {labels.edit_answer_branch if is_answer else labels.edit_note}"
    with st.form(name):
        st.text_area(label, value=text, key=key, height="content", label_visibility="collapsed")
        widget.draw_note(labels.edit_answer_note if is_answer and turn.is_last else note)
        about = identifier, turn.number, key, press
        dialog.draw_choice(save, _edit, *about, cancel=words.cancel, on_cancel=_close, key="edit_{}")


def _edit(identifier: str, turn: int, key: str, press: str) -> None:
    text, is_answer = str(st.session_state[key]), press == "edit_answer"
    action.edit(identifier, turn, text, is_answer=is_answer, on_done=_close)


def _close() -> None:
    st.session_state.pop(_OPEN, None)


def markup(
    press: str,
    label: str,
    about: Mapping[str, str],
    *,
    icon: str,
    hint: str = "",
    is_on: bool | None = None,
    is_off: bool = False,
    text: str = "",
) -> str:
    """Returns a button's HTML. `press` is a key of the acts, `about` its arguments; `is_on` is None for a plain button.

    The press of a toggle sends the opposite state, so that a second press changes nothing.
    """
    state = {} if is_on is None else {"aria-pressed": str(is_on).lower(), "data-wanted": str(not is_on).lower()}
    data = {"data-press": press, **{f"data-{key}": value for key, value in about.items()}}
    off = {"disabled": ""} if is_off else {}
    return widget.icon_button(
        f"press {press}", icon, label, text, **{"title": hint or label, "aria-label": label}, **state, **data, **off
    )


_DONE: Final = "done_presses"
_Press = Mapping[str, Any]
# Each returns what redraws the page.
Acts = Mapping[str, Callable[[_Press], Callable[[], None]]]


def pressed_at() -> float:
    """Returns the browser's time of the newest press that was heard."""
    return float(st.session_state.get(_DONE, 0.0))


def _pager(
    press: str, labels: tuple[str, str], places: Sequence[str], at: str, turn: int, identifier: str
) -> list[str]:
    """Returns the buttons that go through versions of a question or an answer, ‹ 1/2 ›."""
    index = places.index(at)

    def step(to: int, label: str, icon: str) -> str:
        is_off = not 0 <= to < len(places)
        about = {"session": identifier, "turn": str(turn), "to": at if is_off else places[to]}
        return markup(press, label, about, icon=icon, is_off=is_off)

    place = f"<span>{index + 1}/{len(places)}</span>"
    return [step(index - 1, labels[0], "chevron_left"), place, step(index + 1, labels[1], "chevron_right")]


def draw_question(words: Words, identifier: str, turn: TurnView, *, is_pinned: bool) -> None:
    about = {"session": identifier, "turn": str(turn.number)}
    parts = [markup("edit", words.sessions.edit, about, icon="edit")]
    if turn.user_message_id and turn.user_text:
        parts.append(pin(words, turn.user_message_id, is_pinned=is_pinned))
    draw(parts)


def draw_siblings(words: Words, identifier: str, turn: int, siblings: Sequence[str]) -> None:
    """Draws what leads from a question to those in its place in other branches; this session is one of them."""
    labels = words.sessions.previous_question, words.sessions.next_question
    st.html(f'<div class="siblings">{"".join(_pager("sibling", labels, siblings, identifier, turn, identifier))}</div>')


def answer(
    words: Words, identifier: str, turn: TurnView, zone: tzinfo, *, is_pinned: bool, is_aside: bool
) -> list[str]:
    """Returns the buttons of an answer; one `is_aside` that another attempt gave than the one that counts."""
    labels, about = words.sessions, {"session": identifier, "turn": str(turn.number)}
    parts: list[str] = []
    if turn.attempts:  # first: the buttons behind it differ between the versions, and it stays under the pointer
        steps, places = (labels.previous_answer, labels.next_answer), [str(attempt) for attempt in turn.attempts]
        parts += _pager("version", steps, places, str(turn.attempt), turn.number, identifier)
    if turn.answer_text:
        parts.append(widget.copy_button(words.copy, turn.answer_text))
    is_kept = bool(turn.answer_text and turn.answer_message_id and not is_aside)
    if is_kept:
        parts.append(markup("edit_answer", labels.edit_answer, about, icon="edit"))
    if is_kept and is_pinned:
        parts.append(pin(words, turn.answer_message_id, is_pinned=True))
    if is_aside:
        about, label = {**about, "to": str(turn.attempt)}, labels.use_answer
        parts.append(markup("choose", label, about, icon="check", hint=labels.use_answer_hint, text=label))
    elif not turn.is_last:
        parts.append(markup("branch", labels.regenerate, about, icon="alt_route", text=words.regenerate))
    if turn.status != "asking":
        pins = (
            pin(words, turn.answer_message_id, is_pinned=False, text=words.steering.pin)
            if is_kept and not is_pinned
            else ""
        )
        parts.append(_menu(words, pins, describe_attempt(words, turn, zone)))
    return parts


def _menu(words: Words, button: str, told: str) -> str:
    """Returns the menu of an answer: a button, and what is told of it."""
    if not (button or told):
        return ""
    label, about = f'title="{words.answer_menu}" aria-label="{words.answer_menu}"', f"<p>{told}</p>" if told else ""
    opener = f'<summary data-icon="more_horiz" {label}></summary>'
    return f'<details class="about" name="about">{opener}<div>{button}{about}</div></details>'


def pin(words: Words, message_id: str, *, is_pinned: bool, text: str = "", about: str = "") -> str:
    """Returns the button that pins a message; with `text` on it, in a menu or a list of what is pinned with it."""
    labels = words.steering
    hint = words.sessions.unpin if is_pinned else labels.pin_hint
    label = f"{text}: {about}" if about else labels.pin
    return markup("pin", label, {"message": message_id}, icon="keep", hint=hint, is_on=is_pinned, text=text)


def draw(buttons: Sequence[str], place: str = "") -> None:
    if buttons:
        st.html(f'<div class="turn-buttons {place}">{"".join(buttons)}</div>', width="content")


def press(asked: Sequence[_Press], others: Acts = MappingProxyType({})) -> None:
    """Runs the actions of presses reported by the page's script, oldest first, except those already done."""
    if delivery.is_early():
        return
    done = pressed_at()
    fresh = [one for one in asked if float(one["at"]) > done]
    # Set before the actions: one that opens a branch ends the callback.
    st.session_state[_DONE] = max([done, *(float(one["at"]) for one in fresh)])
    redraws = [others.get(one["press"], _act)(one) for one in fresh]
    (redraws[0] if len(redraws) == 1 else redraw.page if redraws else redraw.changed)()


def _act(asked: _Press) -> Callable[[], None]:
    identifier, turn = asked.get("session", ""), int(asked.get("turn", 0))
    match asked["press"]:
        case "pin":
            action.pin_message(asked["message"], is_pinned=asked["wanted"] == "true")
        case "edit" | "edit_answer":
            is_alone = _OPEN not in st.session_state
            st.session_state[_OPEN] = (identifier, turn, asked["press"])
            return partial(redraw.turn_changed, turn) if is_alone else redraw.page
        # The second press of a double click is for the chat left by the first.
        case "branch" if identifier == page_state.session_id():
            action.regenerate_in_branch(identifier, turn)
        case "version":
            page_state.show_attempt(identifier, turn, int(asked["to"]))
            return partial(redraw.turn_changed, turn)
        case "choose":
            action.choose_attempt(identifier, turn, int(asked["to"]))
            return redraw.changed if redraw.has_slot(turn) else redraw.page
        case "sibling":
            page_state.open_session(asked["to"], turn)
            return redraw.page
    return redraw.changed
