"""What is read of documents of Office, of HWPX, and of the forms of PDFs, each as its program shows it."""

from __future__ import annotations

import pytest

from graph.attachment import read_attachment
from graph.attachment.reading import pdf_pages
from graph.core.attached import split_attached, with_attachments
from tests.fake.office import docx, hwpx, links, pptx, sheet_of, strict, word, xlsx, zipped
from tests.fake.pdf import field_pdf, scanned_pdf

DAY = 44_561
LEFT_OUT = "[글자가 아니라 빠진 것(그림, 개체, 스캔한 쪽): {}개]"
DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def text_of(name: str, data: bytes) -> str:
    return read_attachment(name, data, max_chars=200_000, language="ko").text


def shown(value: float | str, code: str, *, setting: str = "") -> str:
    rows = f'<row><c r="A1" s="0"><v>{value}</v></c></row>'
    return text_of("a.xlsx", sheet_of(rows, code, setting=setting)).removeprefix("— 표 —").lstrip("\n")


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (32, "yyyy-mm-dd", "1900-02-01"),
        (59, "14", "1900-02-28"),
        (60, "14", "1900-02-29"),
        (61, "14", "1900-03-01"),
        (45944.5, "22", "2025-10-14 12:00"),
        (0.378819444444444, "21", "09:05:30"),
        (45944.378819444444, "yyyy-mm-dd hh:mm:ss", "2025-10-14 09:05:30"),
        (0.000752314814815, "mm:ss.0", "00:01:05.0"),
        (46000, "aaaa", "2025-12-09"),
        (0.5, 'h"시" mm"분"', "12:00"),
        (1.26041666666667, "[h]:mm", "30:15"),
        (1.26041666666667, "46", "30:15:00"),
        (1.26041666666667, '[h]"시간" mm"분"', "30시간 15분"),
        (0.0625, "[mm]:ss", "90:00"),
        (0.0625, "[m]", "90"),
        (0.001, "[s]", "86"),
        (0.000751736111111, "[s].00", "64.95"),
        (-0.0625, "[h]:mm", "-1:30"),
    ],
)
def test_a_date_or_a_time_is_that_of_the_sheet(value: float, code: str, expected: str) -> None:
    assert shown(value, code) == expected


@pytest.mark.parametrize("is_on", ["1", "true"])
@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (DAY, "14", "2026-01-01"),
        (0, "14", "1904-01-01"),
        (0.25, "h:mm", "06:00"),
        (-0.0625, "[h]:mm", "-1:30"),
        (32, "14", "1904-02-02"),
        (2957003, "14", "9999-12-31"),
        (2957004, "14", "2957004"),
    ],
)
def test_a_workbook_of_1904_counts_from_1904(is_on: str, value: float, code: str, expected: str) -> None:
    assert shown(value, code, setting=f'<workbookPr date1904="{is_on}"/>') == expected


