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
    return zipped(files)


def _links(targets: Mapping[str, str]) -> str:
    listed = "".join(f'<Relationship Id="{key}" Target="{target}"/>' for key, target in targets.items())
    return f"<Relationships>{listed}</Relationships>"


def xlsx(**sheets: str) -> bytes:
    """Each sheet's rows as they stand in its file; style 1 is a date's, 2 that of a date with a format of its own."""
    listed = "".join(f'<sheet name="{name}" r:id="{name}"/>' for name in sheets)
    styles = '<numFmts><numFmt numFmtId="200" formatCode="yyyy&quot;년&quot; m&quot;월&quot;"/></numFmts>'
    styles += '<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="200"/></cellXfs>'
    shared = "<si><t>담당</t></si><si><r><t>김</t></r><r><t>민수</t></r></si>"
    files = {
        "xl/workbook.xml": f'<workbook xmlns="{_SHEET}" xmlns:r="{_RELATED}"><sheets>{listed}</sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _links({name: f"worksheets/{name}.xml" for name in sheets}),
        "xl/sharedStrings.xml": f'<sst xmlns="{_SHEET}">{shared}</sst>',
        "xl/styles.xml": f'<styleSheet xmlns="{_SHEET}">{styles}</styleSheet>',
    }
    for name, rows in sheets.items():
        files[f"xl/worksheets/{name}.xml"] = f'<worksheet xmlns="{_SHEET}"><sheetData>{rows}</sheetData></worksheet>'
    return zipped(files)


def pptx(*slides: str) -> bytes:
    """Slides whose files are numbered from the last to the first, as after they were moved."""
    numbers = [len(slides) - place for place in range(len(slides))]
    listed = "".join(f'<sldId r:id="r{number}"/>' for number in numbers)
    files = {
        "ppt/presentation.xml": f'<presentation xmlns:r="{_RELATED}"><sldIdLst>{listed}</sldIdLst></presentation>',
        "ppt/_rels/presentation.xml.rels": _links({f"r{number}": f"slides/slide{number}.xml" for number in numbers}),
    }
    for number, text in zip(numbers, slides, strict=True):
        words = f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"
        files[f"ppt/slides/slide{number}.xml"] = f'<sld xmlns:a="{_DRAWING}">{words}</sld>'
    return zipped(files)
