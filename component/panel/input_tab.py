"""Draws the panel's input tab: the blocks sent to the model in a turn, their sizes, and the request."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final

import streamlit as st

from component import widget
from component.format import count_lines, escape_label, format_count, format_percent, format_tokens, format_turns
from component.page_state import PageState
from component.words.part import InputWords
from component.words.words import Words
from graph.value.view import CallInput, InputBlock, SentRequest
from prompt.system.framing import VERBATIM_NOTE

KINDS: Final = (
    "system", "own", "layers", "records", "pins", "ledger", "tools", "note", "raw", "volatile", "current", "call"
)  # fmt: skip
_RECORDS: Final = {"record", "shortened"}
_CLAMPED_LINES: Final = 12
_LINE_EMS: Final = 18.0  # width of the text column in a group


@dataclass(frozen=True)
class Group:
    kind: str
    blocks: tuple[InputBlock, ...]

    @property
    def tokens(self) -> int:
        return sum_tokens(self.blocks)

    @property
    def parts(self) -> list[list[InputBlock]]:
        """The blocks by expander: messages grouped by turn, each other block alone."""
        if self.kind in {"raw", "current", "ledger"}:
            return [list(blocks) for _, blocks in groupby(self.blocks, key=lambda block: block.turns)]
        return [[block] for block in self.blocks]

    def title(self, words: Words) -> str:
        if tools := self.blocks[0].tools:
            return words.input.tools.format(count=len(tools))
        turns = self.blocks[0].turns
        return words.input.groups[self.kind].format(count=len(self.parts), turn=turns[-1] if turns else "")


def sum_tokens(blocks: Iterable[InputBlock]) -> int:
    return sum(block.tokens for block in blocks)


def groups_of(call: CallInput, turn: int) -> list[Group]:
    found: dict[str, list[InputBlock]] = {kind: [] for kind in KINDS}
    for block in call.blocks:
        found[_kind_of(block, turn)].append(block)
    return [Group(kind, tuple(blocks)) for kind, blocks in found.items() if blocks]


def _kind_of(block: InputBlock, turn: int) -> str:
    if block.kind == "context":
        if block.id == "own":
            return "own"
        return "volatile" if block.id in {"volatile", "before"} else "layers"
    if block.kind in {"message", "cut"}:
        return "current" if block.turns == (turn,) else "raw"
    return {"pin": "pins", "record": "records", "shortened": "records"}.get(block.kind, block.kind)


def _draw_group(words: Words, group: Group, key: str) -> None:
    for tool in group.blocks[0].tools:
        if row := widget.open_box(escape_label(tool.name), f"input_tool_{key}_{tool.name}"):
            row.code(tool.text, language=None, wrap_lines=True)
    if group.blocks[0].tools:
        return
    parts = group.parts
    if len(parts) == 1 and group.kind not in {"records", "layers"}:
        _draw_blocks(words, parts[0], key)
        return
    for number, blocks in enumerate(parts):
        label = _label(_group_name(words, blocks[0]), sum_tokens(blocks))
        if row := widget.open_box(label, f"input_part_{key}_{number}"):
            with row:
                _draw_blocks(words, blocks, f"{key}_{number}")


def _draw_blocks(words: Words, blocks: Sequence[InputBlock], key: str) -> None:
    for number, block in enumerate(blocks):
        if block.role:
            widget.draw_note(words.input.roles[block.role])
        _draw_text(words, block, f"{key}_{number}")


def _group_name(words: Words, block: InputBlock) -> str:
    labels = words.input
    if block.kind == "context":
        return labels.contexts[block.id]
    if not block.turns:
        return labels.roles[block.role]
    template = labels.turn
    if block.kind in _RECORDS:
        is_verbatim = (block.text or "").startswith(tuple(VERBATIM_NOTE.values()))
        template = words.card_verbatim if is_verbatim else words.card_title
    return escape_label(template.format(turns=format_turns(block.turns), turn=block.turns[-1]))


def _label(name: str, tokens: int) -> str:
    return f"{name} :gray[{format_tokens(tokens, is_usage=False)}]"


def _draw_text(words: Words, block: InputBlock, key: str) -> None:
    if block.text is None:
        lacks = {"tools": words.input.no_schema, "note": words.input.same_words}
        widget.draw_note(lacks.get(block.kind, words.input.gone))
    else:
        is_long = count_lines(block.text, _LINE_EMS) > _CLAMPED_LINES + 1  # the button of a clamped text takes a line
        widget.draw_clamped(words, f"input_{key}", lambda _: st.text(block.text or ""), is_long=is_long)


def draw_input_bar(words: Words, call: CallInput, turn: int, groups: Sequence[Group]) -> None:
    """Draws bars of the sent tokens and the full history on the same scale."""
    labels = words.input
    longest = max(call.sent_tokens, call.full_tokens, 1)
    parts = "".join(
        f'<i class="{group.kind}" style="width:{100 * group.tokens / longest:.2f}%"></i>' for group in groups
    )
    summary = labels.bar.format(
        sent=format_count(call.sent_tokens),
        full=format_count(call.full_tokens),
        blocks=", ".join(f"{group.title(words)}: {format_count(group.tokens)}" for group in groups),
    )
    st.html(
        f'<div class="input-sizes">{_line(labels.sent.format(turn=turn), call.sent_tokens)}'
        f'<div class="input-bar" role="img" aria-label="{html.escape(summary)}">{parts}</div>'
        f"{_line(words.chart_full, call.full_tokens)}"
        f'<div class="input-bar" aria-hidden="true"><i class="full" style="width:'
        f'{100 * call.full_tokens / longest:.2f}%"></i></div></div>'
    )
    saved = round(100 * (call.full_tokens - call.sent_tokens) / call.full_tokens) if call.full_tokens else 0
    if saved:
        widget.draw_note((labels.saved if saved > 0 else labels.grown).format(percent=abs(saved)))


def _line(title: str, tokens: int) -> str:
    return f"<p><span>{html.escape(title)}</span><span>{format_tokens(tokens, is_usage=False)}</span></p>"


TURNS_AT_ONCE = 30


def draw_input_history(now: PageState, identifier: str, turn: int, call: CallInput) -> None:
    labels, key = now.words.input, f"{identifier}_{turn}"
    if box := widget.open_box(labels.history, f"input_history_{key}", "article"):
        shown_key = f"input_history_shown_{key}"
        shown = st.session_state.get(shown_key, TURNS_AT_ONCE)
        with box:
            turns = now.service.inputs.history(identifier, turn, last=shown)
            ways = _ways(call, turn)
            for entry in reversed(turns):
                name, way = labels.turn.format(turn=entry.number), labels.ways[ways.get(entry.number, "none")]
                if row := widget.open_box(_label(f"{name} · {way}", entry.tokens), f"input_past_{key}_{entry.number}"):
                    with row:
                        _draw_blocks(now.words, entry.messages, f"past_{key}_{entry.number}")
            if len(turns) == shown and turns[0].number > 1:
                more = f"input_history_more_{key}"
                widget.draw_more(labels.history_more, more, shown_key, shown + TURNS_AT_ONCE)


def _ways(call: CallInput, turn: int) -> dict[int, str]:
    """Returns how each turn was sent, by number; a record takes precedence over messages of the turn."""
    ways: dict[int, str] = {}
    for block in call.blocks:
        way = "raw" if block.role else "record"
        for number in block.turns:
            ways.setdefault(number, "current" if number == turn else way)
    return ways


_SHOWN_CHARS: Final = 20_000
_REQUEST_LINES: Final = 16


def draw_input_details(now: PageState, identifier: str, turn: int, call: CallInput) -> None:
    """Draws the request, and what the provider read from its cache, behind a line that opens."""
    labels, key = now.words.input, f"{identifier}_{turn}_{call.attempt}_{call.ordinal}"
    if box := widget.open_box(now.words.details, f"input_details_{key}", "info"):
        with box:
            request = now.service.inputs.request(identifier, turn, attempt=call.attempt, ordinal=call.ordinal)
            for note in _notes(labels, call, request):
                st.markdown(f":small[{note}]")
            if request.body is not None:
                _draw_body(now.words, request.body, key, f"request-{turn}-{call.attempt}-{call.ordinal}.json")


def _notes(labels: InputWords, call: CallInput, request: SentRequest) -> Iterator[str]:
    if call.usage_input_tokens is not None:
        template = labels.reported_cached if call.usage_cached_tokens else labels.reported
        tokens, cached = format_count(call.usage_input_tokens), format_count(call.usage_cached_tokens or 0)
        yield f":gray[{template.format(tokens=tokens, cached=cached)}]"
    if cacheable := call.cacheable_tokens:
        percent = format_percent(cacheable, call.sent_tokens)
        told = labels.cacheable.format(tokens=format_count(cacheable), percent=percent)
        yield f":gray[{told}. {labels.cacheable_help}]"
    if request.body is None:
        yield f":orange[:material/warning: {labels.request_gone}]"
        return
    if request.is_verified:
        yield f":gray[{labels.verified}]"
    if request.is_of_program:
        yield f":orange[:material/warning: {labels.request_of_program}]"
    elif request.lacks_tools:
        yield f":orange[:material/warning: {labels.request_without_tools}]"
    yield f":gray[{labels.request_embedded if request.is_embedded else labels.request_rest}]"


def _draw_body(words: Words, body: str, key: str, file_name: str) -> None:
    labels, shown = words.input, body[:_SHOWN_CHARS]
    is_long = count_lines(shown, _LINE_EMS) > _REQUEST_LINES
    # Without highlighting, which would use the light theme's colours in the panel.
    draw_code = partial(st.code, shown, language=None, wrap_lines=True)
    widget.draw_clamped(words, f"input_request_{key}", lambda _: draw_code(), is_long=is_long)
    if len(shown) < len(body):
        widget.draw_note(labels.request_cut)
    with st.container(horizontal=True, gap="small"):
        st.html(widget.copy_button(words.copy, body), width="content")
        kind: dict[str, Any] = {"mime": "application/json", "icon": ":material/download:", "type": "tertiary"}
        key = f"input_file_{key}"
        st.download_button(labels.request_file, body, file_name=file_name, key=key, on_click="ignore", **kind)


_NEWEST: Final = 0  # stands for the newest turn


def draw(now: PageState) -> None:
    labels = now.words.input
    identifier = now.session.session_id if now.session else ""
    turns = now.service.inputs.called_turns(identifier) if identifier else ()
    if not turns:
        widget.draw_note(labels.nothing)
        return
    turn, call = _choose(now, identifier, turns)
    if call is None:
        widget.draw_note(labels.not_called)
        return
    groups = groups_of(call, turn)
    draw_input_bar(now.words, call, turn, groups)
    with st.container(border=True, gap="xsmall", key="input_blocks"):
        for group in groups:
            key = f"{group.kind}_{identifier}_{turn}_{call.attempt}_{call.ordinal}"
            if box := widget.open_box(_label(group.title(now.words), group.tokens), f"input_{key}"):
                with box:
                    _draw_group(now.words, group, key)
    if not call.is_sent:
        widget.draw_note(now.words.prepared)
    elif not call.is_verified:
        st.markdown(f":small[:orange[:material/warning: {labels.unverified}]]")
    draw_input_history(now, identifier, turn, call)
    if call.is_sent:
        draw_input_details(now, identifier, turn, call)


def _choose(now: PageState, identifier: str, turns: Sequence[int]) -> tuple[int, CallInput | None]:
    """Draws the select of a turn and, where the chosen one has several, of its calls."""
    labels, state = now.words.input, st.session_state
    key = widget.choice_key(f"input_turn_{identifier}")
    shown, _ = state.get(key) or (_NEWEST, None)
    turn = shown if shown in turns else turns[-1]
    calls = now.service.inputs.of_turn(identifier, turn)
    names: dict[tuple[int, int | None], str] = {}  # None for the call that answered
    for number in (_NEWEST, *reversed(turns[:-1])):
        names[number, None] = name = labels.sent.format(turn=number) if number else labels.newest
        if number == shown and len(calls) > 1:
            names |= {
                (number, place): f"{name} · {_name_of(now.words, calls, each)}" for place, each in enumerate(calls)
            }
    if state.get(key) not in names:
        state[key] = (_NEWEST, None)
    look: dict[str, Any] = {"format_func": names.__getitem__, "label_visibility": "collapsed"}
    _, index = st.selectbox(now.words.chart_turn, [*names], key=key, **look)
    answers = [place for place, call in enumerate(calls) if call.kind == "answer"]
    return turn, calls[index if index is not None else answers[-1] if answers else -1] if calls else None


def _name_of(words: Words, calls: Sequence[CallInput], call: CallInput) -> str:
    labels = words.input
    template = labels.call if calls[-1].attempt == 1 else labels.call_again
    name = template.format(number=call.ordinal, count=len(calls), attempt=call.attempt)
    if call.kind == "reasoning":
        name = labels.call_by_tool.format(call=name)
    return labels.call_failed.format(call=name) if call.error_code else name
