"""Files that are attached to a message: read as text, or refused, and framed so that they stay files."""

from __future__ import annotations

import codecs
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph.attachment import MAX_BYTES, read_attachment
from graph.attachment import reading as pdf_reading
from graph.attachment.encoding import decode
from graph.attachment.reading import pdf_pages
from graph.core.attached import Attachment, attachment_of, own_words, split_attached, with_attachments
from graph.core.language import own_lines, session_language
from graph.core.text import title_of
from graph.value.error import AttachmentError
from prompt.system.framing import Language
from tests.fake.office import docx, pptx, xlsx, zipped
from tests.fake.pdf import broken_page_pdf, encrypted_pdf, endless_pdf, form_pdf, korean_pdf, pdf_of, swelling_pdf

KOREAN = "이름,값\n김민수,3\n똠방각하,4\n"
CHARS = 200_000
HANGUL = {chr(code) for code in range(0xAC00, 0xD7A4)}


def refused(name: str, data: bytes, max_chars: int = CHARS) -> str:
    with pytest.raises(AttachmentError) as caught:
        read_attachment(name, data, max_chars=max_chars)
    assert caught.value.detail in name
    return caught.value.reason


def test_text_is_read_in_whatever_encoding_it_was_saved() -> None:
    for data in (
        KOREAN.encode(),
        codecs.BOM_UTF8 + KOREAN.encode(),
        KOREAN.encode("utf-16"),
        codecs.BOM_UTF16_BE + KOREAN.encode("utf-16-be"),
        KOREAN.encode("cp949"),
        KOREAN.replace("\n", "\r\n").encode("cp949"),
    ):
        assert read_attachment("표.CSV", data, max_chars=CHARS) == ("표.CSV", KOREAN.strip())
    assert decode("한글 문서".encode("euc-kr")) == ("한글 문서", 0)


@given(st.text().filter(lambda text: "\0" not in text and not text.startswith("\ufeff")))
def test_every_text_comes_back_from_utf_8_and_utf_16(text: str) -> None:
    assert decode(text.encode()) == (text, 0)
    assert decode(codecs.BOM_UTF16_LE + text.encode("utf-16-le")) == (text, 0)


@pytest.mark.parametrize("name", ["Dockerfile", ".env", "LICENSE", "a.mdx", "a.sol", "notes", "표.모름", "a.b.c"])
def test_text_is_text_whatever_its_ending(name: str) -> None:
    assert read_attachment(name, KOREAN.encode("cp949"), max_chars=CHARS).text == KOREAN.strip()
    assert refused(name, b"\x7fELF\x01\x01\0\0") == "kind"


WESTERN = ["Größe", "Straße", "±0.5°", "grüßen", "naïve", "señor", "ÄÖÜß", "àéèêç", "§¶", "“text”", "ö", "xÿþ"]
CHINESE = (
    "我们计划在下个月搬到新的办公室，请大家把自己的东西整理好，并在星期五之前告诉行政部门需要多少箱子。"
    "服务器的数据每天晚上两点自动备份，如果失败，系统会给管理员发送邮件，管理员必须在一小时内确认。"
)


@given(st.lists(st.sampled_from(WESTERN), min_size=1).map(" ".join))
def test_western_text_never_becomes_korean(text: str) -> None:
    assert not (decoded := decode(text.encode("cp1252"))) or not HANGUL & {*decoded.text}


@given(st.integers(0, len(CHINESE) - 30), st.integers(30, 60))
def test_chinese_text_never_becomes_korean(begin: int, length: int) -> None:
    decoded = decode(CHINESE[begin : begin + length].encode("gbk"))
    assert decoded is None or not HANGUL & {*decoded.text}


