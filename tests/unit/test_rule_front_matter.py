from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.layer.rule_front_matter import FrontMatter, parse_front_matter
from graph.layer.rule_glob import matches_globs

KNOWN = ["description: 가", "description: |", "globs: a,b", "globs:", "globs: [", "globs: '", "alwaysApply: true"]
PIECES = [
    "---",
    "  - x",
    "- 'y'",
    "#",
    "",
    "x: y",
    "  deep: 1",
    "just words",
    "\u2028",
    "description: \ud800",
    "가" * 999,
]
LINES = st.sampled_from([*KNOWN, *PIECES])
PLAIN = st.text(string.ascii_letters + "가나다*./-_", min_size=1, max_size=12)


def parsed(*lines: str) -> FrontMatter:
    return parse_front_matter("\n".join(["---", *lines, "---", "Be brief."]))


@pytest.mark.parametrize(
    ("lines", "globs"),
    [
        (["globs: **/*.ts,**/*.tsx"], ("**/*.ts", "**/*.tsx")),
        (["globs: **/*.ts, **/*.tsx  # both"], ("**/*.ts", "**/*.tsx")),
        (["globs: '**/*.ts', \"**/*.tsx\""], ("**/*.ts", "**/*.tsx")),
        (['globs: "**/*.ts,**/*.tsx"'], ("**/*.ts", "**/*.tsx")),
        (['globs: ["**/*.ts", "**/*.tsx"]'], ("**/*.ts", "**/*.tsx")),
        (["globs:", "  - **/*.ts", "", '  - "**/*.tsx"'], ("**/*.ts", "**/*.tsx")),
        (["globs:", "- **/*.ts", "alwaysApply: false"], ("**/*.ts",)),
        (["globs: **/*.{ts,tsx},*.md"], ("**/*.{ts,tsx}", "*.md")),
        (["globs: [ab].ts"], ("[ab].ts",)),
        (["globs:"], ()),
        (["globs: []"], ()),
    ],
)
def test_globs_are_a_comma_list_or_a_yaml_list(lines: list[str], globs: tuple[str, ...]) -> None:
    assert parsed(*lines) == FrontMatter(globs=globs, body="Be brief.")


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: API: rules", "API: rules"),
        ("description: 'API: rules'", "API: rules"),
        ('description: "규칙 # 하나"', "규칙 # 하나"),
        ("description:", ""),
        ("description: C# and > all", "C# and > all"),
    ],
)
def test_description_is_one_line(line: str, description: str) -> None:
    assert parsed(line).description == description


@pytest.mark.parametrize(("value", "flag"), [("true", True), ("True # yes", True), ("'false'", False), ("", False)])
def test_flag_is_true_or_false(value: str, *, flag: bool) -> None:
    assert parsed(f"alwaysApply: {value}").always_apply is flag


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["alwaysApply: maybe"], "bad_always_apply"),
        (["alwaysApply: [true]"], "bad_always_apply"),
        (["globs: '**/*.ts"], "bad_globs"),
        (["globs: *.ts", "  - *.tsx"], "bad_globs"),
        (["globs:", "  ts: yes"], "bad_globs"),
        (["globs: " + "{a,b}" * 7], "bad_globs"),
        (["description: |", "  two", "  lines"], "bad_description"),
        (["description: >-"], "bad_description"),
        (["description: one", "  two"], "bad_description"),
        (['description: "one'], "bad_description"),
        (["just words"], "not_a_line"),
        (["  - first"], "not_a_line"),
        (["globs: a", "globs: b"], "twice"),
    ],
)
def test_what_cannot_be_read_is_a_problem_and_no_guess(lines: list[str], problem: str) -> None:
    assert parsed(*lines) == FrontMatter(body="Be brief.", problem=problem)  # type: ignore[arg-type]  # one of them


def test_front_matter_that_does_not_end_is_a_problem() -> None:
    assert parse_front_matter("---\nalwaysApply: true\nBe brief.") == FrontMatter(problem="not_closed")


def test_without_front_matter_all_is_the_body() -> None:
    assert parse_front_matter("Be brief.\n---\nalwaysApply: true\n---\n") == FrontMatter(
        body="Be brief.\n---\nalwaysApply: true\n---\n"
    )


def test_other_keys_and_remarks_are_ignored() -> None:
    assert parsed("# mine", "tags: [a]", "owner:", "  name: x", "tags: [b]", "alwaysApply: true").always_apply


@given(st.lists(LINES | st.text(), max_size=12))
def test_no_text_breaks_the_parser(lines: list[str]) -> None:
    text = "\n".join(["---", *lines])
    front = parse_front_matter(text)
    assert text.endswith(front.body)
    if front.problem is not None:
        assert (front.description, front.globs, front.always_apply) == ("", (), False)
    assert matches_globs("src/a.ts", front.globs) in {True, False}


@given(globs=st.lists(PLAIN, max_size=6), quote=st.sampled_from(["{}", '"{}"', "'{}'"]), is_list=st.booleans())
def test_each_way_of_writing_globs_reads_the_same(globs: list[str], quote: str, *, is_list: bool) -> None:
    quoted = [quote.format(glob) for glob in globs]
    expected = tuple(globs)
    assert parsed("globs:", *(f"  - {glob}" for glob in quoted)).globs == expected
    line = ", ".join(quoted)
    assert parsed(f"globs: [{line}]" if is_list else f"globs: {line}").globs == expected
