"""Extracts the text of a PDF, Office or HWPX document in a separate process: from standard input, as JSON.

Runs as a script with an empty environment and imports nothing of the product, so that a hostile file controls at most
this process.
"""

from __future__ import annotations

import functools
import io
import json
import posixpath
import re
import resource
import sys
import zipfile
import zlib
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree as ET

# Encodings of Korean text in PDFs of older programs; all are CP949 or a part of it.
_KOREAN: Final = [f"/{name}-{direction}" for name in ("KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW") for direction in "HV"]
# The text of pages, None for one that can't be read, and how much isn't text; or the reason for refusing the file.
Result = tuple[list[str | None], int] | str


def main() -> None:
    cpu_seconds, memory_bytes, max_pages, max_chars = map(int, sys.argv[1:5])
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    try:
        data = sys.stdin.buffer.read()
        is_office = data.startswith(b"PK")
        result = read_office(data, max_chars, *sys.argv[5:]) if is_office else read(data, max_pages, max_chars)
    except (MemoryError, RecursionError):
        result = "too_heavy"
    sys.stdout.buffer.write(json.dumps(result).encode())


def read(data: bytes, max_pages: int, max_chars: int) -> Result:
    """Reads a PDF; what is left out are its pictures."""
    from pypdf import PasswordType, PdfReader, _cmap  # noqa: PLC0415  # under the limits set above
    from pypdf.errors import DependencyError  # noqa: PLC0415  # see above

    _cmap._predefined_cmap.update(dict.fromkeys(_KOREAN, "cp949"))  # noqa: SLF001  # pypdf has the Chinese and Japanese ones
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            return "encrypted"
    except DependencyError:  # AES needs a package that is installed only for sign-in
        return "encrypted"
    if len(reader.pages) > max_pages:
        return "too_many_pages"
    pages: list[str | None] = []
    left_out: set[object] = set()
    chars = 0
    for page in reader.pages:
        try:
            text = "\n".join([page.extract_text(), *dict.fromkeys(_annotations(page))])
            drawn = (page.get("/Resources", {}).get("/XObject") or {}).items()
            pictures = {getattr(one, "idnum", id(one)) for _, one in drawn if _object(one).get("/Subtype") == "/Image"}
            left_out |= pictures or ({len(pages)} if drawn and not text.strip() else set())
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  # one page costs itself alone, whatever is wrong with it
            pages.append(None)
            continue
        pages.append(text)
        chars += len(text)
        if chars > max_chars:
            return "too_long"
    return "damaged" if all(page is None for page in pages) else (pages, len(left_out))


def _annotations(page: Mapping[str, Any]) -> Iterator[str]:
    """Yields a page's filled form fields as `name: value`, and its notes."""
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") == "/Widget":
            yield from _field(annotation)
        elif (note := _text(annotation.get("/Contents"))).strip():
            yield note


_MOST_GROUPS: Final = 20  # of fields in each other


def _field(widget: Mapping[str, Any]) -> Iterator[str]:
    """Yields the values of a field as they are shown; what a widget lacks, its group has."""
    groups = [widget]
    while (parent := groups[-1].get("/Parent")) is not None and len(groups) < _MOST_GROUPS:
        groups.append(parent.get_object())
    own = ChainMap(*map(dict, groups))
    name = ".".join(_text(group["/T"]) for group in reversed(groups) if "/T" in group)
    options = [part if isinstance(part, list) else [part] for part in map(_object, _object(own.get("/Opt")) or ())]
    shown = {_text(part[0]): _text(part[-1]) for part in options if part}
    value = _object(own.get("/V"))
    if own.get("/FT") == "/Btn":  # a box's state may be the number of its option
        shown |= {f"/{place}": _text(part[-1]) for place, part in enumerate(options) if part}
        value = own.get("/AS") if value is None else value
    elif value is None:
        value = [options[place][0] for place in _object(own.get("/I")) or ()]
    chosen = map(_text, value if isinstance(value, list) else [value])
    said = ", ".join(shown.get(one, one.removeprefix("/")) for one in chosen if one.strip() and one != "/Off")
    if said:
        yield f"{name}: {said}" if name else said


def _object(value: Any) -> Any:  # noqa: ANN401  # an object of the PDF, perhaps by reference
    return value.get_object() if hasattr(value, "get_object") else value


