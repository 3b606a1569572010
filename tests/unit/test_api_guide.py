"""That the names and figures in the guide to the API are those of the product, in both languages."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Final, get_args

import pytest

from api import problem, program_routes, request
from graph.server.settings import Settings
from prompt.system.framing import Language

ROOT: Final = Path(__file__).parents[2]
# What a developer reads first, and what stands behind it.
GUIDES: Final[dict[Language, tuple[str, str]]] = {
    "ko": ("docs/api.ko.md", "docs/api-clients.ko.md"),
    "en": ("docs/api.md", "docs/api-clients.md"),
}
MOST_WORDS: Final = 2_500
SECTIONS: Final[dict[str, tuple[str, str]]] = {
    "switch": ("켜기", "Switching it on"),
    "errors": ("오류", "Errors"),
}
# Which argument of these calls is the code.
_CODE_AT: Final = {"refused": 0, "Problem": 1}
# What no program is answered with: it has left.
UNSEEN: Final = {"client_left", "client_too_slow"}
OF_CONTENT: Final = {"unanswered_call", "string_above_max_length", "method_not_allowed"}
LANGUAGES: Final = pytest.mark.parametrize("language", get_args(Language))


def pages(language: Language) -> list[str]:
    return [(ROOT / name).read_text(encoding="utf-8") for name in GUIDES[language]]


def guide(language: Language) -> str:
    return "\n".join(pages(language))


def section(language: Language, name: str) -> str:
    title = SECTIONS[name][language == "en"]
    found = pages(language)[0].partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    assert found
    return found


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def coded(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def codes_in_routes() -> set[str]:
    """The codes that the modules of routes refuse requests with."""
    found = {one.code for one in problem.BY_CODE.values()}
    for module in (ROOT / "api").glob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _CODE_AT:
                code = node.args[_CODE_AT[node.func.id]] if len(node.args) > 1 else None
                found |= {code.value} if isinstance(code, ast.Constant) and isinstance(code.value, str) else set()
    return found | {kind for kind in request._OUR_KINDS if kind != "invalid_value"}  # noqa: SLF001  # a figure of the guide


@LANGUAGES
def test_the_guide_has_every_code_beside_its_status_and_no_other(language: Language) -> None:
    told = {code: row[0] for row in rows(section(language, "errors"))[1:] for code in coded(row[1])}
    assert set(told) == (codes_in_routes() - UNSEEN) | OF_CONTENT
    for one in problem.BY_CODE.values():
        assert str(one.status) in told[one.code].split(", "), one.code


@LANGUAGES
def test_every_setting_that_the_guide_names_exists(language: Language) -> None:
    outside = {"ENABLE_FORWARD_USER_INFO_HEADERS", "TURNFOLD_TOKEN", "STREAMLIT_SERVER_ADDRESS", "SESSION", "DONE"}
    outside |= {"TASK", "CHAT_ID", "LIBRECHAT_BODY_CONVERSATIONID", "OPENAI_MODEL"}
    named = set(re.findall(r"(?<![\w-])[A-Z][A-Z]*_[A-Z_]+(?![\w-])", guide(language))) - outside
    assert named <= {name.upper() for name in Settings.model_fields}
    assert {row[0].strip("`") for row in rows(section(language, "switch"))[1:]} <= named


@LANGUAGES
def test_the_guide_s_addresses_are_served(language: Language) -> None:
    served = {(operation.method, operation.documented_path) for operation in program_routes.OPERATIONS}
    told = re.findall(r"`(GET|POST|PUT|PATCH|DELETE) (/[^`]+)`", guide(language))
    assert len(told) > 8
    assert set(told) <= served


@LANGUAGES
def test_the_first_page_is_short(language: Language) -> None:
    assert len(pages(language)[0].split()) <= MOST_WORDS


def prose(text: str) -> str:
    """The text without the lines to paste."""
    return re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def anchors(text: str) -> set[str]:
    """The names that headings have on GitHub."""
    titles = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("name", [name for both in GUIDES.values() for name in both])
def test_each_link_of_the_guide_leads_to_a_section(name: str) -> None:
    path = ROOT / name
    links = re.findall(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)", path.read_text(encoding="utf-8"))
    assert len(links) > 8
    for file, anchor in links:
        target = path.parent / file if file else path
        assert target.is_file(), file
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), f"{file}#{anchor}"


def test_both_languages_name_the_same_fields_headers_and_settings() -> None:
    one, other = ({name for name in coded(prose(guide(each))) if name.isascii()} for each in get_args(Language))
    assert one ^ other <= {"group__tool", "turnfold/<name>"}
