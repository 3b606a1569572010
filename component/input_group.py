"""Draws what a call was sent, in groups that open to their blocks, and each block to its words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import streamlit as st

from component import clamped
from component.format import count_lines, escape_label, format_tokens, format_turns
from component.word import Words
from graph.value.input_view import CallInput, InputBlock, ToolSchema

KINDS: Final = ("system", "layers", "records", "pins", "tools", "note", "raw", "volatile", "current", "call")
_RECORDS: Final = {"record", "shortened"}
_CLAMPED_LINES: Final = 12
_LINE_EMS: Final = 18.0  # of the text column in a group


@dataclass(frozen=True)
class Group:
    """The blocks of one kind, in the order sent.

    Attributes:
        kind: One of `KINDS`.
    """

    kind: str
    blocks: tuple[InputBlock, ...]

    @property
    def tokens(self) -> int:
        """Our estimate for all of them."""
        return sum_tokens(self.blocks)

    @property
    def parts(self) -> list[list[InputBlock]]:
        """What is opened one by one: messages turn by turn, other blocks each by itself."""
        if self.kind in {"raw", "current"}:
            return [list(blocks) for _, blocks in groupby(self.blocks, key=lambda block: block.turns)]
        return [[block] for block in self.blocks]

    def title(self, words: Words) -> str:
        """Returns its name, with how many there are of what it is named after."""
        if tools := self.blocks[0].tools:
            return words.input.tools.format(count=len(tools))
        turns = self.blocks[0].turns
        return words.input.groups[self.kind].format(count=len(self.parts), turn=turns[-1] if turns else "")


def sum_tokens(blocks: Iterable[InputBlock]) -> int:
    """Returns our estimate for these blocks."""
    return sum(block.tokens for block in blocks)


def groups_of(call: CallInput, turn: int) -> list[Group]:
    """Returns the blocks of a call of this turn by kind; a kind without a block is left out."""
    found: dict[str, list[InputBlock]] = {kind: [] for kind in KINDS}
    for block in call.blocks:
        found[_kind_of(block, turn)].append(block)
    return [Group(kind, tuple(blocks)) for kind, blocks in found.items() if blocks]


def _kind_of(block: InputBlock, turn: int) -> str:
    if block.kind in _RECORDS:
        return "records"
    if block.kind == "context":
        return "volatile" if block.id == "volatile" else "layers"
    if block.kind == "pin":
        return "pins"
    if block.kind in {"message", "cut"}:
        return "current" if block.turns == (turn,) else "raw"
    return block.kind


def draw(words: Words, groups: Sequence[Group], key: str) -> None:
    """Draws each group as a line that opens; the `key` makes those of its elements unique."""
    for group in groups:
        label = _label(group.title(words), group.blocks)
        box = st.expander(label, key=f"input_{group.kind}_{key}", type="compact", on_change="rerun")
        if box.open:
            with box:
                _draw_parts(words, group, f"{group.kind}_{key}")


def draw_messages(words: Words, blocks: Sequence[InputBlock], key: str) -> None:
    """Draws messages one below the other, each under who said it."""
    for number, block in enumerate(blocks):
        st.markdown(f":small[:gray[{words.input.roles[block.role]}]]")
        _draw_text(words, block, f"{key}_{number}")


def _draw_parts(words: Words, group: Group, key: str) -> None:
    if tools := group.blocks[0].tools:
        _draw_tools(tools, key)
        return
    parts = group.parts
    if len(parts) == 1 and group.kind not in {"records", "layers"}:
        _draw_part(words, parts[0], key)
        return
    for number, blocks in enumerate(parts):
        label = _label(_name_of(words, blocks[0]), blocks)
        row = st.expander(label, key=f"input_part_{key}_{number}", type="compact", on_change="rerun")
        if row.open:
            with row:
                _draw_part(words, blocks, f"{key}_{number}")


def _draw_tools(tools: Sequence[ToolSchema], key: str) -> None:
    for tool in tools:
        row = st.expander(
            escape_label(tool.name), key=f"input_tool_{key}_{tool.name}", type="compact", on_change="rerun"
        )
        if row.open:
            with row:
                st.code(tool.text, language=None, wrap_lines=True)


def _draw_part(words: Words, blocks: Sequence[InputBlock], key: str) -> None:
    if blocks[0].role:
        draw_messages(words, blocks, key)
    else:
        _draw_text(words, blocks[0], key)


def _name_of(words: Words, block: InputBlock) -> str:
    said = words.input
    if block.kind == "context":
        return said.contexts[block.id]
    if not block.turns:
        return said.roles[block.role]
    template = said.record if block.kind in _RECORDS else said.turn
    return escape_label(template.format(turns=format_turns(block.turns), turn=block.turns[-1]))


def _label(name: str, blocks: Sequence[InputBlock]) -> str:
    """Returns a line's words: what it is, whether it can be cached, its tokens."""
    kept = sum(block.is_cacheable for block in blocks)
    share = "" if kept in {0, len(blocks)} else f" {kept}/{len(blocks)}"
    mark = f" :material/bolt:{share}" if kept else ""
    return f"{name}{mark} :gray[{format_tokens(sum_tokens(blocks), is_usage=False)}]"


def _draw_text(words: Words, block: InputBlock, key: str) -> None:
    text = block.text
    if text is None:
        lacks = {"tools": words.input.no_schema, "note": words.input.same_words}
        lack = lacks.get(block.kind, words.input.gone)
        st.markdown(f":small[:gray[{lack}]]")
    elif count_lines(text, _LINE_EMS) <= _CLAMPED_LINES + 1:  # a button takes a line, too
        st.text(text)
    else:
        clamped.draw(words, f"input_{key}", lambda _: _draw_letters(text))


def _draw_letters(text: str) -> None:
    st.text(text)
