"""Prepares a model's Markdown so that Streamlit shows the text as written. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from textwrap import dedent
from typing import Final, NamedTuple
from unicodedata import category

_LINE: Final = re.compile(r"[^\n]*\n|[^\n]+")
_BEFORE: Final = r"(?P<before>[ \t]*(?:>[ \t]?|(?:[-*+]|\d{1,9}[.)])[ \t]+)*)"
_FENCE: Final = re.compile(
    _BEFORE + r"(?P<mark>`{3,}(?=[^`]*$)|~{3,}|\${2,}(?=[^$]*$))",
    re.MULTILINE,
)
# Streamlit would draw what there is of an open diagram or formula, and say in red what it can't parse.
_OPEN_DRAWN: Final = re.compile(
    rf"\A{_BEFORE}(?:(?:`{{3,}}|~{{3,}})[ \t]*mermaid\b[^\n]*|\${{2,}}[ \t]*$)", re.MULTILINE
)
_QUOTE: Final = re.compile(r"[ \t>]*")
_LIST_ITEM: Final = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_BLOCK: Final = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})[ \t]|[>|])")
_INDENTED: Final = re.compile(r" {4}| {0,3}\t")
_DISPLAY: Final = re.compile(r"([ \t]*)\\\[")
_MOST_FORMULA_CHARS: Final = 4_000
_MARKER: Final = re.compile(r"[^\s>]")
_BLANK_LINE: Final = re.compile(r"\n[ \t>]*\n")

_RUN: Final = re.compile(r"`+|(?<!\\)\$+")
_MOST_ADDRESS_CHARS: Final = 4_096
_MARK: Final = re.compile(
    rf"`+|\$+|\\.|(?:https?://|www\.)[^\s<>]{{1,{_MOST_ADDRESS_CHARS}}}", re.DOTALL | re.IGNORECASE
)
# Where an address ends before the next blank, which alone would end Streamlit's link: a quote, the end of bold or
# struck text, a Korean particle; one that may be a word's own syllables, only behind ASCII.
_NOT_AMID: Final = r"(?![\w/%=&#+-]|[.,:?~][A-Za-z0-9])"
_LONG_PARTICLE: Final = (
    r"(?:(?:에서|으로|까지|부터|에게|한테|보다|처럼|마다|밖에|하고|이랑)(?:는|도|만|의|요)?|에[는도]|(?:으로|로)[써서]|이?라[고는]|조차|마저"
    r"|(?:입니|습니|이었|이라|이에|예요|이지만|이며|이고|이다|이든|인[데지])[가-힣]*)"
)
_PARTICLE: Final = (
    rf"(?:{_LONG_PARTICLE}|[은는이가을를의에로도와과만랑나인]|로[는도만]|에요|[와과]의|이[요야]|라[서면며]|였[가-힣]+)"
)
_ADDRESS_END: Final = re.compile(
    rf"[\"`“”‘’「」『』《》〈〉【】（）。，、…·]|\*\*|~~|\*(?![A-Za-z0-9_/.?=&%#-])"
    rf"|(?<=[!-~]){_PARTICLE}{_NOT_AMID}|(?<=[가-힣])(?:{_LONG_PARTICLE}|[는를]){_NOT_AMID}"
)
_HOST: Final = re.compile(r"(?:https?://)?[^/?#]*", re.IGNORECASE)
_HOST_END: Final = re.compile(r"(?<=[A-Za-z0-9])[^!-~]|(?<=[A-Za-z0-9])[,;!'(*]")
_SIGN: Final = re.compile(r"[()\[\]{}|']")
_BRACKETS: Final = {")": "(", "]": "[", "}": "{"}
# What Streamlit itself leaves out of a link.
_TRAIL: Final = re.compile(r"[!\"'),.:;?_~*]*")
_CLOSING: Final = {r"\(": r"\)", r"\[": r"\]"}
_NUMBER: Final = re.compile(r"(?:[\d.]|\{?,\}?|(?<=,) )+")
_OPERATOR: Final = re.compile(r"[\\^_=+*/<>!:A-Za-z-]")
_OPEN_END: Final = re.compile(r"[-=+*/<>(\[{:;,&^_~–—−×÷≈→]$")
# No prose has these.
_RELATION: Final = re.compile(
    r"\\(?:times|cdot|div|pm|[dt]?frac|sqrt|approx|sim|[lg]eq?|neq?|sum|prod|int|equiv|propto|to|(?:right|left)arrow)"
    r"(?![A-Za-z])"
)
# Not found in formulas outside of commands: words, two adjacent numbers; characters reserved by TeX, other formulas.
_WORDS: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}|[가-힣]|(?<![_^\d])\d+\s+\d")
_LONG_WORDS: Final = re.compile(r"(?<![A-Za-z])[A-Za-z]{4,}|[가-힣]|(?<![_^\d])\d+\s+\d")
_PRODUCT: Final = re.compile(r"(?<=\d)[a-z]{2,3}(?![A-Za-z])")  # `2xy`
_RESERVED: Final = re.compile(r"(?<!\\)(?:[#%@`]|\\[()\[\]])")
_TEXT_COMMAND: Final = re.compile(r"\\[A-Za-z]+(?:\{[^{}]*\})?")

_TIMES: Final = re.compile(r"(?<=[\d)])\*(?=[\d(])")
_TILDES: Final = re.compile(r"~+")
# Streamlit's directives: `:red[…]`, `::name`, `:material/home:`, `:smile:`. `|:--|` and `a: b` don't match.
_DIRECTIVE: Final = re.compile(r":(?=[A-Za-z][\w-]*[\[{]|:)|(?<=:):")
_SHORTCODE: Final = re.compile(r":(?=[+_-]*[^\W_])([\w+-]+):")  # `:---:` of a table is none
# Streamlit draws these as arrows and dashes if surrounded by spaces. Like shortcodes they are replaced after parsing,
# where escapes are gone: a directive without effect separates their characters.
_SYMBOL: Final = re.compile(r"(?<!\S)(<->|->|<-|--|>=|<=|~=)(?!\S)")

_EMPHASIS: Final = re.compile(
    r"(?<![\\*])\*{1,3}(?!\*)|(?<![\\~])~~(?!~)|(?<![\\\w])_{1,2}(?=\w)|(?<=[\w)])_{1,2}(?=[가-힣])"
)
_EMPHASISED: Final = re.compile(r"[*~_]")
_FIRST_WORD: Final = re.compile(r"[^\W_]+")
_BREAK: Final = re.compile(r"<br\s*/?>", re.IGNORECASE)
# Drawn as a line break by `page.css`; a model can't write it, as its own directives are escaped.
_DRAWN_BREAK: Final = ":color[ ]{foreground=transparent}"

# Starts of links, except the brackets of the directives inserted here.
_BRACKET: Final = re.compile(r"(?<!(?<!\\):color)\[|<")
_MAIL_SIGN: Final = re.compile(r"(?<=[\w.+-])@(?=[\w-])")
_LINK_SIGN: Final = re.compile(r"[\\`*_~\[\]$&!#]")
_ESCAPED: Final = r"\\\g<0>"
_ADDRESS_SIGN: Final = re.compile(r"(?P<parted>[:@]|(?<=www)\.)|[\\`*_~\[\]$&!#]", re.IGNORECASE)
_SOFT_BREAK: Final = re.compile(r"(?<=[^\s\\])[ \t]*\n(?=[ \t]*\S)")
_LAST_BREAK: Final = re.compile(r"(?<=[^\s\\])[ \t]*\n\Z")
_TURN_MARK: Final = re.compile(
    r"(?<!\S)\((?=turn|[\d-]+턴)(?:turns? )?(?P<first>\d{1,6})(?:-(?P<last>\d{1,6}))?턴?\)(?!\S)", re.IGNORECASE
)
_BARE_LINE: Final = re.compile(
    r"[ \t>]*+(?:(?:[-*+]|\d{1,9}[.)]|#{1,6})(?:[ \t]++|$))?(?:\*{1,3}|`{1,2}|[`~]{3,}.*|\${1,2})?[ \t]*+"
)
_CODE_SPAN: Final = re.compile(r"`[^`]*`?")
_SPAN_BREAK: Final = re.compile(r"[ \t]{0,20}\n\s{0,20}")
# Lines that may go on with the paragraph before them: of a quote, and items that don't begin a list.
_GOES_ON: Final = re.compile(r"[ \t]*(?:>[ \t>]*[^\s>]|(?!0*1[.)])\d{1,9}[.)][ \t])")


class _Block(NamedTuple):
    text: str
    is_prose: bool


def answer_markdown(text: str) -> str:
    r"""Escapes a model's Markdown, perhaps incomplete, where Streamlit would show something other than the text.

    Images become links, so that nothing is loaded from another host. `\(…\)` and `\[…\]` become Streamlit's formulas; a
    `$` that starts no formula is a price. Bold, italic and struck text may end in a bracket before a Korean particle
    (`**이름(Name)**은`), and a link before one. A line break stays one. `<br>` in a table breaks the line. A single `~`
    is a range (`3~4`). Streamlit's directives (`:red[…]`, `:smile:`, ` -> `) are text. Code stays as it is.
    """
    return _show(text)


def growing_markdown(text: str) -> str:
    """Returns the `answer_markdown` of a text that grows.

    Marks that nothing stands behind yet aren't shown, a table is from its second line on. Open bold text is bold.
    """
    blocks = [block for block in _blocks(text) if block.text]
    rows = [*takewhile(lambda block: block.is_prose and _is_row(block.text), reversed(blocks))]
    if rows and not rows[2:] and not (rows[1:] and rows[0].text.endswith("\n")):
        return answer_markdown(text[: -sum(len(row.text) for row in rows)])
    line = text.rpartition("\n")[2]
    if blocks and _BARE_LINE.fullmatch(line) and (blocks[-1].is_prose or "\n" not in blocks[-1].text):
        return answer_markdown(text[: len(text) - len(line)])
    if blocks and blocks[-1].is_prose and _CODE_SPAN.sub("", line).count("**") % 2:
        text = text.rstrip("* ")
        text += "**" if _CODE_SPAN.sub("", text.rpartition("\n")[2]).count("**") % 2 else ""
    return answer_markdown(text)


def summary_markdown(text: str, turns: Sequence[int] = ()) -> str:
    """Escapes a summary's Markdown like `answer_markdown`; links are shown as the model reads them.

    The mark of each of its turns, `(3턴)`, begins a paragraph, as a link that the page's script leads to the turn.
    """
    shown, at = _show(split_turns(text, turns), has_links=False), 0
    for mark in _turn_marks(text, turns):
        begin = shown.find(mark[0], at)
        link = f"[{mark[0][1:-1]}](#turn-{mark['first']}-{mark['last'] or mark['first']})"
        shown, at = f"{shown[:begin]}{link}{shown[begin + len(mark[0]) :]}", begin + len(link)
    return shown


def split_turns(text: str, turns: Sequence[int]) -> str:
    """Returns a summary with a paragraph for each of its turns, if it begins with the mark of one."""
    ends = [mark.start() for mark in _turn_marks(text, turns)]
    return "\n\n".join(text[begin:end].strip() for begin, end in pairwise([0, *ends[1:], len(text)]))


def _turn_marks(text: str, turns: Sequence[int]) -> list[re.Match[str]]:
    marks: list[re.Match[str]] = []
    newest = 0
    for mark in _TURN_MARK.finditer(text):
        first, last = int(mark["first"]), int(mark["last"] or mark["first"])
        # Any other is a reference to a turn.
        if newest < first <= last and first in turns and last in turns and text.count("```", 0, mark.start()) % 2 == 0:
            marks.append(mark)
            newest = last
    return marks if marks and not text[: marks[0].start()].strip() else []


def _show(text: str, *, has_links: bool = True) -> str:
    shown: list[str] = []
    is_open = False
    for block in filter(lambda block: block.text, _blocks(text)):
        if is_open and _GOES_ON.match(block.text):
            shown[-1] = _LAST_BREAK.sub("  \n", shown[-1])
        shown.append(_show_prose(block.text, has_links=has_links) if block.is_prose else block.text)
        is_open = block.is_prose and not _is_row(block.text)
    return "".join(shown)


def _blocks(text: str) -> Iterator[_Block]:
    """Splits into code and blocks that no code span or formula crosses: paragraphs, items, rows."""
    paragraph = ""
    is_in_list, is_behind_gap = False, True
    at = 0
    while (found := _LINE.match(text, at)) is not None:
        line, at = found[0], found.end()
        is_blank = not line.strip()
        if is_blank and is_behind_gap:
            paragraph += line
            continue
        is_indented = _INDENTED.match(line) is not None and not is_blank
        is_code = is_indented and is_behind_gap and not is_in_list
        formula = None if is_code else _formula_at(text, found.start(), line)
        if formula is not None:
            yield _Block(paragraph, is_prose=True)
            yield _Block(formula[0], is_prose=False)
            paragraph, at = "", formula[1]
            is_in_list = is_in_list or _LIST_ITEM.match(line) is not None
            continue
        fence = "" if is_code else _fence_mark(line)
        is_code = is_code or bool(fence)
        if _LIST_ITEM.match(line):
            is_in_list = True
        elif is_behind_gap and not line[:1].isspace():
            is_in_list = False
        if is_blank or is_code or _BLOCK.match(line):
            yield _Block(paragraph, is_prose=True)
            paragraph = ""
        if fence:
            code, at = _fenced(text, found.start(), at, fence)
            yield _Block(code, is_prose=False)
        elif is_code:
            yield _Block(line, is_prose=False)
        else:
            paragraph += line
        is_behind_gap = is_blank or (is_code and not fence)
    yield _Block(paragraph, is_prose=True)


def _fenced(text: str, start: int, inside: int, fence: str) -> tuple[str, int]:
    """Returns the code or formula of a fence with its marks, and its end; of one that is open, code."""
    for line in _LINE.finditer(text, inside):
        if _closes(line[0], fence):
            return text[start : line.end()], line.end()
    return _OPEN_DRAWN.sub(r"\g<before>```", text[start:]), len(text)


def _fence_mark(line: str) -> str:
    """Returns the mark of a line that begins code or a formula, "" for any other."""
    opening = _FENCE.match(line)
    if opening is None or (opening["mark"] == "$$" and line[opening.end() :].strip()):
        return ""
    return opening["mark"]


def _formula_at(text: str, start: int, line: str) -> tuple[str, int] | None:
    r"""Returns the display formula that a line begins with `\[` or a `$$` beside text, and its end in the text."""
    opening = _DISPLAY.match(line)
    if opening is not None:
        begin = start + opening.end()
        close = text.find(r"\]", begin, begin + _MOST_FORMULA_CHARS)
        if close > begin and not text[close + 2 : _line_end(text, close)].strip(" .,;"):
            return _display(text[begin:close], opening[1]), close + 2
        return None
    fence = _FENCE.match(line)
    if fence is None or fence["mark"] != "$$":
        return None
    begin = start + fence.end()
    formula = _dollar_formula(text, begin)
    if formula is None:
        return None
    body, end = formula
    return _display(body, fence["before"], is_closed=text.startswith("$$", begin + len(body))), end


def _dollar_formula(text: str, start: int) -> tuple[str, int] | None:
    """Returns the formula behind a `$$` if one of its marks has text beside it, and its end; that of the text if open.

    Text beside the first mark is no formula if no other mark comes before a blank line.
    """
    is_alone = not text[start : _line_end(text, start)].strip()
    close = text.find("$$", start, start + _MOST_FORMULA_CHARS)
    body = text[start:close] if close >= 0 else text[start : start + _MOST_FORMULA_CHARS]
    if not is_alone and (_BLANK_LINE.search(body) or len(body) == _MOST_FORMULA_CHARS):
        return None
    if close < 0:
        return None if is_alone else (body, len(text))
    behind = text[close + 2 : _line_end(text, close)].strip()
    if is_alone and not behind and not body.rpartition("\n")[2].strip(" \t>"):
        return None
    return body, close + 2 if behind else _line_end(text, close) + 1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return end if end >= 0 else len(text)


def _display(body: str, before: str, *, is_closed: bool = True) -> str:
    """Returns a formula with its marks on lines of their own, inside the list item or quote that it stands in."""
    goes_on = _MARKER.sub(" ", before)  # quote marks go on, a list marker becomes spaces
    if ">" in goes_on:
        body = "\n".join(_QUOTE.sub("", line, count=1) for line in body.split("\n"))
    first, _, others = body.partition("\n")
    lines = f"{first.strip()}\n{dedent(others)}".strip("\n").rstrip().split("\n")
    inside = "\n".join(f"{goes_on}{line.rstrip()}" for line in lines)
    return f"{before}$$\n{inside}\n{goes_on}$$\n" if is_closed else f"{before}```\n{inside}"


def _closes(line: str, fence: str) -> bool:
    rest = line[_QUOTE.match(line).end() :].rstrip()  # type: ignore[union-attr]  # it matches the empty text, too
    return len(rest) >= len(fence) and rest == fence[0] * len(rest)


def _show_prose(text: str, *, has_links: bool = True) -> str:
    escape = _escape if has_links else _escape_links
    is_row = _is_row(text)
    shown: list[tuple[str, bool]] = []
    ends = defaultdict[str, deque[int]](deque)
    for run in _RUN.finditer(text):
        ends[run[0]].append(run.end())
    begin = at = 0
    while (found := _MARK.search(text, at)) is not None:
        is_address = found[0][0] not in "`$\\"
        at, piece = _read_address(text, found, is_row=is_row) if is_address else _read(text, found, ends)
        if piece is None:
            continue
        shown.append((escape(text[begin : found.start()], is_row=is_row), True))
        shown.append((_part_address(text[found.start() : at]) if is_address and not has_links else piece, False))
        begin = at
    return _SOFT_BREAK.sub("  \n", _with_emphasis([*shown, (escape(text[begin:], is_row=is_row), True)]))


def _is_row(text: str) -> bool:
    return text.lstrip().startswith("|")


def _read_address(text: str, found: re.Match[str], *, is_row: bool) -> tuple[int, str]:
    """Returns where an address ends, and the address; as a link of that length, if Streamlit's would be longer."""
    whole, before = found[0], text[max(0, found.start() - 2) : found.start()]
    end = _address_end(whole, before, is_row=is_row)
    address, behind = whole[:end], whole[end:]
    if before == "](" or before[-1:] == "<" or behind.startswith(("](", "][")) or _TRAIL.fullmatch(behind):
        return found.start() + end, address
    link = f"<{address}>" if "://" in address else f"[{_LINK_SIGN.sub(_ESCAPED, address)}](<http://{address}>)"
    return found.start() + end, link


