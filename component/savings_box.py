"""Draws what folding has saved, and what it cost: what is an estimate is marked, what was reported isn't."""

from __future__ import annotations

import streamlit as st

from component.format import format_money, format_tokens
from component.word import Words
from graph.value.input_view import Savings


def draw(words: Words, savings: Savings) -> None:
    """Draws the sum, line by line; each with its money if all models have a price."""
    unsent, lost, net = (
        format_tokens(tokens, is_usage=False)
        for tokens in (savings.unsent_tokens, savings.lost_tokens, savings.net_tokens)
    )
    cost = format_tokens(savings.fold_tokens, is_usage=savings.is_fold_usage)
    lines = [
        words.stat_unsent.format(tokens=unsent),
        words.stat_fold_cost.format(tokens=cost),
        words.input.lost.format(tokens=lost),
        f"**{words.stat_net.format(tokens=net)}**",
    ]
    money = savings.money
    if money is not None:
        amounts = (money.unsent, money.folds, money.lost, money.net)
        shown = (format_money(amount, money.currency, is_estimate=True) for amount in amounts)
        lines = [f"{line} · {amount}" for line, amount in zip(lines, shown, strict=True)]
    with st.container(border=True, gap="xsmall"):
        for line in lines:
            st.markdown(line)
        st.markdown(f":small[:gray[{words.stat_net_note}]]")
        if money is not None:
            st.markdown(f":small[:gray[{words.cost.saved_note}]]")
