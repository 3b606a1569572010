"""Draws buttons of plain HTML, of which a page has hundreds; its script tells which was pressed (`asset/press.js`)."""

from __future__ import annotations

import html
from collections.abc import Mapping


def markup(
    press: str,
    label: str,
    about: Mapping[str, str],
    *,
    icon: str,
    hint: str = "",
    is_on: bool | None = None,
    has_text: bool = False,
) -> str:
    """Returns the button.

    Args:
        press: What the server is told that it is for.
        label: Its name.
        about: What else the server is told.
        icon: The class by which the style sheet gives it its icon.
        hint: What the mouse is told; the label by default.
        is_on: Whether it stands pressed; None for a button that doesn't stay so. The server is told the other state,
            the one that is wanted, so that a second press of the same drawing changes nothing.
        has_text: Whether it shows its label.
    """
    state = {} if is_on is None else {"aria-pressed": _flag(is_on), "data-wanted": _flag(not is_on)}
    told = {"data-press": press, **{f"data-{key}": value for key, value in about.items()}}
    named = {"type": "button", "class": f"press {icon}", "title": hint or label, "aria-label": label}
    attributes = " ".join(f'{key}="{html.escape(value)}"' for key, value in {**named, **state, **told}.items())
    return f"<button {attributes}>{html.escape(label) if has_text else ''}</button>"


def _flag(is_on: bool) -> str:  # noqa: FBT001  # the only thing that it's about
    return "true" if is_on else "false"
