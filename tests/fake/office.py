"""Documents of Office, with no more in them than a reader needs."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from typing import Final
from xml.sax.saxutils import escape

_OPEN: Final = "http://schemas.openxmlformats.org"
_WORD: Final = f"{_OPEN}/wordprocessingml/2006/main"
_SHEET: Final = f"{_OPEN}/spreadsheetml/2006/main"
_DRAWING: Final = f"{_OPEN}/drawingml/2006/main"
_RELATED: Final = f"{_OPEN}/officeDocument/2006/relationships"


def zipped(files: Mapping[str, str]) -> bytes:
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return written.getvalue()


def docx(*paragraphs: str, table: Sequence[Sequence[str]] = (), note: str = "") -> bytes:
    def lines(*texts: str) -> str:
        return "".join(f"<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr>{runs(text)}</w:p>" for text in texts)

    def runs(text: str) -> str:
        return "<w:r><w:tab/></w:r>".join(f"<w:r><w:t>{escape(part)}</w:t></w:r>" for part in text.split("\t"))

    rows = "".join(f"<w:tr>{''.join(f'<w:tc>{lines(cell)}</w:tc>' for cell in row)}</w:tr>" for row in table)
    body = f"<w:body>{lines(*paragraphs)}<w:tbl>{rows}</w:tbl></w:body>"
    files = {"word/document.xml": f'<w:document xmlns:w="{_WORD}">{body}</w:document>'}
    if note:
        files["word/footnotes.xml"] = f'<w:footnotes xmlns:w="{_WORD}">{lines(note)}</w:footnotes>'
        files["word/_rels/document.xml.rels"] = links(("f", "footnotes", "footnotes.xml"))
    return zipped(files)


def links(*targets: tuple[str, str, str]) -> str:
    """Each link's id, the last word of its kind, and its target; a kind with a colon is whole."""
    listed = "".join(
        f'<Relationship Id="{key}" Type="{kind if ":" in kind else f"{_RELATED}/{kind}"}" Target="{target}"/>'
        for key, kind, target in targets
    )
    return f"<Relationships>{listed}</Relationships>"


def xlsx(**sheets: str) -> bytes:
    """Each sheet's rows as they stand in its file; style 1 is a date's, 2 that of a date with a format of its own."""
    listed = "".join(
        f'<sheet name="{name}" sheetId="{number}" r:id="{name}"/>' for number, name in enumerate(sheets, 1)
    )
    styles = '<numFmts><numFmt numFmtId="200" formatCode="yyyy&quot;년&quot; m&quot;월&quot;"/></numFmts>'
    styles += '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="200"/></cellXfs>'
    shared = "<si><t>담당</t></si><si><r><t>김</t></r><r><t>민수</t></r></si>"
    files = {
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATED}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": links(
            ("s", "sharedStrings", "sharedStrings.xml"),
            ("t", "styles", "styles.xml"),
            *((name, "worksheet", f"worksheets/{name}.xml") for name in sheets),
        ),
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{shared}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{styles}</styleSheet>',
    }
    for name, rows in sheets.items():
        files[f"xl/worksheets/{name}.xml"] = f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    return zipped(files)


def word(body: str, more: Mapping[str, str] | None = None, *, main: str = "word/document.xml") -> bytes:
    """A document with this body, and other files."""
    files = {
        "_rels/.rels": links(("r", "officeDocument", main)),
        main: f'<w:document xmlns:w="{_WORD}" xmlns:r="{_RELATED}"><w:body>{body}</w:body></w:document>',
    }
    return zipped(files | dict(more or {}))