@pytest.mark.parametrize(
    ("value", "code", "expected"),
    [
        (0.475, "0.0%", "47.5%"),
        (0.475, "10", "47.50%"),
        (0.125, "9", "13%"),
        (-0.05, "0.0%", "-5.0%"),
        (0.5, "0.##%", "50%"),
        (0.5, "0." + "0" * 30 + "%", "50.0000000000%"),
        (47.5, '0.0"%"', "47.5%"),
        (1234.5, '_("$"* #,##0.00_)', "$1,234.50"),
        (1012345678, "000-0000-0000", "010-1234-5678"),
        (212345678, "[<=99999999]####-####;(0#) ####-####", "(02) 1234-5678"),
        (12345678, "[<=99999999]####-####;(0#) ####-####", "1234-5678"),
        (9001011234567, "000000-0000000", "900101-1234567"),
        (6236, "00000", "06236"),
        (1234567, '#,##0"원"', "1,234,567원"),
        (1234.5, "[$₩-412]#,##0", "₩1,235"),
        (-1500, '"₩"#,##0;[Red]("₩"#,##0)', "(₩1,500)"),
        (-3, "0;△0", "△3"),
        (1234567, '#,##0,"천원"', "1,235천원"),
        (3, '"제"0"호"', "제3호"),
        (3, '"제"General"호"', "제3호"),
        (1, '[=1]"예";[=0]"아니오"', "예"),
        (0, '[=1]"예";[=0]"아니오"', "아니오"),
        (0, '0;-0;"없음"', "없음"),
        (36.6, "0.0\\℃", "36.6℃"),
        # What only rounds, groups or colours keeps its digits.
        (1234.5678, "#,##0", "1234.5678"),
        (-1234.5, "#,##0;[Red]-#,##0", "-1234.5"),
        (1234.5, "_-* #,##0.00_-", "1234.5"),
        (0.5, "# ?/?", "0.5"),
        (12345.678, "0.00E+00", "12345.678"),
        (7, "General", "7"),
        (5, ";;;", "5"),
    ],
)
def test_a_number_is_as_its_format_shows_it(value: float, code: str, expected: str) -> None:
    assert shown(value, code) == expected


def test_cells_of_other_kinds_are_read() -> None:
    rows = (
        '<row><c t="d"><v>2026-01-01T00:00:00</v></c><c t="d"><v>2026-01-01T09:30:00Z</v></c></row>'
        '<row><c><f>SUM(A1:A2)</f></c><c><f>1+1</f><v>2</v></c><c t="str"><f>A1</f><v>값</v></c></row>'
        '<row><c t="inlineStr"><is><t>가_x000D_\n나</t></is></c><c s="0" t="inlineStr"><is><t>김민수</t></is></c></row>'
    )
    text = text_of("a.xlsx", sheet_of(rows, '@"님"'))
    assert text == "— 표 —\n2026-01-01\t2026-01-01 09:30:00\n=SUM(A1:A2)\t2\t값\n가 나\t김민수님"


def test_what_stands_around_a_sheets_cells_is_read() -> None:
    around = '<headerFooter><oddHeader>&amp;L&amp;"굴림,굵게"&amp;12대외비&amp;R&amp;D</oddHeader></headerFooter>'
    chart = (
        f"<chartSpace {DRAWING}><title><tx><rich><a:p><a:r><a:t>매출</a:t></a:r></a:p></rich></tx></title><ser>"
        "<tx><strRef><strCache><pt idx='0'><v>서울</v></pt></strCache></strRef></tx>"
        "<cat><strRef><strCache><pt idx='0'><v>1월</v></pt><pt idx='1'><v>2월</v></pt></strCache></strRef></cat>"
        "<val><numRef><numCache><pt idx='0'><v>10</v></pt><pt idx='1'><v>12</v></pt></numCache></numRef></val>"
        "</ser></chartSpace>"
    )
    more = {
        "xl/worksheets/_rels/sheet1.xml.rels": links(
            ("a", "comments", "../comments1.xml"), ("b", "drawing", "/xl/drawings/drawing1.xml")
        ),
        "xl/comments1.xml": '<comments><commentList><comment ref="B2"><text><r><t>확인 </t></r><r><t>필요</t></r>'
        "</text></comment></commentList></comments>",
        "xl/drawings/drawing1.xml": f"<wsDr {DRAWING}><txBody><a:p><a:r><a:t>상자 글</a:t></a:r></a:p></txBody></wsDr>",
        "xl/drawings/_rels/drawing1.xml.rels": links(
            ("a", "chart", "../charts/c.xml"), ("b", "image", "../media/a.png")
        ),
        "xl/charts/c.xml": chart,
    }
    sheet = sheet_of("<row><c><v>1</v></c></row></sheetData>" + around + "<sheetData>", more=more)
    assert text_of("a.xlsx", sheet) == (
        "— 표 —\n1\n\n[메모]\nB2: 확인 필요\n\n상자 글\n\n매출\n\n서울 — 1월: 10, 2월: 12\n\n대외비\n"
        + LEFT_OUT.format(1)
    )


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


