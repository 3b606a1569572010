"""Draws the panel: summaries, chart, costs, savings, pins and the ledger."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import streamlit as st

from component import dialog, page_state, project_choice, reading, redraw, turn_buttons, widget
from component.bridge import delivery, service_provider
from component.format import format_count, format_money, format_percent, format_tokens
from component.page_state import PageState
from component.panel import card, input_tab, panel_head, record_dialog
from component.project import project_tab
from component.words.wording import describe_facts
from component.words.words import Words
from graph.value.view import FORECAST_TURNS, ChartPoint, CostView, KeptLine, Money, PinView, Savings, Statistics


def draw_pin_list(now: PageState, pins: PinView) -> None:
    if not pins.messages or now.session is None:
        return
    words = now.words
    if now.following.sent_turns is not None:
        widget.draw_note(words.steering.pins_unsent)
    elif unsent := sum(not pinned.is_sent for pinned in pins.messages):
        widget.draw_note(words.steering.pins_over.format(count=unsent))
    used, budget = format_count(pins.used_tokens), format_count(pins.budget_tokens)
    label = words.steering.pins.format(count=len(pins.messages), used=used, budget=budget)
    if box := widget.open_box(label, "pins", "keep"):
        with box:
            rows = [
                f"<li>{widget.turn_link(words, pinned.turn, words.input.turn.format(turn=pinned.turn))}"
                f'<span title="{html.escape(pinned.title)}">{html.escape(pinned.title)}</span>'
                f"<span>{words.steering.pin_tokens.format(tokens=format_count(pinned.tokens))}"
                f"{'' if pinned.is_sent else f' · {words.steering.pin_unsent}'}</span>"
                f"{turn_buttons.pin(words, pinned.message_id, is_pinned=True)}</li>"
                for pinned in pins.messages
            ]
            st.html(f'<ul class="pins">{"".join(rows)}</ul>')


_LEDGER = "ledger"


def draw_ledger(now: PageState) -> None:
    """Draws what is kept of the user's words in the open chat, with what strikes a line out or restores it."""
    if now.session is None:
        return
    identifier, labels = now.session.session_id, now.words.ledger
    view = reading.once(now.service, identifier, "ledger", lambda: now.service.folds.ledger(identifier))
    if not view.lines:
        return
    standing = [line for line in view.lines if line.state in ("sent", "no_room")]
    if outside := sum(line.state == "no_room" for line in standing):
        widget.draw_note(labels.over.format(count=outside))
    used, budget = format_count(view.used_tokens), format_count(view.budget_tokens)
    label = labels.title.format(count=len(standing), used=used, budget=budget)
    if box := widget.open_box(label, _LEDGER, "format_quote"):
        with box:
            widget.draw_note(labels.note)
            rows = "".join(_kept_row(now.words, now.session.session_id, line) for line in view.lines)
            st.html(f'<ul class="ledger">{rows}</ul>')


def strike(asked: Mapping[str, str]) -> Callable[[], None]:
    """Strikes a line out, or restores it, on a press of its button."""
    is_struck = asked["wanted"] == "true"

    def change() -> None:
        service_provider.current().folds.strike(asked["session"], asked["line"], is_struck=is_struck)

    st.session_state[_LEDGER] = True  # its label changes, with which the box would close
    page_state.attempt(change)
    return partial(redraw.ask, [redraw.PANEL])


def _kept_row(words: Words, identifier: str, line: KeptLine) -> str:
    labels, text = words.ledger, html.escape(line.text)
    is_out = line.state in ("struck", "taken_back")
    label = f"{labels.restore if is_out else labels.strike}: {line.text}"
    button = turn_buttons.markup(
        "strike", label, {"session": identifier, "line": line.id}, icon="undo" if is_out else "close", is_on=is_out
    )
    about = " · ".join(filter(None, (labels.kinds[line.kind], labels.states.get(line.state))))
    return (
        f'<li data-state="{line.state}"><p>{f"<del>{text}</del>" if is_out else text}</p>'
        f"<p><span>{about}</span>{widget.turn_link(words, line.turn, words.input.turn.format(turn=line.turn))}</p>"
        f'<div class="turn-buttons">{button}</div></li>'
    )


def draw_cost_box(now: PageState, identifier: str) -> None:
    cost, of_all = now.service.costs.of_session(identifier), now.service.costs.of_all()
    if cost is None or of_all is None:
        return
    labels = now.words.cost
    st.subheader(labels.title, anchor=False)
    with st.container(border=True, gap="xsmall", key="cost"):
        _draw_line(now.words, labels.of_session, cost, cost.total)
        if cost.summaries.amount:
            st.markdown(labels.of_summaries.format(amount=_amount(cost, cost.summaries)))
        _draw_line(now.words, labels.of_all, of_all, of_all.total)
        if cost.total.is_estimate or of_all.total.is_estimate:
            widget.draw_note(labels.estimate)