def _address_end(whole: str, before: str, *, is_row: bool) -> int:
    open_brackets: list[str] = []
    end = len(whole)
    for sign in _SIGN.finditer(whole):
        char = sign[0]
        if char in _BRACKETS.values():
            open_brackets.append(char)
        elif (char in _BRACKETS and (not open_brackets or open_brackets.pop() != _BRACKETS[char])) or (
            (char == "|" and is_row) or (char == "'" and before[-1:] == "'")
        ):
            end = sign.start()
            break
    if before == "](":
        return end
    host = _HOST.match(whole, 0, end)
    if host is not None:
        label = whole.rfind(".", 0, host.end()) + 1
        found = _HOST_END.search(whole, label, host.end())
        end = found.start() if found is not None else end
    found = _ADDRESS_END.search(whole, 0, end)
    return found.start() if found is not None else end


def _with_emphasis(pieces: list[tuple[str, bool]]) -> str:
    """Joins pieces (text, is_prose) and lets bold, italic and struck text begin and end beside words, as particles do.

    CommonMark lets `**` end behind punctuation only before a space or punctuation. A directive without effect round the
    neighbouring word gives it the punctuation.
    """
    text = "".join(piece for piece, _ in pieces)
    masked = "".join(piece if is_prose else _EMPHASISED.sub("`", piece) for piece, is_prose in pieces)
    wrapped: list[tuple[int, int]] = []
    starts: dict[str, int] = {}
    for run in _EMPHASIS.finditer(masked):
        mark, before, behind = run[0], masked[run.start() - 1 : run.start()], masked[run.end() : run.end() + 1]
        start = starts.get(mark, -1)
        if start >= 0 and (before.isspace() or category(before) in {"Ps", "Pi"}):
            continue
        if start < 0 or (len(mark) == 1 and masked.find("\n", start, run.start()) >= 0):
            starts.pop(mark, None)
            if behind and not (behind.isspace() or (mark[0] == "_" and before.isalnum())):
                starts[mark] = run.end()
            continue
        first, is_closed = masked[start], _is_sign(before)
        # Of single marks, which may be a footnote's, both or the second alone stand beside a word.
        if _is_sign(first) and (is_closed or len(mark) > 1):
            wrapped.append((_word_start(masked, start - len(mark)), start - len(mark)))
        if is_closed or (mark[0] == "_" and not masked[start : run.start()].isascii()):
            wrapped.append(word.span() if (word := _FIRST_WORD.match(masked, run.end())) else (0, 0))
        del starts[mark]
    shown, at = [], 0
    for begin, end in sorted(wrapped):
        if at <= begin < end:  # a word between two bold texts is wrapped once
            shown += [text[at:begin], f":color[{text[begin:end]}]"]
            at = end
    return "".join([*shown, text[at:]])