def paragraph(text: str, settings: str = "") -> str:
    return f"<w:p><w:pPr>{settings}</w:pPr>{run(text)}</w:p>"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<w:p><w:r><w:t>1</w:t><w:noBreakHyphen/><w:t>24</w:t></w:r></w:p>", "1-24"),
        ("<w:p><w:r><w:t>자동</w:t><w:softHyphen/><w:t>차</w:t></w:r></w:p>", "자동차"),
        (
            "<w:p><w:r><w:t>가</w:t><w:ptab/><w:t>나</w:t><w:sym w:font='Wingdings' w:char='F0FE'/></w:r></w:p>",
            "가\t나☑",
        ),
        ("<w:p><w:r><w:t>가</w:t><w:sym w:font='Arial' w:char='2192'/></w:r></w:p>", "가→"),
        (f"<w:p><w:moveFrom>{run('옮긴 글')}</w:moveFrom><w:moveTo>{run('옮긴 글')}</w:moveTo></w:p>", "옮긴 글"),
        ("<w:p><w:del><w:r><w:delText>지운 글</w:delText></w:r></w:del>" + run("남은 글") + "</w:p>", "남은 글"),
        (
            f"<w:p><w:r><w:ruby><w:rt>{run('かん')}</w:rt><w:rubyBase>{run('漢')}</w:rubyBase></w:ruby></w:r></w:p>",
            "漢",
        ),
        (
            f"<w:sdt><w:sdtPr/><w:sdtContent>{paragraph('칸 안')}</w:sdtContent></w:sdt>{paragraph('칸 밖')}",
            "칸 안\n칸 밖",
        ),
        (f"<w:p>{run('글')}<w:r><w:txbxContent>{paragraph('상자')}</w:txbxContent></w:r></w:p>", "글\n상자"),
        (f"<w:p>{run('성명: ')}<w:sdt><w:sdtContent>{run('김민수')}</w:sdtContent></w:sdt></w:p>", "성명: 김민수"),
    ],
)
def test_what_stands_in_a_line_is_read(body: str, expected: str) -> None:
    assert text_of("a.docx", word(body)) == expected


def cell(text: str, settings: str = "") -> str:
    return f"<w:tc><w:tcPr>{settings}</w:tcPr>{paragraph(text)}</w:tc>"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (f"<w:sdt><w:sdtContent>{cell('sdt칸')}</w:sdtContent></w:sdt>{cell('끝')}", "바깥 | sdt칸 | 끝"),
        (
            f"<w:customXml><w:sdt><w:sdtContent>{cell('가')}{cell('나')}</w:sdtContent></w:sdt></w:customXml>",
            "바깥 | 가 | 나",
        ),
        (cell("넓음", '<w:gridSpan w:val="2"/>') + cell("끝"), "바깥 | 넓음 |  | 끝"),
        (f"<w:tc><w:sdt><w:sdtContent>{paragraph('안')}</w:sdtContent></w:sdt></w:tc>", "바깥 | 안"),
    ],
)
def test_cells_stay_in_their_columns(row: str, expected: str) -> None:
    assert text_of("a.docx", word(f"<w:tbl><w:tr>{cell('바깥')}{row}</w:tr></w:tbl>")) == expected
    in_control = f"<w:tbl><w:sdt><w:sdtContent><w:tr>{cell('바깥')}{row}</w:tr></w:sdtContent></w:sdt></w:tbl>"
    assert text_of("a.docx", word(in_control)) == expected


def test_a_row_that_begins_late_stays_in_its_columns() -> None:
    late = f'<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>{cell("둘째")}</w:tr>'
    assert text_of("a.docx", word(paragraph("글") + f"<w:tbl>{late}</w:tbl>")) == "글\n | 둘째"