FOREIGN = {
    "gb18030": [
        "Report 报告 2024 年 total 合计",
        "合同\n",
        "a,b\n1,年\n",
        "你好，谢谢",
        "第一章 总则",
        "合计",
        "备注",
        "公司",
    ],
    "euc_jp": ["名前,値\n会議は月曜日です", "こんにちは", "お世話になっております。"],
    "cp932": ["会議は月曜日です", "売上,１００"],
    "big5": ["合約書", "會議紀錄：下週一"],
    "cp1252": ["INFORMAÇÃO", "NAÇÕES E AÇÃO", "MAÇÃ", "ÄÖÜ", "a;b\nÀ;É\n"],
    "cp1251": ["Договор №5", "ИТОГО: 100"],
    "cp1250": ["głównie wysyłał", "PŘÍLOHA"],
}


@pytest.mark.parametrize(("encoding", "text"), [(key, text) for key, texts in FOREIGN.items() for text in texts])
def test_text_of_another_script_never_becomes_korean(encoding: str, text: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded is None


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,값\n",
        "ㅋㅋㅋ ㅎㅎ ㅠㅠ\n",
        "ㅇㅋ ㄱㄱ",
        "ㄱ) A\nㄴ) B\n",
        "A급,B급",
        "합계: 3",
        "품목\t단가\n볼펜\t1200",
        "①번 문항",
    ],
)
def test_a_little_korean_is_enough(text: str) -> None:
    assert decode(text.encode("cp949")) == (text, 0)


@pytest.mark.parametrize(
    ("head", "text", "encoding"),
    [
        ('<?xml version="1.0" encoding="EUC-KR"?><a>{}</a>', "뷁", "cp949"),
        ("<?xml version='1.0' encoding='ks_c_5601-1987' ?><a>{}</a>", "뜌", "cp949"),
        ('<html><meta charset="euc-kr"><p>{}', "大韓民國", "cp949"),
        ('<meta http-equiv=Content-Type content="text/html; charset=windows-949">{}', "뷁", "cp949"),
        ('@charset "EUC-KR";\n/* {} */', "뷁", "cp949"),
        ("# -*- coding: cp949 -*-\n# {}", "뷁", "cp949"),
        ('<meta charset="gb2312">{}', "合同", "gbk"),
        ('<?xml version="1.0" encoding="GB18030"?><a>{}</a>', "报告", "gb18030"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><a>{}</a>', "会議", "cp932"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><a>{}</a>', "Größe", "latin-1"),
    ],
)
def test_the_encoding_that_a_file_declares_is_heeded(head: str, text: str, encoding: str) -> None:
    assert decode(head.format(text).encode(encoding)) == (head.format(text), 0)


@pytest.mark.parametrize("name", ["rot13", "utf-7", "idna", "hex", "no-such", "é"])
def test_a_declared_encoding_that_is_none_is_not_heeded(name: str) -> None:
    assert decode(f"# coding: {name}\n# 이것은 한글입니다\n".encode("cp949", "ignore")) is not None
    assert decode(f"# coding: {name}\n# Größe\n".encode("cp1252")) is None


def test_a_wrong_byte_in_korean_of_older_programs_costs_itself_alone() -> None:
    line = "서버가 시작됨 ok\n".encode("cp949")
    assert decode(line * 20 + b"\xff" + line) == ("서버가 시작됨 ok\n" * 20 + "�서버가 시작됨 ok\n", 1)
    assert decode((line * 20)[:-6]) is not None


@pytest.mark.parametrize(
    "text", ["2026년 11월 7일 漢字와 한글이 섞인 글", "가나", "예산: 300만 원 (±5 %)", "똠방각하와 펲시콜라"]
)
def test_korean_text_is_read_with_few_signs_of_others(text: str) -> None:
    assert decode(text.encode("cp949")) == (text, 0)