def _word_start(text: str, end: int) -> int:
    start = end
    while start and text[start - 1].isalnum():
        start -= 1
    return start


def _is_sign(char: str) -> bool:
    """Whether CommonMark takes a character for punctuation."""
    return not char.isalnum() and not char.isspace()


def _read(text: str, found: re.Match[str], ends: dict[str, deque[int]]) -> tuple[int, str | None]:
    """Returns a mark's end and rendered piece; None for prose."""
    mark, at = found[0], found.end()
    if mark in _CLOSING:
        close = text.find(_CLOSING[mark], at, at + _MOST_FORMULA_CHARS)
        body = text[at:close].strip() if close > at else ""
        return (close + 2, _formula(body, "$" if mark == r"\(" else "$$")) if body else (at, mark)
    if mark[0] == "\\":
        return at, mark
    close = _end_of_run(mark, at, ends)
    if mark[0] == "`":
        return (close, _SPAN_BREAK.sub(" ", text[found.start() : close])) if close else (at, None)
    body = text[at : close - len(mark)] if close else ""
    is_formula = bool(body) and (
        len(mark) > 1 or _is_formula(body, text[: found.start()][-1:], text[close : close + 1])
    )
    return (close, _formula(body, mark)) if is_formula else (at, r"\$" * len(mark))


