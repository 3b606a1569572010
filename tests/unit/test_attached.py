from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph.core.attached import Attachment, attachment_of, own_words, split_attached, with_attachments
from graph.core.language import own_lines, session_language
from graph.core.text import title_of
from prompt.system.framing import Language

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
def test_no_file_closes_its_fence_or_looks_like_another(
    files: list[Attachment], language: Language, typed: str
) -> None:
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("C:\\Users\\kim\\보고서.pdf", "보고서.pdf"),
        ("../../etc/passwd.txt", "passwd.txt"),
        (unicodedata.normalize("NFD", "보고서.txt"), "보고서.txt"),
        ("a\u202egnp.txt", "a gnp.txt"),
        ("x" * 300 + ".csv", "x" * 95 + "….csv"),
        ("\n", "?"),
    ],
)
def test_a_name_is_shown_without_folders_and_composed(name: str, shown: str) -> None:
    assert attachment_of(name, "").name == shown


def test_the_message_says_what_it_holds_in_the_language_of_the_page() -> None:
    file = attachment_of("a.md", "```\ncode\n```\r\n")
    assert with_attachments("보기", [file], "ko") == "보기\n\n[첨부: a.md]\n````\n```\ncode\n```\n````"
    assert with_attachments("", [file], "en").startswith("[Attachment: a.md]\n````\n")


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
    assert session_language(HumanMessage(message)) == language
    assert own_lines(message, "ko" if language == "ko" else "latin").find(other) == -1
    assert own_words(message) == (typed or name)


def test_a_chat_is_called_after_what_was_typed_or_the_file() -> None:
    file = attachment_of("report.txt", "text")
    assert title_of(with_attachments("요약해 줘", [file], "ko")) == "요약해 줘"
    assert title_of(with_attachments("", [file], "ko")) == "[첨부: report.txt]"