def _text(value: Any) -> str:  # noqa: ANN401  # see above
    value = _object(value)
    value = value.get_data() if hasattr(value, "get_data") else value
    if isinstance(value, bytes):
        value = value.decode("utf-16" if value.startswith(b"\xfe\xff") else "cp949", "replace")
    return value if isinstance(value, str) else ""


_MOST_XML_BYTES: Final = 100 * 1024 * 1024
_USUAL: Final = ("word/document.xml", "xl/workbook.xml", "ppt/presentation.xml", "Contents/content.hpf")
# Kinds of related parts that aren't text.
_LEFT_OUT: Final = {
    *("image", "hdphoto", "video", "audio", "media"),
    *("oleObject", "package", "chartEx", "control", "aFChunk"),
}


class _Office:
    """A document of Office or HWPX: XML parts in a ZIP file, which name each other."""

    def __init__(self, data: bytes, notes: str, comments: str) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        # What names a part may write it in other letters, and some programs write names with backslashes.
        self._names = {name.replace("\\", "/").lstrip("/").lower(): name for name in self._zip.namelist()}
        self._bytes_left = _MOST_XML_BYTES
        self._notes, self._comments = notes, comments
        self.left_out: set[str] = set()
        locked = (one for one in self.parse("META-INF/manifest.xml").iter() if _local(one) == "encryption-data")
        self.is_encrypted = any(info.flag_bits & 1 for info in self._zip.infolist()) or any(True for _ in locked)

    def parse(self, name: str) -> ET.Element:
        """Returns a part's root, empty without the part; one that is damaged costs itself alone."""
        stored = self._names.get(name.lstrip("/").lower())
        if stored is None:
            return ET.Element("none")
        self._bytes_left -= self._zip.getinfo(stored).file_size
        if self._bytes_left < 0:
            raise MemoryError
        try:
            return ET.fromstring(self._zip.read(stored))  # noqa: S314  # under limits
        except (ET.ParseError, zipfile.BadZipFile, zlib.error, EOFError):
            self.left_out.add(name)
            return ET.Element("none")

    def _related(self, name: str) -> dict[str, tuple[str, str]]:
        """Returns the kind and the name of each part that a part names, by id."""
        folder, _, file = name.rpartition("/")
        found = {}
        for one in self.parse(f"{folder}/_rels/{file}.rels"):
            if one.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, unquote(one.get("Target", ""))))
                found[one.get("Id", "")] = one.get("Type", "").rpartition("/")[2], target.lstrip("/")
        return found

    def _names_of(self, name: str, kind: str) -> list[str]:
        return [target for one, target in self._related(name).values() if one == kind]

    def _part(self, name: str, kind: str) -> ET.Element:
        return self.parse(next(iter(self._names_of(name, kind)), ""))

    def text(self) -> str | None:
        """Returns the text of a document, of its sheets or of its slides; None if it is none of these."""
        opened = [one.get("full-path", "") for one in self.parse("META-INF/container.xml").iter()]
        found = [*self._names_of("", "officeDocument"), *opened, *_USUAL]
        main = next((name for name in found if name.lower() in self._names and name.endswith((".xml", ".hpf"))), "")
        readers = {"document": self._document, "workbook": self._sheets, "presentation": self._slides}
        root = self.parse(main)
        reader = self._hangul if main.endswith(".hpf") else readers.get(_local(root))
        if main in self.left_out:
            raise ValueError
        return reader and _joined(reader(main, root))

    def _document(self, main: str, root: ET.Element) -> Iterator[str]:
        yield from self._around(main, "header")
        yield "".join(_words(root, _list_marks(self._part(main, "numbering"), self._part(main, "styles"))))
        for kind in ("footnotes", "endnotes"):
            yield "".join(_words(self._part(main, kind)))
        yield from self._beside(main)
        yield from self._around(main, "footer")

    def _around(self, main: str, kind: str) -> Iterator[str]:
        """Yields headers or footers, each once; those without a letter are numbers of pages."""
        names = self._names_of(main, kind)
        texts = [text for name in names for text in ("".join(_words(self.parse(name))), *self._beside(name))]
        yield from (text for text in dict.fromkeys(texts) if _LETTER.search(text))

    def _beside(self, name: str) -> Iterator[str]:
        """Yields the text of a part's charts, drawings, notes and comments, and counts what has none."""
        for kind, target in self._related(name).values():
            if kind in _LEFT_OUT:
                self.left_out.add(target)
            elif kind == "chart":
                yield from _chart(self.parse(target))
            elif kind in {"diagramData", "drawing"}:
                yield "".join(_words(self.parse(target), _slide_marks()))
                yield from self._beside(target)
            elif kind in {"notesSlide", "comments"}:
                root = self.parse(target)
                cells = [one for one in root.iter() if one.get("ref")]  # of a sheet
                said = (f"{one.get('ref')}: {' '.join(''.join(_words(one)).split())}" for one in cells)
                text = "\n".join(said) or "".join(_words(root)).strip("\n")
                yield text and f"{self._comments if kind == 'comments' else self._notes}\n{text}"

    def _slides(self, main: str, root: ET.Element) -> Iterator[str]:
        related = self._related(main)
        slides = [_get(one, "id", of=_RELATED) for one in root.iter() if _local(one) == "sldId"]
        for number, (_, name) in enumerate((related[key] for key in slides if key in related), 1):
            words = "".join(_words(self.parse(name), _slide_marks()))
            yield f"— {number} —\n" + _joined((words, *self._beside(name)))

    def _hangul(self, main: str, root: ET.Element) -> Iterator[str]:
        """Yields the sections of an HWPX document."""
        items = {one.get("id", ""): one.get("href", "") for one in root.iter() if _local(one) == "item"}
        self.left_out.update(name for name in items.values() if name.lower().startswith("bindata/"))
        order = [items.get(one.get("idref", ""), "") for one in root.iter() if _local(one) == "itemref"]
        folder = main.rpartition("/")[0]
        names = (name if name.lower() in self._names else f"{folder}/{name}" for name in (*order, *items.values()))
        roots = [self.parse(name) for name in dict.fromkeys(names) if name.endswith(".xml")]
        mark = _hangul_marks(one for root in roots if _local(root) == "head" for one in root.iter())
        yield from ("".join(_words(root, mark)) for root in roots if _local(root) == "sec")

    def _sheets(self, main: str, root: ET.Element) -> Iterator[str]:
        """Yields each sheet's name and rows, with tabs between the cells."""
        related = self._related(main)
        shared = ["".join(_words(item)) for item in self._part(main, "sharedStrings")]
        formats = _formats(self._part(main, "styles"))
        is_1904 = _get(root.find("{*}workbookPr"), "date1904") in {"1", "true"}
        for sheet in (one for one in root.iter() if _local(one) == "sheet"):
            name = related.get(_get(sheet, "id", of=_RELATED), ("", ""))[1]
            page = self.parse(name)
            rows: list[str] = []
            for row in (one for one in page.iter() if _local(one) == "row"):
                values: list[str] = []
                for cell in row:
                    column = _COLUMN.match(cell.get("r", ""))
                    values += [""] * (_number(column[0]) - len(values) - 1 if column else 0)
                    values.append(_value(cell, shared, formats.get(cell.get("s", ""), ""), is_1904=is_1904))
                rows.append("\t".join(values).rstrip())
            codes = (_PAGE_CODE.sub(" ", one.text or "") for one in page.iterfind("{*}headerFooter/*"))
            around = (" ".join(code.split()) for code in codes)
            said = _joined(("\n".join(filter(None, rows)), *self._beside(name), *around))
            yield f"— {sheet.get('name', '')} —\n{said}"