def test_the_parts_of_a_document_are_found_by_their_relations() -> None:
    main = "word/document2.xml"
    more = {
        "word/_rels/document2.xml.rels": links(
            ("a", "header", "h1.xml"),
            ("b", "header", "h2.xml"),
            ("c", "footer", "f1.xml"),
            ("d", "comments", "c.xml"),
            ("e", "footnotes", "notes/f.xml"),
            ("g", "image", "media/image1.png"),
            ("h", "oleObject", "embeddings/o.bin"),
            ("i", "hyperlink", "https://example.org"),
        ),
        "word/h1.xml": f"<w:hdr {WORD}>{paragraph('대외비')}</w:hdr>",
        "word/h2.xml": f"<w:hdr {WORD}>{paragraph('대외비')}</w:hdr>",
        "word/f1.xml": f"<w:ftr {WORD}>{paragraph('- 3 -')}{paragraph('총무과')}</w:ftr>",
        "word/c.xml": f"<w:comments {WORD}><w:comment>{paragraph('고칠 것')}</w:comment></w:comments>",
        "word/notes/f.xml": f"<w:footnotes {WORD}>{paragraph('각주')}</w:footnotes>",
    }
    text = text_of("a.docx", word(paragraph("본문"), more, main=main))
    assert text == "대외비\n\n본문\n\n각주\n\n[메모]\n고칠 것\n\n- 3 -\n총무과\n" + LEFT_OUT.format(2)
    assert text_of("a.docx", word(paragraph("다른 폴더"), main="본문/글.xml")) == "다른 폴더"
    odd = zipped(
        {
            "_rels/.rels": links(("r", "officeDocument", "/Word/Document.xml")),
            "word\\document.xml": f"<w:document {WORD}>{paragraph('역슬래시')}</w:document>",
        }
    )
    assert text_of("a.docx", odd) == "역슬래시"
    assert text_of("이름만.bin", word(paragraph("끝이 다름"))) == "끝이 다름"


def test_a_damaged_part_costs_itself_alone() -> None:
    more = {
        "word/_rels/document.xml.rels": links(("c", "comments", "c.xml"), ("s", "styles", "s.xml")),
        "word/c.xml": "<w:comments",
        "word/s.xml": "",
    }
    assert text_of("a.docx", word(paragraph("본문"), more)) == "본문\n" + LEFT_OUT.format(2)


def test_strict_documents_are_read_as_others() -> None:
    rows = '<row><c s="0"><v>45944</v></c><c t="d"><v>2026-01-01</v></c></row>'
    sheet = sheet_of(rows, "14", setting='<workbookPr date1904="true"/>')
    for name, data in {
        "a.docx": docx("예산", table=[["가", "나"]], note="각주"),
        "a.xlsx": sheet,
        "b.xlsx": xlsx(첫째='<row><c t="s"><v>0</v></c></row>'),
        "a.pptx": pptx("처음", "나중"),
    }.items():
        assert text_of(name, strict(data)) == text_of(name, data) != ""


NUMBERING = f"""<w:numbering {WORD}>
<w:abstractNum w:abstractNumId="0">
<w:lvl w:ilvl="0"><w:start w:val="1"/><w:numFmt w:val="decimal"/><w:lvlText w:val="제%1조"/></w:lvl>
<w:lvl w:ilvl="1"><w:start w:val="1"/><w:numFmt w:val="ganada"/><w:lvlText w:val="%1.%2)"/></w:lvl></w:abstractNum>
<w:abstractNum w:abstractNumId="1">
<w:lvl w:ilvl="0"><w:start w:val="3"/><w:numFmt w:val="KIND"/><w:lvlText w:val="%1."/></w:lvl></w:abstractNum>
<w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>
<w:num w:numId="3"><w:abstractNumId w:val="0"/>
<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>
</w:numbering>"""
STYLES = (
    f'<w:styles {WORD}><w:style w:styleId="조"><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>'
    '<w:style w:styleId="조2"><w:basedOn w:val="조"/></w:style></w:styles>'
)


