"""PDF files made by hand: of pages with a line each, encrypted, without text, and hostile ones.

pdf_of("first page", "second page")
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Mapping, Sequence
from typing import cast

from pypdf import PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, NameObject, NumberObject, PdfObject, TextStringObject


def pdf_of(*pages: str) -> bytes:
    """Returns a PDF with a page for each of these texts, in Latin letters; "" is a page without any."""
    return _file([b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % page.encode("ascii") if page else b"" for page in pages])


def encrypted_pdf(password: str, *, algorithm: str = "RC4-128") -> bytes:
    """Returns a PDF that nobody can open without the password."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of("secret")))
    writer.encrypt(password, algorithm=algorithm)
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def swelling_pdf() -> bytes:
    """Returns a small PDF whose page has 128 MB once it is unpacked."""
    return _file([b"BT /F1 12 Tf (" + b"A" * (128 * 1024 * 1024) + b") Tj ET"], is_packed=True)


def endless_pdf() -> bytes:
    """Returns a PDF whose page takes minutes to read."""
    return _file([b"BT /F1 12 Tf " + b"[(A) -300 (B)] TJ 0 -1 Td " * 400_000 + b"ET"], is_packed=True)


def korean_pdf(text: str, encoding: str) -> bytes:
    """Returns a PDF whose text has one of the encodings of older Korean programs, such as KSCms-UHC-H."""
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /Batang /Encoding /%s /DescendantFonts [] >>" % encoding.encode()
    return _file([b"BT /F1 12 Tf 72 720 Td <%s> Tj ET" % text.encode("cp949").hex().encode()], font=font)


def form_pdf(text: str, fields: Mapping[str, str], note: str) -> bytes:
    """Returns a PDF of a page with filled form fields and a note; a value with a slash is that of a box."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(text)))
    for name, value in fields.items():
        is_box = value.startswith("/")
        widget: dict[str, PdfObject] = {
            "/Subtype": NameObject("/Widget"),
            "/FT": NameObject("/Btn" if is_box else "/Tx"),
            "/T": TextStringObject(name),
            "/V": NameObject(value) if is_box else TextStringObject(value),
            "/Rect": ArrayObject([NumberObject(0)] * 4),
        }
        _annotate(writer, widget)
    _annotate(writer, {"/Subtype": NameObject("/Text"), "/Contents": TextStringObject(note)})
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def field_pdf(field: str, group: str = "", *, count: int = 1) -> bytes:
    """Returns a PDF of a page with this field as it stands in a file, so many times, and their group."""
    parent = b"/Parent %d 0 R" % (6 + count) if group else b""
    widgets = [b"<< /Subtype /Widget %s %s >>" % (parent, field.encode("latin-1"))] * count
    annotations = b" ".join(b"%d 0 R" % (6 + number) for number in range(count))
    return _file(
        [b"BT /F1 12 Tf 72 720 Td (Form) Tj ET"],
        page=b"/Annots [%s]" % annotations,
        more=[*widgets, b"<< %s >>" % group.encode("latin-1")],
    )


def scanned_pdf(*pages: str) -> bytes:
    """Returns a PDF with a page for each of these texts, all of them with the same picture."""
    contents = [b"BT /F1 12 Tf 72 720 Td (%s) Tj ET" % page.encode("ascii") if page else b"/I Do" for page in pages]
    picture = b"<< /Subtype /Image /Width 1 /Height 1 /BitsPerComponent 8 /Length 0 >>\nstream\n\nendstream"
    return _file(contents, resources=b"/XObject << /I %d 0 R >>" % (4 + 2 * len(pages)), more=[picture])


def broken_page_pdf(before: str, behind: str) -> bytes:
    """Returns a PDF of three pages, the second of which can't be read."""
    writer = PdfWriter(clone_from=io.BytesIO(pdf_of(before, "broken", behind)))
    content = cast("DictionaryObject", writer.pages[1]["/Contents"].get_object())
    content[NameObject("/Filter")] = NameObject("/Unknown")
    written = io.BytesIO()
    writer.write(written)
    return written.getvalue()


def _annotate(writer: PdfWriter, annotation: Mapping[str, PdfObject]) -> None:
    page = writer.pages[0]
    entry = DictionaryObject({NameObject(name): value for name, value in annotation.items()})
    page[NameObject("/Annots")] = ArrayObject([*page.get("/Annots", ()), writer._add_object(entry)])  # noqa: SLF001  # it has no public way for an object of one's own


_HELVETICA = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"


def _file(
    contents: Sequence[bytes],
    *,
    is_packed: bool = False,
    font: bytes = _HELVETICA,
    page: bytes = b"",
    resources: bytes = b"",
    more: Sequence[bytes] = (),
) -> bytes:
    kids = b" ".join(b"%d 0 R" % (4 + 2 * number) for number in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, len(contents)),
        font,
    ]
    for number, content in enumerate(contents):
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R %s "
            b"/Resources << /Font << /F1 3 0 R >> %s >> >>" % (5 + 2 * number, page, resources)
        )
        data, kind = (zlib.compress(content, 1), b"/Filter /FlateDecode ") if is_packed else (content, b"")
        objects.append(b"<< %s/Length %d >>\nstream\n%s\nendstream" % (kind, len(data), data))
    objects += more
    written, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(written))
        written += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    count = len(objects) + 1
    return written + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n"
        % (count, table, count, len(written))
    )