def read_office(data: bytes, max_chars: int, notes: str, comments: str) -> Result:
    """Reads a document as one page; the labels stand above what isn't said in its body."""
    try:
        office = _Office(data, notes, comments)
        text = "" if office.is_encrypted else office.text()
    except (zipfile.BadZipFile, ValueError, LookupError, NotImplementedError):
        return "damaged"
    if office.is_encrypted or text is None:
        return "kind" if text is None else "encrypted"
    return "too_long" if len(text) > max_chars else ([text], len(office.left_out))


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(filter(None, (part.strip("\n") for part in parts)))


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


_RELATED: Final = "relationships}"


def _get(element: ET.Element | None, name: str, default: str = "", *, of: str = "") -> str:
    """Returns an attribute by its name in any namespace, or in one that ends so."""
    found = {} if element is None else element.attrib
    return next((value for key, value in found.items() if ("}" + key).endswith((of or "}") + name)), default)


Mark = Callable[[ET.Element], str]
# Settings, readings of Japanese, what was moved away, is said twice, or numbers a slide.
_UNSAID: Final = {"pPr", "rPr", "rPh", "rt", "subText", "Fallback", "moveFrom"}
_BOXES: Final = {"txbxContent", "drawText"}
_SIGNS: Final = {
    **dict.fromkeys(("tab", "ptab"), "\t"),
    **dict.fromkeys(("br", "cr", "lineBreak"), "\n"),
    **dict.fromkeys(("noBreakHyphen", "hyphen"), "-"),
    **dict.fromkeys(("nbSpace", "fwSpace"), " "),
}
# Of Wingdings, whose letters have no place in Unicode.
_SYMBOLS: Final = dict(zip("\uf0fc\uf0fe\uf0fd\uf0a8\uf06f\uf0a7\uf0d8\uf0e0\uf0b7", "✓☑☒☐☐▪▶→•", strict=True))