def _end_of_run(mark: str, at: int, ends: dict[str, deque[int]]) -> int:
    """Returns the end of the next equal run, 0 if there is none. Amortised O(1): each run is visited once."""
    while ends[mark] and ends[mark][0] <= at:
        ends[mark].popleft()
    return ends[mark][0] if ends[mark] else 0


def _is_formula(body: str, before: str, behind: str) -> bool:
    """Returns True if the text between two `$` is a formula rather than prose between two prices."""
    if body[0].isspace() or body[-1].isspace() or body[-1] == "\\" or _RESERVED.search(body):
        return False
    if _RELATION.search(body):
        return True
    if before.isdigit() or (behind.isascii() and behind.isalnum()):
        return False
    bare = _TEXT_COMMAND.sub("·", body)  # a sign keeps the numbers beside a command apart
    if not body[0].isdigit():
        return " " not in body or _LONG_WORDS.search(bare) is None
    if _NUMBER.fullmatch(body):
        return True
    is_open = _OPEN_END.search(body) is not None or ("&" in bare and r"\begin" not in body)
    return not is_open and _OPERATOR.search(body) is not None and _WORDS.search(_PRODUCT.sub("·", bare)) is None


def _formula(body: str, mark: str) -> str:
    # Streamlit loads its formula renderer only for a formula on a single line. A mark ends at the next equal one, even
    # if that is escaped.
    mark = "$$" if "$" in body else mark
    return f"{mark}{' '.join(body.split())}{mark}"


def _escape(prose: str, *, is_row: bool = False) -> str:
    prose = prose.replace("![", "[").replace(":material/", r":material\/")
    prose = _SHORTCODE.sub(r":color[\:]\1:", _DIRECTIVE.sub(r"\:", prose))
    prose = _SYMBOL.sub(lambda sign: f"{sign[0][0]}:color[{sign[0][1]}]{sign[0][2:]}", prose)
    prose = _TIMES.sub(r"\*", prose)
    prose = _TILDES.sub(lambda run: r"\~" if run[0] == "~" else run[0], prose)
    return _BREAK.sub(_DRAWN_BREAK, prose) if is_row else prose


def _escape_links(prose: str, *, is_row: bool = False) -> str:
    # Streamlit links bare addresses after parsing, where escapes are gone: a directive separates their characters.
    return _MAIL_SIGN.sub(":color[@]", _BRACKET.sub(r"\\\g<0>", _escape(prose, is_row=is_row)))


def _part_address(address: str) -> str:
    return _ADDRESS_SIGN.sub(lambda sign: f":color[\\{sign[0]}]" if sign["parted"] else f"\\{sign[0]}", address)
