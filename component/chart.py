"""Draws the chart of tokens sent against the full history."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from component.format import format_count
from component.word import Words
from graph.value.view import ChartPoint

HEIGHT_PIXELS = 280
_POINTS_WITH_DOTS = 40
_COUNT = "format(datum.value, datum.value < 10000 ? 'd' : ',d')"  # as `format_count` has it
_TEXT_COLOURS = {"light": "#5a6562", "dark": "#a6b1ad"}


def draw(words: Words, points: Sequence[ChartPoint], *, key: str) -> None:
    """Draws a line for the tokens sent, one for the full history, and a rule where a summary was first sent."""
    if not points:
        st.markdown(f":small[:gray[{words.chart_empty}]]")
        return
    place = st.empty()
    place.skeleton(height=HEIGHT_PIXELS)
    # Imported late: the import takes a second, and most runs of the script draw no chart.
    import altair as alt  # noqa: PLC0415

    rows = [
        {"turn": point.turn, "tokens": tokens, "told": format_count(tokens), "kind": kind}
        for point in points
        for kind, tokens in ((words.chart_sent, point.sent_tokens), (words.chart_full, point.full_tokens))
    ]
    kinds = [words.chart_sent, words.chart_full, words.chart_fold]
    is_short = len(points) <= _POINTS_WITH_DOTS
    colour = _TEXT_COLOURS[st.context.theme.type or "light"]
    turns = alt.X(
        "turn:Q",
        title=words.chart_turn,
        axis=alt.Axis(tickMinStep=1, format="d", grid=False, labelColor=colour, titleColor=colour),
        scale=alt.Scale(domain=[points[0].turn, max(points[-1].turn, points[0].turn + 1)], nice=False),
    )
    legend = alt.Legend(orient="top", symbolType="stroke", symbolSize=80, columnPadding=8, labelColor=colour)
    colour_of_kind = alt.Color("kind:N", title=None, sort=kinds, legend=legend)
    dashes = alt.Scale(range=[[1, 0], [4, 2], [1, 3]])
    dash_of_kind = alt.StrokeDash("kind:N", title=None, sort=kinds, scale=dashes, legend=legend)
    lines = (
        alt.Chart({"values": rows})
        .mark_line(point=is_short)
        .encode(
            x=turns,
            y=alt.Y(
                "tokens:Q",
                title=words.chart_tokens,
                axis=alt.Axis(labelExpr=_COUNT, labelColor=colour, titleColor=colour),
            ),
            color=colour_of_kind,
            strokeDash=dash_of_kind,
            tooltip=[
                alt.Tooltip("turn:Q", title=words.chart_turn),
                alt.Tooltip("kind:N", title=" "),
                alt.Tooltip("told:N", title=words.chart_tokens),
            ],
        )
    )
    folds = [{"turn": point.turn, "kind": words.chart_fold} for point in points if point.has_fold]
    rules = (
        alt.Chart({"values": folds})
        .mark_rule(strokeWidth=1 if is_short else 0.6)
        .encode(x=turns, color=colour_of_kind, strokeDash=dash_of_kind)
    )
    last = points[-1]
    sent, full = format_count(last.sent_tokens), format_count(last.full_tokens)
    place.altair_chart(
        (rules + lines if folds else lines).properties(height=HEIGHT_PIXELS, background="transparent"),
        key=key,
        alt=words.chart_alt.format(turn=last.turn, sent=sent, full=full),
    )
    st.markdown(f":small[:gray[{words.chart_note}]]")