def listed(text: str, number: int, level: int = 0) -> str:
    return paragraph(text, f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>')


def numbered(body: str, kind: str = "decimal") -> str:
    more = {
        "word/_rels/document.xml.rels": links(("n", "numbering", "numbering.xml"), ("s", "styles", "styles.xml")),
        "word/numbering.xml": NUMBERING.replace("KIND", kind),
        "word/styles.xml": STYLES,
    }
    return text_of("a.docx", word(body, more))


def test_paragraphs_of_lists_have_their_numbers() -> None:
    styled = paragraph("목적", '<w:pStyle w:val="조"/>') + paragraph("정의", '<w:pStyle w:val="조2"/>')
    body = styled + listed("용어", 1, 1) + listed("범위", 1, 1) + listed("적용", 1) + listed("부칙", 1, 1)
    assert numbered(body) == "제1조 목적\n제2조 정의\n2.가) 용어\n2.나) 범위\n제3조 적용\n3.가) 부칙"
    assert (
        numbered(listed("가", 1) + listed("새로", 3) + listed("또", 3) + listed("아님", 0))
        == "제1조 가\n제1조 새로\n제2조 또\n아님"
    )


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("decimal", "3. 4."),
        ("decimalZero", "03. 04."),
        ("upperRoman", "III. IV."),
        ("lowerLetter", "c. d."),
        ("chosung", "ㄷ. ㄹ."),
        ("decimalEnclosedCircle", "③. ④."),
        ("koreanDigital", "삼. 사."),
        ("bullet", "• •"),
        ("none-such", "3. 4."),
    ],
)
def test_lists_count_in_their_own_way(kind: str, expected: str) -> None:
    first, second = expected.split()
    assert numbered(listed("하나", 2) + listed("둘", 2), kind) == f"{first} 하나\n{second} 둘"


def test_notes_comments_and_numbers_of_slides_are_read() -> None:
    def line(text: str, settings: str = "") -> str:
        return f"<a:p><a:pPr>{settings}</a:pPr><a:r><a:t>{text}</a:t></a:r></a:p>"

    auto = '<a:buAutoNum type="arabicPeriod"/>'
    bullet = '<a:buChar char="•"/>'
    body = f"<txBody>{line('첫째', auto)}{line('둘째', auto)}{line('점', bullet)}</txBody>"
    notes = (
        f"<notes {DRAWING}><sp><nvSpPr><nvPr><ph type='sldNum'/></nvPr></nvSpPr><txBody>{line('7')}</txBody></sp>"
        f"<sp><nvSpPr><nvPr><ph type='body'/></nvPr></nvSpPr><txBody>{line('예산은 5천만원')}</txBody></sp></notes>"
    )
    with_notes = {
        "_rels/.rels": links(("r", "officeDocument", "ppt/p.xml")),
        "ppt/p.xml": '<presentation xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">'
        '<sldIdLst><sldId id="256" r:id="s"/></sldIdLst></presentation>',
        "ppt/_rels/p.xml.rels": links(("s", "slide", "slides/s.xml")),
        "ppt/slides/s.xml": f"<sld {DRAWING}><sp>{body}</sp><sp><txBody>{line('다시', auto)}</txBody></sp></sld>",
        "ppt/slides/_rels/s.xml.rels": links(
            ("n", "notesSlide", "../notesSlides/n.xml"),
            ("c", "http://schemas.microsoft.com/office/2018/10/relationships/comments", "../comments/c.xml"),
            ("d", "diagramData", "../diagrams/d.xml"),
            ("v", "video", "../media/v.mp4"),
        ),
        "ppt/notesSlides/n.xml": notes,
        "ppt/comments/c.xml": f"<cmLst {DRAWING}><cm>{line('색을 바꿀 것')}</cm><cm><text>옛 메모</text></cm></cmLst>",
        "ppt/diagrams/d.xml": f"<dataModel {DRAWING}><ptLst><pt><t>{line('조직도')}</t></pt></ptLst></dataModel>",
    }
    assert text_of("a.pptx", zipped(with_notes)) == (
        "— 1 —\n1. 첫째\n2. 둘째\n• 점\n1. 다시\n\n[발표자 노트]\n예산은 5천만원\n\n"
        "[메모]\n색을 바꿀 것\n옛 메모\n\n조직도\n" + LEFT_OUT.format(1)
    )