def sheet_of(rows: str, *formats: str, setting: str = "", more: Mapping[str, str] | None = None) -> bytes:
    """A workbook of one sheet; style n is a cell's with the n-th format, or with a built-in one's number."""
    own = "<numFmts>" + "".join(
        f'<numFmt numFmtId="{200 + at}" formatCode="{escape(code, {chr(34): "&quot;"})}"/>'
        for at, code in enumerate(formats)
    )
    own += "</numFmts>"
    kinds = "<cellXfs>" + "".join(
        f'<xf numFmtId="{code if code.isdecimal() and code[0] != "0" else 200 + at}"/>'
        for at, code in enumerate(formats)
    )
    kinds += "</cellXfs>"
    listed = f'{setting}<sheets><sheet name="표" sheetId="1" r:id="a"/></sheets>'
    files = {
        "_rels/.rels": links(("r", "officeDocument", "/xl/workbook.xml")),
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATED}">{listed}</workbook>',
        "xl/_rels/workbook.xml.rels": links(("a", "worksheet", "worksheets/sheet1.xml"), ("b", "styles", "styles.xml")),
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{own}{kinds}</styleSheet>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>',
    }
    return zipped(files | dict(more or {}))


def strict(data: bytes) -> bytes:
    """The same document as ISO's strict form has it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    names = {
        "wordprocessingml/2006/main": "wordprocessingml/main",
        "spreadsheetml/2006/main": "spreadsheetml/main",
        "presentationml/2006/main": "presentationml/main",
        "drawingml/2006/main": "drawingml/main",
        "officeDocument/2006/relationships": "officeDocument/relationships",
    }
    for old, new in names.items():
        files = {
            name: text.replace(f"{_OPEN}/{old}", f"http://purl.oclc.org/ooxml/{new}") for name, text in files.items()
        }
    return zipped(files)


_HWPML: Final = "http://www.hancom.co.kr/hwpml/2011"


def hwpx(*sections: str, head: str = "", more: Mapping[str, str] | None = None) -> bytes:
    """A document of Hancom's word processor with these sections, and what its header has."""
    names = [f"section{number}" for number in range(len(sections))]
    listed = "".join(
        f'<opf:item id="{name}" href="Contents/{name}.xml" media-type="application/xml"/>'
        for name in ("header", *names)
    )
    pictures = "".join(f'<opf:item id="{name}" href="{name}"/>' for name in more or () if name.startswith("BinData/"))
    spine = "".join(f'<opf:itemref idref="{name}"/>' for name in ("header", *names))
    opf = "http://www.idpf.org/2007/opf/"
    files = {
        "mimetype": "application/hwp+zip",
        "META-INF/container.xml": '<ocf:container xmlns:ocf="urn:ocf"><ocf:rootfiles>'
        '<ocf:rootfile full-path="Contents/content.hpf" media-type="application/hwpml-package+xml"/>'
        '<ocf:rootfile full-path="Preview/PrvText.txt" media-type="text/plain"/></ocf:rootfiles></ocf:container>',
        "Contents/content.hpf": f'<opf:package xmlns:opf="{opf}"><opf:manifest>{listed}{pictures}</opf:manifest>'
        f"<opf:spine>{spine}</opf:spine></opf:package>",
        "Contents/header.xml": f'<hh:head xmlns:hh="{_HWPML}/head">{head}</hh:head>',
    }
    for name, section in zip(names, sections, strict=True):
        files[f"Contents/{name}.xml"] = (
            f'<hs:sec xmlns:hs="{_HWPML}/section" xmlns:hp="{_HWPML}/paragraph">{section}</hs:sec>'
        )
    return zipped(files | dict(more or {}))


def pptx(*slides: str) -> bytes:
    """Slides whose files are numbered from the last to the first, as after they were moved."""
    numbers = [len(slides) - place for place in range(len(slides))]
    listed = "".join(f'<sldId r:id="r{number}"/>' for number in numbers)
    files = {
        "ppt/presentation.xml": f'<presentation xmlns:r="{_RELATED}"><sldIdLst>{listed}</sldIdLst></presentation>',
        "ppt/_rels/presentation.xml.rels": links(
            *((f"r{number}", "slide", f"slides/slide{number}.xml") for number in numbers)
        ),
    }
    for number, text in zip(numbers, slides, strict=True):
        words = f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"
        files[f"ppt/slides/slide{number}.xml"] = f'<sld xmlns:a="{_DRAWING}">{words}</sld>'
    return zipped(files)
