"""Extracts the text of a PDF or Office document in a separate process: from standard input, to standard output as JSON.

Runs as a script with an empty environment and imports nothing of the product, so that a hostile file controls at most
this process.
"""

from __future__ import annotations

import functools
import io
import json
import re
import resource
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final
from xml.etree import ElementTree as ET

# Encodings of Korean text in PDFs of older programs; all are CP949 or a part of it.
_KOREAN: Final = [f"/{name}-{direction}" for name in ("KSC-EUC", "KSCms-UHC", "KSCms-UHC-HW") for direction in "HV"]


def main() -> None:
    cpu_seconds, memory_bytes, max_pages, max_chars = map(int, sys.argv[1:])
    for kind, most in (
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    try:
        data = sys.stdin.buffer.read()
        result = read(data, max_pages, max_chars) if data[:2] != b"PK" else read_office(data, max_chars)
    except (MemoryError, RecursionError):
        result = "too_heavy"
    sys.stdout.buffer.write(json.dumps(result).encode())


def read(data: bytes, max_pages: int, max_chars: int) -> list[str | None] | str:
    """Returns the text of each page, None for a page that can't be read, or the reason for refusing the file."""
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
    chars = 0
    for page in reader.pages:
        try:
            text = "\n".join([page.extract_text(), *_annotations(page)])
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001  # one page costs itself alone, whatever is wrong with it
            pages.append(None)
            continue
        pages.append(text)
        chars += len(text)
        if chars > max_chars:
            return "too_long"
    return "damaged" if all(page is None for page in pages) else pages


def _annotations(page: Mapping[str, Any]) -> Iterator[str]:
    """Yields a page's filled form fields as `name: value`, and its notes."""
    for reference in page.get("/Annots") or ():
        annotation = reference.get_object()
        if annotation.get("/Subtype") != "/Widget":
            note = annotation.get("/Contents")
            if isinstance(note, str) and note.strip():
                yield note
            continue
        name = annotation.get("/T")
        value = annotation.get("/V")
        parent = annotation.get("/Parent")
        if parent is not None:  # of several widgets, or of a group
            parent = parent.get_object()
            name = ".".join(str(part) for part in (parent.get("/T"), name) if part is not None)
            value = parent.get("/V") if value is None else value
        if isinstance(value, str) and value.strip() and value != "/Off":
            yield f"{name}: {value.removeprefix('/')}" if name else value


_MOST_XML_BYTES: Final = 100 * 1024 * 1024
_RELATED: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_DATES: Final = {*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)}  # formats without a text of their own
_END_OF_DATES: Final = 2_958_466  # the first of the year 10,000
_NOT_DATE: Final = re.compile(r'"[^"]{0,255}"|\[[^\]]{0,255}\]|\\.')
_COLUMN: Final = re.compile("[A-Z]{1,3}")


class _Package:
    """A document of Office: XML files in a ZIP file."""

    def __init__(self, data: bytes) -> None:
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self.names = set(self._zip.namelist())
        if sum(info.file_size for info in self._zip.infolist() if info.filename.endswith(".xml")) > _MOST_XML_BYTES:
            raise MemoryError

    def parse(self, name: str) -> ET.Element:
        """Returns a file's root, empty without the file."""
        empty = ET.Element("none")
        return ET.fromstring(self._zip.read(name)) if name in self.names else empty  # noqa: S314  # under limits

    def related(self, name: str, kind: str) -> Iterator[tuple[ET.Element, ET.Element]]:
        """Yields the elements of a kind in a file, each with the root of the file that it names."""
        folder, _, file = name.rpartition("/")
        targets = {one.get("Id"): one.get("Target", "") for one in self.parse(f"{folder}/_rels/{file}.rels")}
        for element in self.parse(name).iter():
            if _local(element) == kind and (target := targets.get(element.get(_RELATED))):
                yield element, self.parse(target.lstrip("/") if target.startswith("/") else f"{folder}/{target}")