def hp(text: str, style: str = "0") -> str:
    return f'<hp:p paraPrIDRef="{style}"><hp:run charPrIDRef="0"><hp:t>{text}</hp:t></hp:run><hp:linesegarray/></hp:p>'


HANGUL_HEAD = (
    '<hh:numberings><hh:numbering id="1" start="0"><hh:paraHead start="1" level="1" numFormat="DIGIT">^1.</hh:paraHead>'
    '<hh:paraHead start="1" level="2" numFormat="HANGUL_SYLLABLE">^2.</hh:paraHead></hh:numbering></hh:numberings>'
    '<hh:paraPr id="0"><hh:heading type="NONE" idRef="0" level="0"/></hh:paraPr>'
    '<hh:paraPr id="1"><hh:heading type="OUTLINE" idRef="0" level="0"/></hh:paraPr>'
    '<hh:paraPr id="2"><hh:heading type="NUMBER" idRef="1" level="1"/></hh:paraPr>'
    '<hh:paraPr id="3"><hh:heading type="BULLET" idRef="1" level="0"/></hh:paraPr>'
)


def test_an_hwpx_document_is_read_with_its_tables_notes_and_numbers() -> None:
    deleted = '<hp:deleteBegin Id="1"/>지움<hp:deleteEnd Id="1"/>'
    inline = f'가<hp:tab width="4000"/>나<hp:lineBreak/>1<hp:hyphen/>24<hp:nbSpace/>끝{deleted}!'
    note = f"<hp:ctrl><hp:footNote><hp:subList>{hp('각주 글')}</hp:subList></hp:footNote></hp:ctrl>"
    header = f"<hp:ctrl><hp:header><hp:subList>{hp('머리글')}</hp:subList></hp:header></hp:ctrl>"

    def hp_cell(text: str, column: int) -> str:
        return f'<hp:tc><hp:subList>{hp(text)}</hp:subList><hp:cellAddr colAddr="{column}" rowAddr="0"/></hp:tc>'

    rows = f"<hp:tr>{hp_cell('이름', 0)}{hp_cell('값', 1)}</hp:tr><hp:tr>{hp_cell('3', 1)}</hp:tr>"
    table = f'<hp:p><hp:run><hp:t>표 앞</hp:t><hp:tbl rowCnt="2" colCnt="2">{rows}</hp:tbl><hp:t/></hp:run></hp:p>'
    first = (
        f"<hp:p><hp:run><hp:secPr/>{header}<hp:t>본문</hp:t>{note}<hp:t> 계속</hp:t></hp:run></hp:p>"
        f"{hp(inline)}{table}{hp('목적', '1')}{hp('하나', '2')}{hp('둘', '2')}{hp('정의', '1')}{hp('점', '3')}"
    )
    second = "<hp:p><hp:run><hp:equation><hp:script>x over y</hp:script></hp:equation></hp:run></hp:p>"
    data = hwpx(first, second, head=HANGUL_HEAD, more={"BinData/image1.png": "x"})
    assert text_of("보고.hwpx", data) == (
        "머리글\n본문 [각주 글] 계속\n가\t나\n1-24 끝!\n표 앞\n이름 | 값\n | 3\n"
        "1. 목적\n가. 하나\n나. 둘\n2. 정의\n• 점\n\nx over y\n" + LEFT_OUT.format(1)
    )