def _words(elements: Iterable[ET.Element], mark: Mark = lambda _: "") -> Iterator[str]:
    """Yields the text below elements: a line for each paragraph behind its mark, and for each row of a table."""
    for child in elements:
        name = _local(child)
        if name in {"t", "text", "script"}:
            yield from _inline(child)
        elif name in _SIGNS:
            yield _SIGNS[name]
        elif name == "sym":
            sign = chr(int(_get(child, "char", "fffd"), 16) & 0xFFFF)
            yield _SYMBOLS.get(sign, sign)
        elif name == "tr":
            yield " | ".join(_row(child, mark)) + "\n"
        elif name == "p":
            yield mark(child) + "".join(_words(child, mark)).strip("\n") + "\n"
        elif name in {"footNote", "endNote", "hiddenComment", "fieldBegin"}:  # of HWPX, where they are said
            text = " ".join("".join(_words(child)).split())
            yield text and f" [{text}]"
        elif name not in _UNSAID and (name != "sp" or _get(child.find("{*}nvSpPr/{*}nvPr/{*}ph"), "type") != "sldNum"):
            # The marks of each text of a slide begin anew; a box's text and a table of HWPX stand within a line.
            yield mark(child) if name == "txBody" else "\n" * (name in _BOXES or "rowCnt" in child.attrib)
            yield child.get("composeText", "")
            yield from _words(child, mark)


def _inline(text: ET.Element) -> Iterator[str]:
    yield text.text or ""
    is_deleted = False
    for sign in text:
        is_deleted = _local(sign) == "deleteBegin" or (is_deleted and _local(sign) != "deleteEnd")
        if not is_deleted:
            yield from (*_words([sign]), sign.tail or "")


def _row(row: ET.Element, mark: Mark) -> list[str]:
    """Returns a row's cells in their columns, "" where another cell reaches."""
    cells = [""] * int(_get(row.find("{*}trPr/{*}gridBefore"), "val", "0"))
    for cell in _cells(row):
        cells += [""] * (int(_get(cell.find("{*}cellAddr"), "colAddr", "0")) - len(cells))
        cells.append(" ".join("".join(_words(cell, mark)).split()))
        cells += [""] * (int(_get(cell.find("{*}tcPr/{*}gridSpan"), "val", "1")) - 1)
    return cells


def _cells(row: ET.Element) -> Iterator[ET.Element]:
    """Yields a row's cells, also those in content controls and custom XML."""
    for child in row:
        yield from [child] if _local(child) == "tc" else _cells(child)


def _chart(root: ET.Element) -> Iterator[str]:
    """Yields a chart's titles, and a line for each series with its points."""
    yield from ("".join((*_words(one), *_points(one).values())) for one in root.iter() if _local(one) == "title")
    for series in (one for one in root.iter() if _local(one) == "ser"):
        parts = {_local(part): _points(part) for part in series}
        labels, values = (parts.get(key) or parts.get(other) or {} for key, other in (("cat", "xVal"), ("val", "yVal")))
        said = ", ".join(f"{labels.get(at, at)}: {value}" for at, value in values.items())
        yield " — ".join(filter(None, (*parts.get("tx", {}).values(), said)))


def _points(element: ET.Element) -> dict[str, str]:
    values = ((one.get("idx", ""), one.find("{*}v")) for one in element.iter())
    return {place: value.text or "" for place, value in values if value is not None}


