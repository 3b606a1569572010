from __future__ import annotations

import re
from pathlib import Path
from typing import Final, get_args

import pytest

from bench.load import chat, endpoint
from bench.load.report import GUIDES
from graph.settings import Settings
from prompt.system.framing import Language
from tests.unit.test_deployment import OUTSIDE

ROOT: Final = Path(__file__).parents[2]
LANGUAGES: Final = pytest.mark.parametrize("language", get_args(Language))


def guide(language: Language) -> str:
    return (ROOT / GUIDES[language]).read_text(encoding="utf-8")


def blocks(language: Language) -> list[tuple[str, str]]:
    found = re.findall(r"^ *```(\w+)\n(.*?)^ *```", guide(language), re.DOTALL | re.MULTILINE)
    return [(kind, re.sub(r" +#.*", "", block)) for kind, block in found]


def coded(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text))


@LANGUAGES
def test_every_setting_that_the_guide_names_exists(language: Language) -> None:
    named = set(re.findall(r"(?<![\w-])[A-Z][A-Z]*_[A-Z_]+[A-Z](?![\w-])", guide(language)))
    composed = {"PROXY_ADDRESS"}
    assert named - composed - OUTSIDE <= {name.upper() for name in Settings.model_fields}
    assert all(f"${{{name}:" in (ROOT / "compose.yaml").read_text() for name in composed)


@LANGUAGES
def test_every_file_that_the_guide_names_is_there(language: Language) -> None:
    files = {name for name in coded(guide(language)) if re.fullmatch(r"(deploy/)?[\w.-]+\.(yaml|conf|sql|lock)", name)}
    assert files >= {"compose.yaml", "deploy/nginx.conf", "deploy/servers.conf", "deploy/database.sql"}
    assert all((ROOT / name).is_file() for name in files)


@LANGUAGES
def test_every_command_of_make_that_the_guide_names_is_one(language: Language) -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {words.split()[1] for words in coded(guide(language)) if words.startswith("make ")} <= targets


@LANGUAGES
def test_every_command_of_the_administrator_that_the_guide_names_is_one(language: Language) -> None:
    source = (ROOT / "graph/admin/__main__.py").read_text(encoding="utf-8")
    named = set(re.findall(r"graph\.admin (\w+)", guide(language))) | {"readmit"}
    assert named == {"export", "import", "owner", "withdraw", "readmit"}
    assert named <= set(re.findall(r'add_parser\(\s*"(\w+)"', source))
    options = re.findall(r"graph\.admin import FILE (--[a-z-]+)", guide(language))
    assert options
    assert all(f'"{option}"' in source for option in options)


@LANGUAGES
def test_the_secrets_that_the_guide_makes_are_those_that_the_containers_are_given(language: Language) -> None:
    needed = re.findall(r"^  (\w+): \{file: (secret/\w+)\}$", (ROOT / "compose.yaml").read_text(), re.MULTILINE)
    made = re.findall(r"> (secret/\w+)", guide(language))
    assert sorted(made) == sorted(file for _, file in needed)


@LANGUAGES
def test_the_limits_of_the_role_are_those_that_the_container_sets(language: Language) -> None:
    limits = [block for kind, block in blocks(language) if kind == "sql" and "ALTER ROLE" in block]
    told = [line for block in limits for line in block.splitlines()]
    done = (ROOT / "deploy/database.sql").read_text().splitlines()
    assert told == [line for line in done if line.startswith("ALTER ROLE")]


@LANGUAGES
def test_what_the_guide_says_of_the_load_is_what_is_measured(language: Language) -> None:
    told = guide(language).partition("`make load`:" if language == "en" else "`make load`: ")[2].partition("\n")[0]
    seconds = endpoint.FIRST_SECONDS + endpoint.PIECES * endpoint.PIECE_SECONDS
    for figure in (0.5 * chat.PAUSE_SECONDS, 1.5 * chat.PAUSE_SECONDS, seconds):
        assert re.search(rf"(?<![\d.]){figure:g}(?![\d.])", told)


def test_both_guides_have_the_same_sections_blocks_and_tables() -> None:
    shapes = []
    for language in get_args(Language):
        text = guide(language)
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        shapes.append(
            (
                blocks(language),
                [line.split(" ")[0] for line in text.splitlines() if line.startswith("#")],
                [len(row.split("|")) for row in rows],
                [coded(row.split("|")[1]) for row in rows],
                [coded(line) for line in text.splitlines() if line.startswith("- ")],
            )
        )
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("name", ["README.md", "README.ko.md"])
def test_readers_of_either_language_are_led_to_their_guide(name: str) -> None:
    led = set(re.findall(r"\((docs/scale[^)#]*)", (ROOT / name).read_text(encoding="utf-8")))
    assert led == {GUIDES["ko" if ".ko." in name else "en"]}
