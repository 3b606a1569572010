"""Prepares a model's Markdown so that Streamlit shows the text as written. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Final, NamedTuple

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_FENCE: Final = re.compile(
    r"[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])[ \t]+)*(?P<mark>`{3,}(?=[^`]*$)|~{3,}|\${2,}(?=[^$]*$))", re.MULTILINE
)
_QUOTE: Final = re.compile(r"[ \t>]*")
_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BLOCK: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]|[>|])")
_INDENTED: Final = re.compile(r" {4}| {0,3}\t")
_DISPLAY: Final = re.compile(r"([ \t]*)\\\[")
_MOST_FORMULA_CHARS: Final = 4_000

_RUN: Final = re.compile(r"`+|\$+")
_MARK: Final = re.compile(r"`+|\$+|\\.|(?:https?://|www\.)[^\s<>]+", re.DOTALL | re.IGNORECASE)
_CLOSING: Final = {r"\(": r"\)", r"\[": r"\]"}
_NUMBER: Final = re.compile(r"[\d.,]+")
_OPERATOR: Final = re.compile(r"[\\^_=+*/A-Za-z]")
# Not found in formulas outside of commands: words, two adjacent numbers, characters reserved by TeX.
_WORDS: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}|[가-힣]|\d\s+\d")
_LONG_WORDS: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{4,}|[가-힣]|\d\s+\d")
_RESERVED: Final = re.compile(r"(?<!\\)[#%@]")
_TEXT_COMMAND: Final = re.compile(r"\\[A-Za-z]+(?:\{[^{}]*\})?")

_TIMES: Final = re.compile(r"(?<=[\d)])\*(?=[\d(])")
_TILDES: Final = re.compile(r"~+")
# Streamlit's directives: `:red[…]`, `::name`, `:material/home:`, `:smile:`. `|:--|` and `a: b` don't match.
_DIRECTIVE: Final = re.compile(r":(?=[A-Za-z][\w-]*[\[{]|:)|(?<=:):")
_SHORTCODE: Final = re.compile(r":([\w+-]+):")
# Streamlit draws these as arrows and dashes if surrounded by spaces. Like shortcodes they are replaced after parsing,
# where escapes are gone: a directive without effect separates their characters.
_SYMBOL: Final = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")

# Starts of links, except the brackets of the directives inserted here.
_BRACKET: Final = re.compile(r"(?<!(?<!\\):color)\[|<")
_MAIL_SIGN: Final = re.compile(r"(?<=[\w.+-])@(?=[\w-])")
_ADDRESS_SIGN: Final = re.compile(r"(?P<parted>[:@]|(?<=www)\.)|[\\`*_~\[\]$&!#]", re.IGNORECASE)
_SOFT_BREAK: Final = re.compile(r"(?<=\S)\n(?=[ \t]*\S)")


class _Block(NamedTuple):
    text: str
    is_prose: bool


def answer_markdown(text: str) -> str:
    r"""Escapes a model's Markdown where Streamlit would show something other than the text.

    Images become links, so that nothing is loaded from another host. `\(…\)` and `\[…\]` become Streamlit's formulas; a
    `$` that starts no formula is a price. A single `~` is a range (`3~4`): only `~~two~~` strike out. Streamlit's
    directives (`:red[…]`, `:smile:`, ` -> `) are text. Code and addresses are unchanged.

    Args:
        text: The Markdown, perhaps incomplete: an open fence extends to the end.
    """
    return "".join(_show_prose(block.text) if block.is_prose else block.text for block in _blocks(text))


def summary_markdown(text: str) -> str:
    """Escapes a summary's Markdown like `answer_markdown`, without links and with line breaks retained.

    A link is shown as written, address included, as the model reads the summary.
    """
    shown = (_unlinked(block.text) if block.is_prose else block.text for block in _blocks(text))
    return "".join(shown)


def _unlinked(text: str) -> str:
    return _SOFT_BREAK.sub("  \n", _show_prose(text, has_links=False))


def _blocks(text: str) -> Iterator[_Block]:
    """Splits into code and blocks that no code span or formula crosses: paragraphs, items, rows."""
    paragraph = ""
    fence, is_in_list, is_behind_gap = "", False, True
    at = 0
    while (found := _LINE.match(text, at)) is not None:
        line, at = found[0], found.end()
        if fence:
            yield _Block(line, is_prose=False)
            fence = "" if _closes(line, fence) else fence
            continue
        is_blank = not line.strip()
        if is_blank and is_behind_gap:
            paragraph += line
            continue
        is_indented = _INDENTED.match(line) is not None and not is_blank
        is_code = is_indented and is_behind_gap and not is_in_list
        formula_end = 0 if is_code else _formula_end(text, found.start())
        if formula_end:
            yield _Block(paragraph, is_prose=True)
            paragraph = ""
            indent, _, body = text[found.start() : formula_end].partition(r"\[")
            yield _Block(f"{indent}$$\n{body[:-2].strip()}\n{indent}$$\n", is_prose=False)
            at = formula_end
            continue
        opening = None if is_code else _FENCE.match(line)
        if opening is not None:
            fence, is_code = opening["mark"], True
        if _LIST_ITEM.match(line):
            is_in_list = True
        elif is_behind_gap and not line[:1].isspace():
            is_in_list = False
        if is_blank or is_code or _BLOCK.match(line):
            yield _Block(paragraph, is_prose=True)
            paragraph = ""
        if is_code:
            yield _Block(line, is_prose=False)
        else:
            paragraph += line
        is_behind_gap = is_blank or (is_code and not fence)
    yield _Block(paragraph, is_prose=True)


def _formula_end(text: str, start: int) -> int:
    r"""Returns the end of a formula between `\[` and `\]` on lines of its own; 0 if there is none."""
    opening = _DISPLAY.match(text, start)
    close = text.find(r"\]", opening.end(), opening.end() + _MOST_FORMULA_CHARS) if opening else -1
    if opening is None or close <= opening.end() or text[close + 2 :].partition("\n")[0].strip(" .,;"):
        return 0
    return close + 2


def _closes(line: str, fence: str) -> bool:
    rest = line[_QUOTE.match(line).end() :].rstrip()  # type: ignore[union-attr]  # it matches the empty text, too
    return len(rest) >= len(fence) and rest == fence[0] * len(rest)


def _show_prose(text: str, *, has_links: bool = True) -> str:
    """Escapes a block's prose, except code, formulas and addresses."""
    escape = _escape if has_links else _escape_links
    shown: list[str] = []
    ends = _ends_of_runs(text)
    begin = at = 0
    while (found := _MARK.search(text, at)) is not None:
        at, piece = _read(text, found, ends)
        if piece is None:
            continue
        is_address = found[0][0] not in "`$\\"
        shown += [escape(text[begin : found.start()]), _part_address(piece) if is_address and not has_links else piece]
        begin = at
    return "".join([*shown, escape(text[begin:])])