def test_a_wrong_byte_costs_itself_alone_and_is_told() -> None:
    log = "".join(f"12:00:{second:02} 서버가 시작됨 ok\n" for second in range(60)).encode()
    middle = log.index(b"\n", len(log) // 2)
    cut = log[:middle] + b"\xff" + log[middle:]
    read = read_attachment("a.log", cut, max_chars=CHARS, language="ko")
    assert read.is_partial
    assert read.text.endswith("\n[읽지 못한 곳 1군데를 �로 표시함]")
    assert read.text.count("�") == 2
    assert read.text.rpartition("\n")[0].replace("�", "") == log.decode().strip()
    whole = read_attachment("a.log", log, max_chars=CHARS)
    assert not whole.is_partial
    # `tail -c` cuts through a character.
    tail = read_attachment("a.log", "가나다".encode()[1:-1], max_chars=CHARS)
    assert tail.text == "�나�\n[2 unreadable parts marked �]"
    assert read_attachment("a.log", b"x" * 3_000 + b"\xe9 y", max_chars=CHARS).is_partial


def test_korean_pdf_of_an_older_program_is_read() -> None:
    for encoding in ("KSCms-UHC-H", "KSC-EUC-H", "KSCms-UHC-HW-V"):
        data = korean_pdf("한글 결산서 2023", encoding)
        assert read_attachment("결산.pdf", data, max_chars=CHARS).text == "한글 결산서 2023"


def test_filled_fields_and_notes_stand_behind_their_page() -> None:
    text = read_attachment(
        "form.pdf",
        form_pdf("Applicant:", {"name": "김민수", "agreed": "/Yes", "other": "/Off"}, "check this"),
        max_chars=CHARS,
    ).text
    assert text == "Applicant:\nname: 김민수\nagreed: Yes\ncheck this"


def test_a_page_that_cant_be_read_costs_itself_alone() -> None:
    read = read_attachment("a.pdf", broken_page_pdf("first", "third"), max_chars=CHARS)
    assert read.text == "— 1 —\nfirst\n\n— 2 —\n�\n\n— 3 —\nthird\n[1 unreadable parts marked �]"


@given(st.binary(max_size=2_000), st.sampled_from([".txt", ".csv", ".py"]))
def test_any_bytes_are_text_that_can_be_stored_or_are_refused(data: bytes, ending: str) -> None:
    with suppress(AttachmentError):
        text = read_attachment(f"f{ending}", data, max_chars=CHARS).text
        assert "\0" not in text
        assert text.encode()


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("photo.png", b"\x89PNG\r\n\x1a\n", "kind"),
        ("report.pdf.exe", b"MZ\0", "kind"),
        ("photo.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "kind"),
        ("nul.txt", "가\0".encode(), "kind"),
        ("cut.txt", codecs.BOM_UTF16_LE + b"a", "not_text"),
        ("latin.txt", "café ".encode("latin-1"), "not_text"),
        ("windows.txt", "It’s John’s book, don’t worry.".encode("cp1252"), "not_text"),
        ("empty.md", b"", "empty"),
        ("blank.md", "\u200b \n\t".encode(), "empty"),
        ("large.txt", b"x" * (MAX_BYTES + 1), "too_large"),
        ("long.txt", b"x" * (CHARS + 1), "too_long"),
        ("empty.pdf", b"", "damaged"),
        ("cut.pdf", pdf_of("page")[:150], "damaged"),
        ("scan.pdf", pdf_of("", ""), "no_text"),
        ("locked.pdf", encrypted_pdf("0000"), "encrypted"),
        ("long.pdf", pdf_of(*["page"] * 501), "too_many_pages"),
    ],
)
def test_what_cant_be_read_is_refused_with_its_reason(name: str, data: bytes, reason: str) -> None:
    assert refused(name, data) == reason


def test_pages_of_a_pdf_are_numbered_and_a_single_one_isnt() -> None:
    assert read_attachment("one.pdf", pdf_of("only page"), max_chars=CHARS).text == "only page"
    two = read_attachment("two.pdf", pdf_of("first page", "second page"), max_chars=CHARS)
    assert two.text == "— 1 —\nfirst page\n\n— 2 —\nsecond page"
    assert read_attachment("open.pdf", encrypted_pdf(""), max_chars=CHARS).text == "secret"  # anybody may open it
    # As many characters as a message may have are read.
    assert len(read_attachment("full.txt", b"x" * 50, max_chars=50).text) == 50
    assert refused("pages.pdf", pdf_of(*["thirty characters in this page"] * 3), max_chars=50) == "too_long"