def read_office(data: bytes, max_chars: int) -> list[str | None] | str:
    """Returns the text of a document, of its sheets or of its slides as one page, or the reason for refusing it."""
    try:
        package = _Package(data)
        folders = {name.partition("/")[0] for name in package.names}
        if "word" in folders:
            names = (f"word/{name}.xml" for name in ("document", "footnotes", "endnotes", "comments"))
            parts = ["".join(_words(package.parse(name))) for name in names]
        elif "xl" in folders:
            parts = [f"— {name} —\n{text}" for name, text in _sheets(package)]
        elif "ppt" in folders:
            slides = package.related("ppt/presentation.xml", "sldId")
            parts = [f"— {number} —\n{''.join(_words(root))}" for number, (_, root) in enumerate(slides, 1)]
        else:
            return "kind"
    except (zipfile.BadZipFile, zlib.error, ET.ParseError, EOFError, ValueError, LookupError):
        return "damaged"
    text = "\n\n".join(filter(None, (part.strip("\n") for part in parts)))
    return "too_long" if len(text) > max_chars else [text]


def _local(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _words(element: ET.Element) -> Iterator[str]:
    """Yields the text below an element: a line for each paragraph, and for each row of a table."""
    for child in element:
        match _local(child):
            case "t":
                yield child.text or ""
            case "tab":
                yield "\t"
            case "br" | "cr":
                yield "\n"
            case "pPr" | "rPr" | "rPh" | "Fallback":  # settings, readings of Japanese, what is said twice
                pass
            case "tr":
                cells = [" ".join("".join(_words(cell)).split()) for cell in child if _local(cell) == "tc"]
                yield " | ".join(cells) + "\n"
            case name:
                yield from _words(child)
                yield "\n" if name == "p" else ""


def _sheets(package: _Package) -> Iterator[tuple[str, str]]:
    """Yields each sheet's name and rows, with tabs between the cells."""
    shared = ["".join(_words(item)) for item in package.parse("xl/sharedStrings.xml")]
    styles = package.parse("xl/styles.xml")
    own = {one.get("numFmtId"): one.get("formatCode", "") for one in styles.iter() if _local(one) == "numFmt"}
    cells = next((one for one in styles if _local(one) == "cellXfs"), ())
    dated = {
        str(style)
        for style, one in enumerate(cells)
        if _is_date(one.get("numFmtId", "0"), own.get(one.get("numFmtId"), ""))
    }
    for sheet, root in package.related("xl/workbook.xml", "sheet"):
        rows: list[str] = []
        for row in (one for one in root.iter() if _local(one) == "row"):
            values: list[str] = []
            for cell in row:
                column = _COLUMN.match(cell.get("r", ""))
                values += [""] * (_number(column[0]) - len(values) - 1 if column else 0)
                values.append(_value(cell, shared, is_date=cell.get("s") in dated))
            rows.append("\t".join(values).rstrip())
        yield sheet.get("name", ""), "\n".join(filter(None, rows))


def _is_date(format_id: str, code: str) -> bool:
    return int(format_id) in _DATES or not set("ymdhs").isdisjoint(_NOT_DATE.sub("", code).lower())


def _number(column: str) -> int:
    return functools.reduce(lambda number, letter: number * 26 + ord(letter) - 64, column, 0)


def _value(cell: ET.Element, shared: list[str], *, is_date: bool) -> str:
    kind, found = cell.get("t", "n"), next((one.text or "" for one in cell if _local(one) == "v"), "")
    if kind == "s":
        text = shared[int(found)]
    elif kind == "inlineStr":
        text = "".join(_words(cell))
    elif kind == "b":
        text = "TRUE" if found == "1" else "FALSE"
    elif kind == "n" and found:
        number = float(found)
        text = _date(number) if is_date and 0 <= number < _END_OF_DATES else f"{number:.15g}"
    else:
        text = found
    return " ".join(text.split())


def _date(days: float) -> str:
    moment = datetime(1899, 12, 30) + timedelta(seconds=round(days * 86_400))  # noqa: DTZ001  # a sheet knows no zone
    if days < 1:
        return f"{moment:%H:%M}"
    return f"{moment:%Y-%m-%d}" if days == int(days) else f"{moment:%Y-%m-%d %H:%M}"


if __name__ == "__main__":
    main()