def _read(text: str, found: re.Match[str], ends: dict[str, deque[int]]) -> tuple[int, str | None]:
    """Returns a mark's end and rendered piece; None for prose."""
    mark, at = found[0], found.end()
    if mark in _CLOSING:
        close = text.find(_CLOSING[mark], at, at + _MOST_FORMULA_CHARS)
        body = text[at:close].strip() if close > at else ""
        return (close + 2, _formula(body, "$" if mark == r"\(" else "$$")) if body else (at, mark)
    if mark[0] not in "`$":
        return at, mark
    close = _end_of_run(mark, at, ends)
    if mark[0] == "`":
        return (close, text[found.start() : close]) if close else (at, None)
    body = text[at : close - len(mark)] if close else ""
    is_formula = bool(body) and (
        len(mark) > 1 or _is_formula(body, text[: found.start()][-1:], text[close : close + 1])
    )
    return (close, _formula(body, mark)) if is_formula else (at, r"\$" * len(mark))


def _ends_of_runs(text: str) -> dict[str, deque[int]]:
    ends = defaultdict[str, deque[int]](deque)
    for run in _RUN.finditer(text):
        ends[run[0]].append(run.end())
    return ends


def _end_of_run(mark: str, at: int, ends: dict[str, deque[int]]) -> int:
    """Returns the end of the next equal run, 0 if there is none. Amortised O(1): each run is visited once."""
    while ends[mark] and ends[mark][0] <= at:
        ends[mark].popleft()
    return ends[mark][0] if ends[mark] else 0


def _is_formula(body: str, before: str, behind: str) -> bool:
    """Returns True if the text between two `$` is a formula rather than prose between two prices."""
    if before.isdigit() or (behind.isascii() and behind.isalnum()):
        return False
    if body[0].isspace() or body[-1].isspace() or body[-1] == "\\" or _RESERVED.search(body):
        return False
    bare = _TEXT_COMMAND.sub("", body)
    if not body[0].isdigit():
        return " " not in body or _LONG_WORDS.search(bare) is None
    if _NUMBER.fullmatch(body):
        return True
    return _OPERATOR.search(body) is not None and "&" not in bare and _WORDS.search(bare) is None


def _formula(body: str, mark: str) -> str:
    # Streamlit loads its formula renderer only for a formula on a single line.
    return f"{mark}{' '.join(body.split())}{mark}"


def _escape(prose: str) -> str:
    prose = prose.replace("![", "[").replace(":material/", r":material\/")
    prose = _SHORTCODE.sub(r":color[\:]\1:", _DIRECTIVE.sub(r"\:", prose))
    prose = _SYMBOL.sub(lambda sign: f"{sign[0][0]}:color[{sign[0][1]}]{sign[0][2:]}", prose)
    prose = _TIMES.sub(r"\*", prose)
    return _TILDES.sub(lambda run: r"\~" if run[0] == "~" else run[0], prose)


def _escape_links(prose: str) -> str:
    # Streamlit links bare addresses after parsing, where escapes are gone: a directive separates their characters.
    return _MAIL_SIGN.sub(":color[@]", _BRACKET.sub(r"\\\g<0>", _escape(prose)))


def _part_address(address: str) -> str:
    return _ADDRESS_SIGN.sub(lambda sign: f":color[\\{sign[0]}]" if sign["parted"] else f"\\{sign[0]}", address)