@pytest.mark.parametrize("password", ["", "0000"])
def test_a_pdf_whose_cipher_is_not_there_is_told_as_encrypted(password: str) -> None:
    without = "import sys; sys.modules.update(dict.fromkeys(['cryptography', 'Crypto']))"
    read = "from graph.attachment.child import read; print(read(sys.stdin.buffer.read(), 9, 99))"
    done = subprocess.run(
        [sys.executable, "-c", f"{without}; {read}"],
        input=encrypted_pdf(password, algorithm="AES-256"),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"encrypted\n", done.stderr


def test_office_documents_are_read_with_tables_dates_and_in_their_order() -> None:
    table = [["이름", "값"], ["김민수", "3"]]
    document = docx("예산\t300만 원", "둘째 줄", table=table, note="각주도 있다")
    text = read_attachment("보고.docx", document, max_chars=CHARS).text
    assert text == "예산\t300만 원\n둘째 줄\n이름 | 값\n김민수 | 3\n\n각주도 있다"
    cells = (
        '<row><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row><row/>'
        '<row><c s="1"><v>45944</v></c><c s="2"><v>45944.5</v></c><c><v>0.30000000000000004</v></c></row>'
        '<row><c t="b"><v>1</v></c><c t="inlineStr"><is><t>글</t></is></c><c t="str"><v>=결과</v></c></row>'
        '<row><c s="1"><v>-5</v></c><c s="1"><v>2958465</v></c><c s="1"><v>9999999</v></c></row>'
    )
    text = read_attachment("표.xlsx", xlsx(첫째=cells, 둘째="<row><c><v>7</v></c></row>"), max_chars=CHARS).text
    rows = ("담당\t\t김민수", "2025-10-14\t2025-10-14 12:00\t0.3", "TRUE\t글\t=결과", "-5\t9999-12-31\t9999999")
    assert text == "\n".join(("— 첫째 —", *rows, "", "— 둘째 —", "7"))
    assert read_attachment("발표.pptx", pptx("처음", "나중"), max_chars=CHARS).text == "— 1 —\n처음\n\n— 2 —\n나중"


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.docx", docx("")[:-30], "damaged"),
        ("a.docx", zipped({"word/document.xml": "<w:document"}), "damaged"),
        ("a.xlsx", xlsx(a='<row><c t="s"><v>9</v></c></row>'), "damaged"),
        ("a.docx", docx(""), "empty"),
        ("a.docx", docx("x" * 60), "too_long"),
        ("a.docx", b"\xd0\xcf\x11\xe0" + bytes(99), "encrypted"),
        ("a.docx", zipped({"word/document.xml": " " * (101 * 2**20)}), "too_heavy"),
        ("a.docx", zipped({"else.xml": "<a/>"}), "kind"),
        ("회의록.hwpx", zipped({"a.xml": "<a/>"}), "kind"),
        ("회의록", b"\xd0\xcf\x11\xe0" + bytes(99) + b"HWP Document File" + bytes(99), "hwp"),
        ("회의록.hwpx", b"\xd0\xcf\x11\xe0" + bytes(99) + b"HWP Document File" + bytes(99), "hwp"),
        ("회의록.txt", b"HWP Document File V3.00 \x1a\1\2", "hwp"),
        ("a.odt", zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>"}), "kind"),
        ("a.HWP", b"x", "hwp"),
        ("a.xls", b"x", "old_office"),
        ("a.zip", b"PK", "kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_document_that_cannot_be_read_says_why(name: str, data: bytes, reason: str) -> None:
    assert refused(name, data, max_chars=50) == reason


@pytest.mark.parametrize("made", [swelling_pdf, endless_pdf])
def test_a_hostile_pdf_ends_by_its_limits(made: Callable[[], bytes]) -> None:
    data = made()
    assert len(data) < MAX_BYTES
    with pytest.raises(AttachmentError) as caught:
        pdf_pages("hostile.pdf", data, max_chars=CHARS, seconds=2)
    assert caught.value.reason in {"too_heavy", "damaged"}


def test_a_pdf_waits_no_longer_than_its_time_for_its_turn() -> None:
    held = [pdf_reading._AT_ONCE.acquire(blocking=False) for _ in range(2)]  # noqa: SLF001  # as if others were read
    try:
        with pytest.raises(AttachmentError) as caught:
            pdf_pages("late.pdf", pdf_of("page"), max_chars=CHARS, seconds=1)
        assert (held, caught.value.reason) == ([True, True], "busy")
    finally:
        for _ in held:
            pdf_reading._AT_ONCE.release()  # noqa: SLF001  # see above


# What a file can have that looks like the frame around it.
FRAMES = st.sampled_from(
    [
        "```",
        "````",
        "`````",
        "[첨부: a.txt]",
        "[Attachment: a.txt]",
        "\n",
        "\n\n",
        "[1-3턴] ",
        "가나다",
        "🙂",
        " ",
        "\0",
    ]
)
TEXTS = st.lists(st.one_of(FRAMES, st.text(max_size=12)), max_size=20).map("".join)
NAMES = st.text(min_size=1, max_size=200)
FILES = st.lists(st.builds(attachment_of, NAMES, TEXTS), max_size=4)
LANGUAGES: st.SearchStrategy[Language] = st.sampled_from(["ko", "en"])


@given(FILES, LANGUAGES, st.sampled_from(["", "이걸 설명해 줘", "What is this?\n\n```py\nx\n```", "끝에 ```"]))
def test_no_file_closes_its_fence(files: list[Attachment], language: Language, typed: str) -> None:
    assert split_attached(with_attachments(typed, files, language)) == (typed, files)


@given(TEXTS)
def test_a_message_without_files_is_what_was_typed(typed: str) -> None:
    text, files = split_attached(typed)
    assert files or text == typed


@given(st.integers(1, 60))
def test_fences_that_nothing_closes_are_text(count: int) -> None:
    typed = "\n".join(f"[첨부: a]\n{'`' * (3 + number)}\n" for number in range(count))
    assert split_attached(typed) == (typed, [])


@given(NAMES)
def test_a_name_is_one_short_line_that_ends_no_label(name: str) -> None:
    shown = attachment_of(name, "").name
    assert shown.isprintable()
    assert 1 <= len(shown) <= 100
    assert not {"[", "]", "/", "\\"} & {*shown}


SHOWN = {
    "C:\\Users\\kim\\보고서.pdf": "보고서.pdf",
    "../../etc/passwd.txt": "passwd.txt",
    unicodedata.normalize("NFD", "보고서.txt"): "보고서.txt",
    "a\u202egnp.txt": "a gnp.txt",
    "x" * 300 + ".csv": "x" * 95 + "….csv",
    "\n": "?",
}


def test_name_is_shown_without_folders_and_composed() -> None:
    assert {name: attachment_of(name, "").name for name in SHOWN} == SHOWN


def test_the_message_says_what_it_holds_in_the_language_of_the_page() -> None:
    file = attachment_of("a.md", "```\ncode\n```\r\n")
    assert with_attachments("보기", [file], "ko") == "보기\n\n[첨부: a.md]\n````\n```\ncode\n```\n````"
    assert with_attachments("", [file], "en").startswith("[Attachment: a.md]\n````\n")
    assert title_of(with_attachments("요약해 줘", [file], "ko")) == "요약해 줘"
    assert title_of(with_attachments("", [file], "ko")) == "[첨부: a.md]"


@pytest.mark.parametrize(
    ("typed", "name", "language"),
    [
        ("이거 요약해 줘", "report.txt", "ko"),
        ("Summarise this for me", "보고서.txt", "en"),
        ("", "보고서.txt", "ko"),
        ("", "report.txt", "en"),
    ],
)
def test_a_file_has_no_vote_on_the_language_of_a_chat(typed: str, name: str, language: Language) -> None:
    other = "Many English words stand in here. ``` and ` too." if language == "ko" else "여기에는 한국어가 많습니다."
    message = with_attachments(typed, [attachment_of(name, "\n".join([other] * 50))], "ko")
    assert session_language([HumanMessage(message)]) == language
    assert own_lines(message, "ko" if language == "ko" else "latin").find(other) == -1
    assert own_words(message) == (typed or name)