def test_documents_that_are_locked_or_other_kinds_say_so() -> None:
    from graph.value.error import AttachmentError  # noqa: PLC0415  # here alone

    locked = '<odf:manifest xmlns:odf="urn:o"><odf:file-entry><odf:encryption-data/></odf:file-entry></odf:manifest>'
    for name, data, reason in (
        ("a.hwpx", hwpx(hp("글"), more={"META-INF/manifest.xml": locked}), "encrypted"),
        (
            "a.xlsb",
            zipped({"_rels/.rels": links(("r", "officeDocument", "xl/workbook.bin")), "xl/workbook.bin": "x"}),
            "kind",
        ),
        (
            "a.epub",
            zipped({"META-INF/container.xml": '<c><rootfile full-path="OPS/a.opf"/></c>', "OPS/a.opf": "<package/>"}),
            "kind",
        ),
        ("a.hwpx", hwpx(""), "empty"),
        ("그림.hwpx", hwpx("", more={"BinData/a.png": "x"}), "no_text"),
    ):
        with pytest.raises(AttachmentError) as caught:
            read_attachment(name, data, max_chars=1_000)
        assert (name, caught.value.reason) == (name, reason)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ("/FT /Ch /T (city) /Opt [[(1) (Seoul)] [(2) (Busan)]] /V (2)", "city: Busan"),
        ("/FT /Ch /T (city) /Opt [(Seoul) (Busan)] /V (Busan)", "city: Busan"),
        ("/FT /Ch /T (lang) /Opt [(ko) (en) (ja)] /V [(ko) (ja)]", "lang: ko, ja"),
        ("/FT /Ch /T (lang) /Opt [[(1) (ko)] [(2) (ja)]] /V [(1) (2)]", "lang: ko, ja"),
        ("/FT /Ch /T (lang) /Opt [[(1) (ko)] [(2) (ja)]] /I [1]", "lang: ja"),
        ("/FT /Ch /T (own) /Opt [(ko)] /V (typed)", "own: typed"),
        ("/FT /Btn /T (box) /Opt [(no) (yes)] /V /1 /AS /1", "box: yes"),
        ("/FT /Btn /T (box) /AS /On", "box: On"),
        ("/FT /Btn /T (box) /AS /Off", ""),
        ("/FT /Tx /T (long) /V <feff ac00>", "long: 가"),
    ],
)
def test_a_choice_in_a_form_is_what_it_shows(fields: str, expected: str) -> None:
    page = pdf_pages("a.pdf", field_pdf(fields), max_chars=1_000).texts[0] or ""
    assert page.strip() == ("Form\n" + expected).strip()


def test_fields_have_what_their_groups_have() -> None:
    group = "/FT /Ch /T (address) /Opt [[(1) (Seoul)] [(2) (Busan)]] /V (1)"
    assert pdf_pages("a.pdf", field_pdf("", group), max_chars=1_000).texts == ["Form\naddress: Seoul"]
    radio = "/FT /Btn /T (pay) /Opt [(card) (cash)] /V /1"
    twice = pdf_pages("a.pdf", field_pdf("/AS /Off", radio, count=2), max_chars=1_000).texts
    assert twice == ["Form\npay: cash"]
    assert pdf_pages("a.pdf", field_pdf("/T (city)", group), max_chars=1_000).texts == ["Form\naddress.city: Seoul"]


def test_pictures_of_a_pdf_are_counted_each_once() -> None:
    read = read_attachment("a.pdf", scanned_pdf("text", "", ""), max_chars=1_000)
    assert (read.left_out, read.is_partial) == (1, False)
    assert read.text.endswith("\n[Left out, as it isn't text (pictures, objects, scanned pages): 1]")
    assert split_attached(with_attachments("", [read], "ko"))[1][0].left_out == 1
