"""Says which file of a project's memory is damaged, and offers the newest snapshot."""

from __future__ import annotations

import streamlit as st

from component import project_form
from component.format import escape_label, format_bytes, zone_of
from component.project_part import Part
from graph.value.project_view import SnapshotView

_FORM = "damage"


def draw(part: Part) -> None:
    """Draws both."""
    said, snapshots = part.said, part.view.snapshots
    offer = said.damaged_offer if snapshots else said.damaged_no_snapshot
    file, _, place = part.view.damage.partition(": ")
    detail = f" ({escape_label(place)})" if place else ""
    st.warning(f"{said.damaged.format(file=escape_label(file))} {offer}{detail}", icon=":material/broken_image:")
    if snapshots:
        draw_restore(part, _FORM, snapshots[0], is_first=True)


def time_of(part: Part, snapshot: SnapshotView) -> str:
    """Returns when a snapshot was taken, in the user's zone."""
    return f"{snapshot.created_at.astimezone(zone_of(part.now.time_zone)):%Y-%m-%d %H:%M:%S}"


def draw_restore(part: Part, name: str, snapshot: SnapshotView, *, is_first: bool = False) -> None:
    """Draws the row of a snapshot with the button that asks before it returns to it."""
    said, time = part.said, time_of(part, snapshot)
    if part.is_open(f"restore_{name}"):
        question = said.restore_question.format(time=time)
        act = part.changing(part.projects.restore, snapshot.name)
        project_form.draw_question(part, question, said.restore, act)
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center", wrap=False):
        st.markdown(f"{time}  \n:small[:gray[{format_bytes(snapshot.bytes)}]]" if not is_first else time)
        st.button(
            said.restore,
            key=part.key(f"ask_{name}"),
            icon=":material/settings_backup_restore:",
            type="secondary" if is_first else "tertiary",
            on_click=part.opening(f"restore_{name}"),
        )
