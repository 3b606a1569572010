"""Takes typed messages from the page's script, each once, and reports which were sent or refused.

The script stores a message until it is reported (`asset/outbox.js`) and repeats it meanwhile, since Streamlit may drop
a request: the first of two within milliseconds; and any request during a callback may interrupt the callback.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

import streamlit as st

from component import action, attaching, page_state, redraw
from component.bridge import delivery
from component.bridge.delivery import delivered

_HEARD: Final = "heard"
_TOLD: Final = 8  # the newest are enough: the script repeats messages without a report
_ID: Final = re.compile(r"[0-9a-f]{24}")


class _Sent(NamedTuple):
    """A message from the script; `session` is the one it was typed in, or a new one to be created."""

    id: str
    text: str
    session: str
    is_new: bool
    has_files: bool


@delivery.once
def take(sent: object) -> None:
    """Widget callback: sends the messages and runs the commands that are new.

    Args:
        sent: The script's messages; anything else is ignored.
    """
    heard: dict[str, str | None] = st.session_state.setdefault(_HEARD, {})
    for message in _messages(sent):
        if message.id not in heard:
            heard[message.id] = action.take(
                message.text, message.session, message_id=f"user-{message.id}", has_files=message.has_files
            )
        began = heard[message.id] if message.is_new else None
        if began and page_state.session_id() is None:
            page_state.open_session(began)
    redraw.changed_as_asked()


@st.fragment(key=redraw.HEARD)
@delivered
def draw_outbox() -> None:
    """Reports the results of the newest messages to the script, in an invisible element."""
    delivery.note_automatic()  # drawn along with other changes
    newest = list(st.session_state.get(_HEARD, {}).items())[-_TOLD:]
    taken = " ".join(key for key, session in newest if session is not None)
    refused = " ".join(key for key, session in newest if session is None)
    read = attaching.mark()
    served = redraw.served_count()
    st.html(f'<i class="heard" hidden data-taken="{taken}" data-refused="{refused}" data-served="{served}" {read}></i>')


def _messages(sent: object) -> Iterator[_Sent]:
    for one in sent if isinstance(sent, list) else ():
        match one:
            case {
                "id": str(key),
                "text": str(text),
                "session": str(session),
                "is_new": bool(is_new),
                "has_files": bool(has_files),
            }:
                if _ID.fullmatch(key) and session:
                    yield _Sent(key, text, session, is_new, has_files)