class _Level(NamedTuple):
    """How a level of a list is numbered; `%2` in its text stands for the number of the second level."""

    start: int
    kind: str
    text: str


_NUMERALS: Final = {
    kind: signs
    for kinds, signs in (
        ("lowerLetter alphaLc LATIN_SMALL", "abcdefghijklmnopqrstuvwxyz"),
        ("upperLetter alphaUc LATIN_CAPITAL", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
        ("ganada HANGUL_SYLLABLE", "가나다라마바사아자차카타파하"),
        ("chosung HANGUL_JAMO", "ㄱㄴㄷㄹㅁㅂㅅㅇㅈㅊㅋㅌㅍㅎ"),
        ("koreanDigital koreanCounting HANGUL_PHONETIC", "일이삼사오육칠팔구십"),
        ("koreanDigital2 chineseCounting japaneseCounting IDEOGRAPH", "一二三四五六七八九十"),
        ("decimalEnclosedCircle decimalEnclosedCircleChinese circleNum CIRCLED_DIGIT", "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"),
        ("CIRCLED_HANGUL_SYLLABLE", "㉮㉯㉰㉱㉲㉳㉴㉵㉶㉷㉸㉹㉺㉻"),
        ("CIRCLED_HANGUL_JAMO", "㉠㉡㉢㉣㉤㉥㉦㉧㉨㉩㉪㉫㉬㉭"),
    )
    for kind in kinds.split()
}
_ROMAN: Final = [
    ("", *row.split()) for row in ("I II III IV V VI VII VIII IX", "X XX XXX XL L LX LXX LXXX XC", "C CC CCC")
]


def _numeral(number: int, kind: str) -> str:
    if "roman" in kind.lower() and 0 < number < 400:  # noqa: PLR2004  # as far as the table goes
        text = _ROMAN[2][number // 100] + _ROMAN[1][number // 10 % 10] + _ROMAN[0][number % 10]
        return text.lower() if kind in {"lowerRoman", "romanLc", "ROMAN_SMALL"} else text
    signs = _NUMERALS.get(kind, "")
    if signs.isalpha() and signs.isascii():  # Word goes on with aa, bb
        return signs[(number - 1) % len(signs)] * (1 + (number - 1) // len(signs) % 9)
    return signs[number - 1] if 0 < number <= len(signs) else f"{number:0{2 if kind == 'decimalZero' else 1}}"


class _Counts:
    """The numbers of the lists, counted through a document."""

    def __init__(self) -> None:
        self.lists: dict[str, dict[int, int]] = {}

    def mark(self, key: str, levels: Mapping[int, _Level], at: int) -> str:
        """Counts a paragraph of a list and returns its number or bullet with a blank, or ""."""
        if at not in levels or levels[at].kind == "bullet":
            return "• " if at in levels else ""
        known = self.lists.get(key, {})
        counts = {level: count for level, count in known.items() if level < at}
        counts[at] = known.get(at, levels[at].start - 1) + 1
        self.lists[key] = counts

        def said(found: re.Match[str]) -> str:
            level = levels.get(int(found[1]) - 1, levels[at])
            return _numeral(counts.get(int(found[1]) - 1, level.start), level.kind)

        text = _NUMBER_OF_LEVEL.sub(said, levels[at].text).strip()
        return text and f"{text} "


def _list_marks(numbering: ET.Element, styles: ET.Element) -> Mark:
    """Returns what numbers the paragraphs of a Word document, each as it or its style says."""

    def levels_of(element: ET.Element) -> dict[int, _Level]:
        levels = {}
        for one in element.iterfind("{*}lvl"):
            start, kind, text = (_get(one.find("{*}" + part), "val") for part in ("start", "numFmt", "lvlText"))
            levels[int(_get(one, "ilvl", "0"))] = _Level(int(start or 0), kind or "decimal", text)
        return levels

    abstract = {_get(one, "abstractNumId"): levels_of(one) for one in numbering.iterfind("{*}abstractNum")}
    by_style = {_get(one, "styleId"): one for one in styles.iterfind("{*}style")}
    lists: dict[str, tuple[str, dict[int, _Level]]] = {}
    for one in numbering.iterfind("{*}num"):
        key, number = _get(one.find("{*}abstractNumId"), "val"), _get(one, "numId")
        levels = dict(abstract.get(key, {}))
        for other in one.iterfind("{*}lvlOverride"):
            levels |= levels_of(other)
            at, start = int(_get(other, "ilvl", "0")), _get(other.find("{*}startOverride"), "val")
            if start and at in levels:
                key, levels[at] = f"{key} {number}", levels[at]._replace(start=int(start))
        lists[number] = key, levels
    counts = _Counts()

    def mark(paragraph: ET.Element) -> str:
        one: ET.Element | None = paragraph
        number = level = ""
        for _ in range(_MOST_STYLES):
            if one is None:
                break
            number = number or _get(one.find("{*}pPr/{*}numPr/{*}numId"), "val")
            level = level or _get(one.find("{*}pPr/{*}numPr/{*}ilvl"), "val")
            one = by_style.get(_get(one.find("{*}pPr/{*}pStyle"), "val") or _get(one.find("{*}basedOn"), "val"))
        return counts.mark(*lists.get(number, ("", {})), int(level or 0))

    return mark


_MOST_STYLES: Final = 10  # based on each other
_AUTO_NUMBER: Final = re.compile("(arabic|alphaLc|alphaUc|romanLc|romanUc|circleNum)(.*)")


def _slide_marks() -> Mark:
    """Returns what numbers the paragraphs of slides; each text begins anew."""
    counts = _Counts()

    def mark(paragraph: ET.Element) -> str:
        settings = paragraph.find("{*}pPr")
        at = int(_get(settings, "lvl", "0"))
        numbered = None if settings is None else settings.find("{*}buAutoNum")
        kind = _AUTO_NUMBER.match(_get(numbered, "type"))
        if kind is None or paragraph.find(".//{*}t") is None:
            counts.lists = {"": {level: count for level, count in counts.lists.get("", {}).items() if level < at}}
            return "• " if settings is not None and settings.find("{*}buChar") is not None else ""
        before, behind = "(" * ("Both" in kind[2]), ")" * ("Paren" in kind[2]) or "." * ("Period" in kind[2])
        level = _Level(int(_get(numbered, "startAt", "1")), kind[1], f"{before}%{at + 1}{behind}")
        return counts.mark("", {at: level}, at)

    return mark


def _hangul_marks(head: Iterable[ET.Element]) -> Mark:
    """Returns what numbers the paragraphs of an HWPX document."""
    lists: dict[str, dict[int, _Level]] = {}
    headings: dict[str, ET.Element | None] = {}
    for one in head:
        if _local(one) == "numbering":
            levels = lists[one.get("id", "")] = {}
            for level in one:
                said = _Level(int(level.get("start", "1")), level.get("numFormat", ""), level.text or "")
                levels[int(level.get("level", "1")) - 1] = said
        elif _local(one) == "paraPr":
            headings[one.get("id", "")] = one.find("{*}heading")
    counts = _Counts()

    def mark(paragraph: ET.Element) -> str:
        heading = headings.get(paragraph.get("paraPrIDRef", ""))
        kind, key = _get(heading, "type"), _get(heading, "idRef")
        if kind not in {"OUTLINE", "NUMBER"}:
            return "• " * (kind == "BULLET")
        key = key if key in lists else next(iter(lists), "")  # an outline's is that of its section, mostly the first
        return counts.mark(key, lists.get(key, {}), int(_get(heading, "level", "0")))

    return mark


_COLUMN: Final = re.compile("[A-Z]{1,3}")
_ESCAPED: Final = re.compile("_x([0-9A-Fa-f]{4})_")
# In a page's header: of a font, a size, a colour, or what the program fills in.
_PAGE_CODE: Final = re.compile(r'&(?:"[^"]*"|K[0-9A-F]{6}|\d{1,3}|[A-Z&])')
_BUILT_IN: Final = {9: "0%", 10: "0.00%", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0"} | {
    **dict.fromkeys((14, 15, 16, 17, 22, *range(27, 37), *range(50, 59)), "y-m-d h:mm"),
    **dict.fromkeys((18, 20, 32), "h:mm"),
    **dict.fromkeys((19, 21, 33), "h:mm:ss"),
}
_END_OF_DATES: Final = 2_958_465.99  # of the year 9,999
_EPOCHS_APART: Final = 1_462
_LEAP_DAY: Final = 60  # 29 February 1900, which wasn't
_YEAR_DAYS: Final = 366
_DAY_SECONDS: Final = 86_400
_UNIT_SECONDS: Final = {"h": 3_600, "m": 60, "s": 1}
_MOST_EXACT: Final = 1e15
_MOST_DECIMALS: Final = 10
# Quoted or escaped text, a currency before its language, what is as wide as a letter or repeated, a colour.
_LITERAL: Final = re.compile(
    r'"([^"]*+)"|\\(.)|\[\$([^]-]{0,40})[^]]{0,40}\]|[_*].|\[(?![hms]{1,40}\]|[<>=])[^]]{0,40}\]',
    re.DOTALL | re.IGNORECASE,
)
_GENERAL: Final = re.compile("General", re.IGNORECASE)
_DATED: Final = re.compile("[ymdhs]|aaa|e(?![+-])", re.IGNORECASE)
_WITH_DAY: Final = re.compile("[yde]|aaa")
_FRACTION: Final = re.compile(r"s\]?\.(0+)")
_UNIT: Final = re.compile(r"\[?(?:h+|m+|s+)\]?", re.IGNORECASE)
_SCIENTIFIC: Final = re.compile("[/Ee]")  # and fractions
_NO_DIGIT: Final = re.compile("[^0#?]")
_NO_PLACE: Final = re.compile("[^0#?,]")
_DIGIT: Final = re.compile("[0#?]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_NUMBER_OF_LEVEL: Final = re.compile("[%^]([1-9])")
_HIDDEN: Final = 0xF0000  # private letters stand for those that are no signs of a format
_ELAPSED: Final = re.compile(r"\[(h+|m+|s+)\]", re.IGNORECASE)
_CONDITION: Final = re.compile(r"\[(<=|>=|<>|<|>|=)(-?\d+(?:\.\d+)?)\]")
_PLACES: Final = re.compile(r"([0#?](?:.*[0#?.,])?|\.[0#?]+)", re.DOTALL)


def _formats(styles: ET.Element) -> dict[str, str]:
    """Returns the format of each style of a cell, "" for none, with its literals hidden."""
    own = {int(one.get("numFmtId", "0")): one.get("formatCode", "") for one in styles.iter() if _local(one) == "numFmt"}
    kinds = [int(one.get("numFmtId", "0")) for one in styles.iterfind("{*}cellXfs/*")]
    codes = (_LITERAL.sub(_hide, own.get(kind) or _BUILT_IN.get(kind, "")) for kind in kinds)
    return {str(style): _GENERAL.sub("@", code) for style, code in enumerate(codes)}


def _hide(literal: re.Match[str]) -> str:
    return "".join(chr(_HIDDEN + ord(sign) % 0x10000) for sign in "".join(filter(None, literal.groups())))


def _seen(text: str) -> str:
    return "".join(chr(ord(sign) - _HIDDEN) if _HIDDEN <= ord(sign) < _HIDDEN + 0x10000 else sign for sign in text)


def _number(column: str) -> int:
    return functools.reduce(lambda number, letter: number * 26 + ord(letter) - 64, column, 0)


def _value(cell: ET.Element, shared: list[str], code: str, *, is_1904: bool) -> str:
    kind, found = cell.get("t", "n"), next((one.text or "" for one in cell if _local(one) == "v"), "")
    if kind in {"s", "inlineStr", "str"}:
        said = shared[int(found)] if kind == "s" else found or "".join(_words(cell))
        text = _ESCAPED.sub(lambda escaped: chr(int(escaped[1], 16)), said)
        form = code.rpartition(";")[2]
        text = text.join(map(_seen, form.split("@"))) if "@" in form else text
    elif kind == "b":
        text = "TRUE" if found == "1" else "FALSE"
    elif kind == "d":
        text = found.removesuffix("Z").removesuffix("T00:00:00").replace("T", " ")
    else:
        text = _shown(float(found), code, is_1904=is_1904) if kind == "n" and found else found
    # A program that doesn't calculate leaves a formula without its value.
    formula = "" if text else next((f"={one.text}" for one in cell if _local(one) == "f" and one.text), "")
    return " ".join((text or formula).split())


def _shown(number: float, code: str, *, is_1904: bool) -> str:
    """Returns a number as its format shows it, but a date as ISO has it."""
    plain = f"{number:.15g}"
    if code in {"", "@"}:
        return plain
    sections = code.split(";")[:3]
    at = (1 if number < 0 else 2 * (number == 0)) % len(sections)
    if any(rules := [_CONDITION.search(section) for section in sections]):
        at = next((place for place, rule in enumerate(rules) if rule is None or _holds(number, rule)), 0)
    section = _CONDITION.sub("", sections[at])
    sign = "-" if number < 0 and (at == 0 or any(rules)) else ""
    if _ELAPSED.search(section):
        return sign + _seen(_duration(abs(number), section))
    if _DATED.search(section):
        most = _END_OF_DATES - _EPOCHS_APART * is_1904
        return _date(number, section.lower(), is_1904=is_1904) if 0 <= number < most else plain
    said = _filled(abs(Decimal(plain)), section) if abs(number) < _MOST_EXACT else None
    return plain if said is None else sign + _seen(said)


def _holds(number: float, rule: re.Match[str]) -> bool:
    limit = float(rule[2])
    return "<=>"[(number > limit) - (number < limit) + 1] in rule[1]


def _duration(days: float, section: str) -> str:
    places = len(found[1]) if (found := _FRACTION.search(section)) else 0
    rest = round(days * _DAY_SECONDS, places)

    def counted(unit: re.Match[str]) -> str:
        nonlocal rest
        letters = unit[0].strip("[]")
        count, rest = divmod(rest, _UNIT_SECONDS[letters[0].lower()])
        return f"{int(count):0{len(letters)}}"

    text = _UNIT.sub(counted, section.partition(".0")[0])
    return text + (f"{rest:.{places}f}"[1:] if places else "")


def _date(days: float, section: str, *, is_1904: bool) -> str:
    places = len(found[1]) if (found := _FRACTION.search(section)) else 0
    seconds = round(days * _DAY_SECONDS, places)
    whole_days = int(seconds // _DAY_SECONDS)
    epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30 + (whole_days < _LEAP_DAY))  # noqa: DTZ001  # a sheet knows no zone
    moment = epoch + timedelta(seconds=seconds)
    time = f"{moment:%H:%M:%S}" if "s" in section else f"{moment:%H:%M}"
    time += f"{seconds % 1:.{places}f}"[1:] if places else ""
    has_date = _WITH_DAY.search(section) or not {"h", "s"} & {*section}
    if (days < 1 and not is_1904) or (days < _YEAR_DAYS and not has_date):
        return time
    date = "1900-02-29" if whole_days == _LEAP_DAY and not is_1904 else f"{moment:%Y-%m-%d}"
    return f"{date} {time}" if seconds % _DAY_SECONDS else date


def _filled(number: Decimal, section: str) -> str | None:
    """Returns a number's digits in the places of a format; None for one that only rounds, groups or colours.

    So a number that is shown as 1,235 stays 1234.56, while shares, numbers of telephones and units are as shown.
    """
    if _SCIENTIFIC.search(section):  # fractions, powers of ten
        return None
    before, places, behind, *_ = *_PLACES.split(section, maxsplit=1), "", ""
    literal = _seen(before + behind).strip(" -@")
    whole, _, decimals = places.partition(".")
    scale = len(places) - len(places.rstrip(","))
    whole, decimals = whole.rstrip(","), _NO_DIGIT.sub("", decimals)[:_MOST_DECIMALS]
    is_split = _NO_PLACE.search(whole) is not None
    zeros = len(_DIGIT.findall(whole[whole.find("0") :])) if "0" in whole else 0
    if not (literal or is_split or scale or zeros > 1):
        return None
    value = number.scaleb(2 * section.count("%") - 3 * scale)
    if not places:  # General, or a word in the number's place
        return f"{number:f}".join(section.split("@"))
    digits, _, fraction = f"{value.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP):f}".partition(".")
    digits, fraction = digits.lstrip("0").zfill(zeros), fraction.rstrip("0").ljust(decimals.count("0"), "0")
    if is_split:  # from the right, and the first place takes all that is left
        filled = ""
        for place in reversed(whole[1:].replace(",", "")):
            is_place = place in "0#?"
            filled = (digits[-1:] if is_place else place) + filled
            digits = digits[:-1] if is_place else digits
        digits += filled
    elif "," in whole and digits:
        digits = f"{int(digits):,}"
    return before + digits + (f".{fraction}" if fraction else "") + behind


if __name__ == "__main__":
    main()