def _draw_line(words: Words, template: str, cost: CostView, money: Money) -> None:
    unpriced = f" {words.cost.unpriced.format(count=format_count(cost.unpriced_calls))}" if cost.unpriced_calls else ""
    st.markdown(template.format(amount=f"**{_amount(cost, money)}**{unpriced}"))


def _amount(cost: CostView, money: Money) -> str:
    return format_money(money.amount, cost.currency, is_estimate=money.is_estimate)


HEIGHT_PIXELS = 280
# Of more, rules and dots would run into each other.
_SHORT_TURNS, _DOTTED_TURNS = 30, 20
_TEXT_COLOURS = {"light": "#5a6562", "dark": "#a6b1ad"}


def draw_chart(words: Words, points: Sequence[ChartPoint]) -> None:
    """Draws lines for the tokens sent and for the full history, and a rule where a summary was first sent."""
    if not points:
        widget.draw_note(words.chart_empty)
        return
    rows = [
        {"turn": point.turn, "tokens": tokens, "kind": kind}
        for point in points
        for kind, tokens in ((words.chart_sent, point.sent_tokens), (words.chart_full, point.full_tokens))
    ]
    folds = [{"turn": point.turn, "kind": words.chart_fold} for point in points if point.has_fold]
    has_folds = bool(folds) and len(points) <= _SHORT_TURNS
    last, colour = points[-1], _TEXT_COLOURS[st.context.theme.type or "light"]
    text = {"labelColor": colour, "titleColor": colour}
    turn = {"field": "turn", "type": "quantitative", "title": words.chart_turn}
    tokens = {"field": "tokens", "type": "quantitative", "title": words.chart_tokens}
    legend = {"orient": "top", "symbolType": "stroke", "symbolSize": 80, "columnPadding": 8, "labelColor": colour}
    kinds = [words.chart_sent, words.chart_full, words.chart_fold][: 2 + has_folds]
    kind = {"field": "kind", "type": "nominal", "title": None, "sort": kinds, "legend": legend}
    axis = {"tickMinStep": 1, "format": "d", "grid": False, **text}
    domain = [points[0].turn, max(last.turn, points[0].turn + 1)]
    common = {
        "x": {**turn, "axis": axis, "scale": {"domain": domain, "nice": False}},
        "color": kind,
        "strokeDash": {**kind, "scale": {"range": [[1, 0], [4, 2], [1, 3]]}},
    }
    tooltip = [turn, {"field": "kind", "type": "nominal", "title": " "}, {**tokens, "format": ",d"}]
    lines = {
        "data": {"values": rows},
        "mark": {"type": "line", "point": len(points) <= _DOTTED_TURNS},
        "encoding": {**common, "y": {**tokens, "axis": {"format": ",d", **text}}, "tooltip": tooltip},
    }
    rules = {"data": {"values": folds}, "mark": "rule", "encoding": common}
    look = {"height": HEIGHT_PIXELS, "background": "transparent"}
    sent, full = format_count(last.sent_tokens), format_count(last.full_tokens)
    alt = words.chart_alt.format(turn=last.turn, sent=sent, full=full)
    st.vega_lite_chart({**look, "layer": [rules, lines][not has_folds :]}, key="chart", alt=alt)


def draw_savings_box(words: Words, savings: Savings, *, has_records: bool) -> None:
    """Draws what folding saved in all, or when it will have paid; what it's made of is behind the details."""
    net, money = savings.net_tokens, savings.money
    template = words.stat_net if net >= 0 else words.stat_net_more
    lines = [template.format(tokens=format_tokens(abs(net), is_usage=False))]
    if money is not None and money.net:
        told = words.cost.less if money.net >= 0 else words.cost.more
        lines.append(told.format(amount=format_money(abs(money.net), money.currency, is_estimate=True)))
    with st.container(border=True, gap="xsmall", key="savings"):
        is_paid = savings.is_paid_back or not savings.fold_tokens
        head = _paid(words, savings) if is_paid else _unpaid(words, savings, has_records=has_records)
        st.markdown(f"**{head}**" + (f" · {lines[1]}" if is_paid and lines[1:] else ""))
        if savings.has_example:
            widget.draw_note(words.prepared)
        with st.expander(words.details, key="savings_details", icon=":material/info:", type="compact"):
            lines += _savings_parts(words, savings)
            st.markdown("  \n".join(f":small[:gray[{line}]]" for line in lines))


def _paid(words: Words, savings: Savings) -> str:
    tokens, spent, full = savings.unsent_tokens, savings.fold_tokens, savings.full_tokens
    template = words.stat_less if spent else words.stat_less_free
    return template.format(
        percent=format_percent(tokens, full),
        tokens=format_tokens(tokens, is_usage=False),
        spent=format_tokens(spent, is_usage=savings.is_fold_usage),
        net=round(100 * (tokens - spent) / full) if full else 0,
    )


