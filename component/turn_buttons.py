"""Draws what can be done with the words of a turn, and does what was pressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import streamlit as st

from component import action, asset_file, copy_button, delivery, page_state, press_button, question_form, redraw
from component.delivery import delivered
from component.word import Words
from graph.value.view import Rating, TurnView

_RATINGS: Final[Mapping[str, Rating]] = {"up": 1, "down": -1}
_DONE: Final = "done_presses"
_KEY: Final = "heard_press"
_Press = Mapping[str, Any]


def listen() -> None:
    """Mounts the script that hears the presses; drawn before the buttons, so that none stands there unheard."""
    with st.container(key="listening"):  # taken out of the column by the style sheet
        _listen()


@st.fragment
@delivered
def _listen() -> None:
    delivery.note_automatic()
    heard = st.components.v2.component("turnfold_press", js=asset_file.read("press.js"))
    heard(key=_KEY, data={"heard": st.session_state.get(_DONE, 0.0)}, on_pressed_change=_press)


def _press() -> None:
    press(st.session_state[_KEY]["pressed"])


def draw_question(words: Words, identifier: str, turn: TurnView, *, is_pinned: bool) -> None:
    """Draws the buttons of a question; the style sheet puts them beside it and below it."""
    about = {"session": identifier, "turn": str(turn.number)}
    parts = [press_button.markup("edit", words.sessions.edit, about, icon="edit")]
    if turn.user_message_id and turn.user_text:
        parts.append(pin(words, turn.user_message_id, is_pinned=is_pinned))
    _draw(parts)


def draw_answer(words: Words, identifier: str, turn: TurnView, *, is_pinned: bool) -> None:
    """Draws the buttons of an answer; those of the last turn leave it to another button to answer again."""
    said, about = words.sessions, {"session": identifier, "turn": str(turn.number)}
    parts: list[str] = []
    if turn.answer_text:
        parts.append(copy_button.markup(words.copy, turn.answer_text))
        if turn.answer_message_id:
            parts.append(pin(words, turn.answer_message_id, is_pinned=is_pinned))
        for name, label, hint in (("up", said.good, said.not_good), ("down", said.bad, said.not_bad)):
            is_on = turn.rating == _RATINGS[name]
            parts.append(
                press_button.markup(
                    "rate",
                    label,
                    {**about, "attempt": str(turn.attempt), "thumb": name},
                    icon=f"thumb-{name}",
                    hint=hint if is_on else label,
                    is_on=is_on,
                )
            )
    if not turn.is_last:
        parts.append(press_button.markup("branch", said.regenerate, about, icon="branch", has_text=True))
    _draw(parts)


def pin(words: Words, message_id: str, *, is_pinned: bool) -> str:
    """Returns the button that pins a message or unpins it."""
    said = words.steering
    hint = said.unpin if is_pinned else said.pin_hint
    return press_button.markup("pin", said.pin, {"message": message_id}, icon="pin", hint=hint, is_on=is_pinned)


def _draw(parts: list[str]) -> None:
    if parts:
        st.html(f'<div class="turn-buttons">{"".join(parts)}</div>', width="content")


def press(asked: Sequence[_Press]) -> None:
    """Does what the buttons are for that the page's script tells of, but for those that were done before.

    Args:
        asked: The presses of a moment, oldest first; each has the time `at` which it was made.
    """
    if delivery.is_early():
        return
    done: float = st.session_state.get(_DONE, 0.0)
    fresh = [one for one in asked if float(one["at"]) > done]
    # First: what opens a branch ends the callback.
    st.session_state[_DONE] = max([done, *(float(one["at"]) for one in fresh)])
    redraws = [_ACTS[one["press"]](one) for one in fresh]
    if redraws:
        (redraws[0] if len(redraws) == 1 else redraw.page)()


def _pin(asked: _Press) -> Callable[[], None]:
    action.pin_message(asked["message"], is_pinned=asked["wanted"] == "true")
    return redraw.changed_as_asked


def _rate(asked: _Press) -> Callable[[], None]:
    rating = _RATINGS[asked["thumb"]] if asked["wanted"] == "true" else 0
    turn = int(asked["turn"])
    action.rate(asked["session"], turn, rating, attempt=int(asked["attempt"]))
    return partial(redraw.turn_as_asked, turn)


def _edit(asked: _Press) -> Callable[[], None]:
    turn = int(asked["turn"])
    is_alone = question_form.open_at(asked["session"], turn)
    return partial(redraw.turn_as_asked, turn) if is_alone else redraw.page


def _branch(asked: _Press) -> Callable[[], None]:
    # The second press of a double one is for the chat that the first has left.
    if asked["session"] == page_state.session_id():
        action.regenerate_in_branch(asked["session"], int(asked["turn"]))
    return redraw.changed_as_asked


_ACTS: Final[Mapping[str, Callable[[_Press], Callable[[], None]]]] = {
    "pin": _pin,
    "rate": _rate,
    "edit": _edit,
    "branch": _branch,
}
