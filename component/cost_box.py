"""Draws what the model calls of a chat and of all chats cost, if the models have prices."""

from __future__ import annotations

import streamlit as st

from component.format import format_count, format_money
from component.page_state import PageState
from component.word import Words
from graph.value.view import CostView, Money


def draw(now: PageState, identifier: str) -> None:
    """Draws the amounts, line by line; nothing without prices."""
    cost, of_all = now.service.costs.of_session(identifier), now.service.costs.of_all()
    if cost is None or of_all is None:
        return
    said = now.words.cost
    st.subheader(said.title, anchor=False)
    with st.container(border=True, gap="xsmall", key="cost"):
        _draw_line(now.words, said.of_session, cost, cost.total)
        if cost.summaries.amount:
            st.markdown(said.of_summaries.format(amount=_amount(cost, cost.summaries)))
        _draw_line(now.words, said.of_all, of_all, of_all.total)
        if cost.total.is_estimate or of_all.total.is_estimate:
            st.markdown(f":small[:gray[{said.estimate}]]")


def _draw_line(words: Words, template: str, cost: CostView, money: Money) -> None:
    unpriced = f" {words.cost.unpriced.format(count=format_count(cost.unpriced_calls))}" if cost.unpriced_calls else ""
    st.markdown(template.format(amount=f"**{_amount(cost, money)}**{unpriced}"))


def _amount(cost: CostView, money: Money) -> str:
    return format_money(money.amount, cost.currency, is_estimate=money.is_estimate)