def _unpaid(words: Words, savings: Savings, *, has_records: bool) -> str:
    template = words.stat_never_paid if has_records else words.stat_none_made
    if savings.pays_from is not None:
        template = words.stat_unpaid
    spent = format_tokens(savings.fold_tokens, is_usage=savings.is_fold_usage)
    told = template.format(tokens=spent, turn=savings.pays_from, count=FORECAST_TURNS)
    if not savings.broken_off_count:
        return told
    return f"{told} · {words.stat_broken_off.format(count=savings.broken_off_count)}"


def _savings_parts(words: Words, savings: Savings) -> list[str]:
    money = savings.money
    unsent = words.stat_unsent.format(tokens=format_tokens(savings.unsent_tokens, is_usage=False))
    if savings.cached_tokens:
        unsent += words.stat_cached.format(tokens=format_tokens(savings.cached_tokens, is_usage=False))
    lines = [
        unsent,
        words.stat_fold_cost.format(tokens=format_tokens(savings.fold_tokens, is_usage=savings.is_fold_usage)),
        words.input.lost.format(tokens=format_tokens(savings.lost_tokens, is_usage=False)),
    ]
    if money is None or not money.net:
        return [*lines, words.stat_net_note]
    parts = (money.unsent, money.folds, money.lost)
    amounts = (format_money(amount, money.currency, is_estimate=True) for amount in parts)
    priced = [f"{line} · {amount}" for line, amount in zip(lines, amounts, strict=True)]
    return [*priced, words.stat_net_note, words.cost.saved_note]


ROWS_AT_ONCE = 30
_TABS, _OLDER = "panel_tabs", "older_records"
_WANTED, _SHOWN = "wanted_card", "shown_older"


def draw(now: PageState) -> None:
    """Draws the panel; `asset/panel.js` opens and closes it."""
    with st.container(key="panel"):
        st.html(widget.icon_button("close-panel", "close", now.words.close_panel))
        _draw(now)


def draw_opener(now: PageState) -> None:
    """Draws the button that opens the panel; hidden by the style sheet while it is open."""
    words, left = now.words, now.following.turns_left
    count = now.statistics.record_count if now.statistics else 0
    label = words.open_panel.format(count=count)
    if now.session is None:
        label = words.tab_summaries
    elif left and not count:
        label = words.open_panel_next if left == 1 else words.open_panel_first.format(count=left)
    with st.container(key="open_panel", width="content"):
        st.html(widget.icon_button("open-panel", "dock_to_left", label, label))


def show_card(record_id: str) -> None:
    """Widget callback: draws the panel with this record's card open."""
    st.session_state[_WANTED] = record_id
    redraw.ask([redraw.PANEL])


@delivery.fragment(key=redraw.PANEL)
def _draw(page: PageState) -> None:
    with widget.error_box(page.words):
        _draw_tabs(page_state.look_again(page))


def _draw_tabs(now: PageState) -> None:
    identifier = now.session.session_id if now.session else None
    if identifier and _WANTED in st.session_state:
        with widget.error_box(now.words):
            _open_card(now, identifier, st.session_state.pop(_WANTED))
    names = [now.words.tab_summaries, now.words.tab_statistics, now.words.input.tab]
    if project_choice.is_on(now.service):
        names.append(now.words.project.tab)
    tabs = st.tabs(names, key=_TABS, on_change="rerun")
    if now.session is not None:
        records = reading.records(now.service, now.session.session_id, redraw.CARDS_AT_ONCE)
        pins = page_state.pins(now.service, now.session.session_id)
        answered = now.session.turn_count - now.session.is_running
        redraw.note_panel(records, now.following, pins, now.session, answered=None if tabs[0].open else answered)
    if not any(tab.open for tab in tabs[3:]):
        dialog.leave_form(dialog.PANEL)
        redraw.note(redraw.PROJECT, None)
    for tab, draw_tab in zip(tabs, (_draw_history, _draw_statistics, input_tab.draw, project_tab.draw), strict=False):
        if tab.open:
            with tab, widget.error_box(now.words):
                draw_tab(now)


