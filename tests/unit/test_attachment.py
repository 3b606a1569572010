from __future__ import annotations

import codecs
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.attachment import EXTENSIONS, MAX_BYTES, read_attachment
from graph.attachment import pdf as pdf_reading
from graph.attachment.decode import decode
from graph.attachment.pdf import pdf_pages
from graph.attachment_error import AttachmentError
from tests.fake.pdf import encrypted_pdf, endless_pdf, pdf_of, swelling_pdf

KOREAN = "이름,값\n김민수,3\n똠방각하,4\n"
CHARS = 200_000


def refused(name: str, data: bytes, max_chars: int = CHARS) -> str:
    with pytest.raises(AttachmentError) as caught:
        read_attachment(name, data, max_chars=max_chars)
    assert caught.value.detail in name
    return caught.value.reason


@pytest.mark.parametrize(
    "data",
    [
        KOREAN.encode(),
        codecs.BOM_UTF8 + KOREAN.encode(),
        KOREAN.encode("utf-16"),
        codecs.BOM_UTF16_BE + KOREAN.encode("utf-16-be"),
        KOREAN.encode("cp949"),
        KOREAN.replace("\n", "\r\n").encode("cp949"),
    ],
)
def test_text_is_read_in_whatever_encoding_it_was_saved(data: bytes) -> None:
    assert read_attachment("표.CSV", data, max_chars=CHARS) == ("표.CSV", KOREAN.strip())


def test_euc_kr_is_read() -> None:
    assert decode("한글 문서".encode("euc-kr")) == "한글 문서"


@given(st.text().filter(lambda text: "\0" not in text and not text.startswith("\ufeff")))
def test_every_text_comes_back_from_utf_8_and_utf_16(text: str) -> None:
    assert decode(text.encode()) == text
    assert decode(codecs.BOM_UTF16_LE + text.encode("utf-16-le")) == text


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
        ("no-ending", b"text", "kind"),
        ("report.pdf.exe", b"MZ", "kind"),
        ("photo.txt", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "not_text"),
        ("nul.txt", "가\0".encode(), "not_text"),
        ("cut.txt", codecs.BOM_UTF16_LE + b"a", "not_text"),
        ("latin.txt", "café ".encode("latin-1"), "not_text"),
        ("windows.txt", "It’s John’s book, don’t worry.".encode("cp1252"), "not_text"),
        ("empty.md", b"", "empty"),
        ("blank.md", "\u200b \n\t".encode(), "empty"),
        ("large.txt", b"x" * (MAX_BYTES + 1), "too_large"),
        ("long.txt", b"x" * (CHARS + 1), "too_long"),
        ("text.pdf", b"no PDF at all", "damaged"),
        ("empty.pdf", b"", "damaged"),
        ("cut.pdf", pdf_of("page")[:150], "damaged"),
        ("scan.pdf", pdf_of("", ""), "no_text"),
        ("locked.pdf", encrypted_pdf("0000"), "encrypted"),
        ("long.pdf", pdf_of(*["page"] * 501), "too_many_pages"),
    ],
)
def test_what_cant_be_read_is_refused_with_its_reason(name: str, data: bytes, reason: str) -> None:
    assert refused(name, data) == reason


def test_as_many_characters_as_a_message_may_have_are_read() -> None:
    assert len(read_attachment("full.txt", b"x" * 50, max_chars=50).text) == 50
    assert refused("pages.pdf", pdf_of(*["thirty characters in this page"] * 3), max_chars=50) == "too_long"


def test_the_pages_of_a_pdf_are_numbered_and_a_single_one_isnt() -> None:
    assert read_attachment("one.pdf", pdf_of("only page"), max_chars=CHARS).text == "only page"
    two = read_attachment("two.pdf", pdf_of("first page", "second page"), max_chars=CHARS)
    assert two.text == "— 1 —\nfirst page\n\n— 2 —\nsecond page"


def test_a_pdf_that_anybody_may_open_is_read_though_it_is_encrypted() -> None:
    assert read_attachment("open.pdf", encrypted_pdf(""), max_chars=CHARS).text == "secret"


@pytest.mark.parametrize("password", ["", "0000"])
def test_a_pdf_whose_cipher_is_not_there_is_told_as_encrypted(password: str) -> None:
    without = "import sys; sys.modules.update(dict.fromkeys(['cryptography', 'Crypto']))"
    read = "from graph.attachment.pdf_child import read; print(read(sys.stdin.buffer.read(), 9, 99))"
    done = subprocess.run(
        [sys.executable, "-c", f"{without}; {read}"],
        input=encrypted_pdf(password, algorithm="AES-256"),
        capture_output=True,
        check=False,
    )
    assert done.stdout == b"encrypted\n", done.stderr


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


def test_endings_are_small_letters_with_their_dot() -> None:
    assert all(ending.startswith(".") and ending == ending.lower() for ending in EXTENSIONS)
    assert len(set(EXTENSIONS)) == len(EXTENSIONS)