def _draw_history(now: PageState) -> None:
    following = now.following
    st.subheader(now.words.history, anchor=False)
    identifier = now.session.session_id if now.session else ""
    records = reading.records(now.service, identifier, redraw.CARDS_AT_ONCE) if identifier else ()
    with st.container(key="panel_change"):  # shown where the panel covers the message field and its line
        record_dialog.draw_undo(now, "panel")
    panel_head.draw(now, has_records=bool(records or following.ready))
    with st.container():
        if identifier:
            draw_pin_list(now, page_state.pins(now.service, identifier))
            draw_ledger(now)
    is_sent, cards = following.sent_turns is None, redraw.cards(records, following)
    for record, is_unused in reversed(cards):
        card.draw(now, record, can_restore=not is_unused)
    older_count = (now.statistics.record_count if now.statistics else 0) - len(cards)
    if older_count > 0:
        _draw_older(now, identifier, older_count, len(cards) - len(following.ready), is_sent=is_sent)
    if is_sent and any(record.kind == "compaction" for record in records):
        # Those that the newest one replaces; restoring one undoes every later one.
        first = 0 if any(is_unused for _, is_unused in cards) else 1
        earlier = now.service.folds.compactions(identifier)[first:]
        label = now.words.earlier_compactions.format(count=len(earlier))
        if earlier and (box := widget.open_box(label, "compactions", "compress")):
            with box:
                for record in earlier:
                    card.draw(now, record, is_active=False)


def _draw_older(now: PageState, identifier: str, count: int, cards: int, *, is_sent: bool) -> None:
    """Draws the records without a card as lines: the older ones, or all of them where none is sent."""
    words = now.words
    label = (words.older_records if is_sent else words.unsent_records).format(count=count)
    if box := widget.open_box(label, _OLDER, "history"):
        shown = min(count, st.session_state.get(_SHOWN, ROWS_AT_ONCE))
        with box:
            records = reading.records(now.service, identifier, cards + shown)
            for record in records[len(records) - cards - 1 :: -1]:
                card.draw_row(now, record, is_active=is_sent)
            if shown < count:
                more = words.more_records.format(count=min(ROWS_AT_ONCE, count - shown))
                widget.draw_more(more, "more_records", _SHOWN, shown + ROWS_AT_ONCE)


def _open_card(now: PageState, identifier: str, record_id: str) -> None:
    newest_first = [record.id for record in reversed(now.service.folds.records(identifier))]
    if record_id not in newest_first:
        return
    st.session_state[_TABS] = now.words.tab_summaries
    cards = max(0, redraw.CARDS_AT_ONCE - len(now.following.ready)) * (now.following.sent_turns is None)
    older = newest_first.index(record_id) - cards
    if older >= 0:
        st.session_state[_OLDER] = st.session_state[f"older_{record_id}"] = True
        st.session_state[_SHOWN] = max(older + 1, st.session_state.get(_SHOWN, ROWS_AT_ONCE))


def _draw_statistics(now: PageState) -> None:
    words = now.words
    st.subheader(words.statistics, anchor=False)
    sums = now.statistics
    if now.session is None or sums is None:
        widget.draw_note(words.no_records)
        return
    identifier = now.session.session_id
    past = now.service.folds.past_statistics(identifier) if now.following.is_reset else None
    if past is not None and not (past.record_count or past.unsent_tokens or past.fold_tokens):
        past = None
    if sums.record_count:
        with st.container(border=True, gap="xsmall"):
            _draw_sums(words, sums)
            if counts := now.service.folds.fact_counts(identifier):
                st.markdown(words.stat_facts.format(counts=describe_facts(words, counts)))
            if now.following.ready:
                widget.draw_note(words.fold_ready)
    else:
        widget.draw_note(words.no_records_since_reset if past else words.stat_nothing)
    has_savings = bool(sums.record_count or sums.unsent_tokens or sums.fold_tokens)
    if has_savings:
        savings = now.service.folds.savings(identifier, ready=now.following.ready)
        draw_savings_box(words, savings, has_records=bool(sums.record_count))
    if past is not None:
        with st.container(border=True, gap="xsmall", key="before_reset"):
            st.markdown(f"**{words.stat_past}**")
            if past.record_count:
                _draw_sums(words, past)
            st.markdown(words.stat_unsent.format(tokens=format_tokens(past.unsent_tokens, is_usage=False)))
            spent = format_tokens(past.fold_tokens, is_usage=past.is_fold_usage)
            st.markdown(words.stat_fold_cost.format(tokens=spent))
    draw_cost_box(now, identifier)
    if has_savings:
        st.subheader(words.chart_title, anchor=False)
        draw_chart(words, now.service.folds.chart(identifier))


def _draw_sums(words: Words, sums: Statistics) -> None:
    count = sums.record_count
    counted = words.stat_count_one if count == 1 else words.stat_count
    st.markdown(counted.format(count=count, turns=sums.folded_turn_count))
    original, summary = format_count(sums.original_chars), format_count(sums.summary_chars)
    st.markdown(words.stat_chars.format(original=original, summary=summary))
    template, saved = words.stat_saved if sums.saved_percent >= 0 else words.stat_grown, sums.saved_percent
    st.markdown(template.format(percent=abs(saved), length_percent=100 - saved))
