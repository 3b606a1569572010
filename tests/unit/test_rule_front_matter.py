"""What a rule says of when it applies: its front matter, and the globs in it."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.layer.rule_file import FrontMatter, expand_braces, matches_globs, parse_front_matter

KNOWN = ["description: 가", "description: |", "globs: a,b", "globs:", "globs: [", "globs: '", "alwaysApply: true"]
PIECES = ["---", "  - x", "- 'y'", "#", "", "x: y", "  deep: 1", "just words", "\u2028", "description: \ud800"]
LINES = st.sampled_from([*KNOWN, *PIECES, "가" * 999])
PLAIN = st.text(string.ascii_letters + "가나다*./-_", min_size=1, max_size=12)
PATHS = st.lists(st.text("ab.*", min_size=1), min_size=1, max_size=5).map("/".join)


def parsed(*lines: str) -> FrontMatter:
    return parse_front_matter("\n".join(["---", *lines, "---", "Be brief."]))


@pytest.mark.parametrize(
    ("lines", "globs"),
    [
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


def test_description_is_one_line_and_the_flag_true_or_false() -> None:
    for line, description in (
        ("API: rules", "API: rules"),
        ("'API: rules'", "API: rules"),
        ('"규칙 # 하나"', "규칙 # 하나"),
        ("", ""),
        ("C# and > all", "C# and > all"),
    ):
        assert parsed(f"description: {line}").description == description
    for value, flag in (("true", True), ("True # yes", True), ("'false'", False), ("", False)):
        assert parsed(f"alwaysApply: {value}").always_apply is flag
    assert parsed("# mine", "tags: [a]", "owner:", "  name: x", "tags: [b]", "alwaysApply: true").always_apply


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["alwaysApply: maybe"], "bad_always_apply"),
        (["alwaysApply: [true]"], "bad_always_apply"),
        (["globs: '**/*.ts"], "bad_globs"),
        (["globs: *.ts", "  - *.tsx"], "bad_globs"),
        (["globs:", "  ts: yes"], "bad_globs"),
        (["globs: " + "{a,b}" * 7], "bad_globs"),
        (["globs: " + "{a,b}," * 65], "bad_globs"),
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


def test_front_matter_ends_and_without_it_all_is_the_body() -> None:
    assert parse_front_matter("---\nalwaysApply: true\nBe brief.") == FrontMatter(problem="not_closed")
    whole = "Be brief.\n---\nalwaysApply: true\n---\n"
    assert parse_front_matter(whole) == FrontMatter(body=whole)


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


@pytest.mark.parametrize(
    ("glob", "matching", "others"),
    [
        ("**/*.ts", ("a.ts", "src/deep/a.ts"), ("a.TS",)),
        ("*.ts", ("src/a.ts",), ("a.tsx",)),
        ("src/*.ts", ("src/a.ts",), ("src/deep/a.ts", "lib/src/a.ts")),
        ("src/**", ("src/deep/a.ts",), ()),
        ("src/**/*.ts", ("src/a.ts",), ()),
        ("src/", ("src/deep/a.ts",), ("lib/a.ts",)),
        ("./src/*.ts", ("src/a.ts",), ()),
        ("/src/*.ts", ("src/a.ts",), ()),
        ("**/*.{ts,tsx}", ("src/a.tsx",), ()),
        ("{src,lib/{a,b}}/*.ts", ("lib/b/x.ts",), ()),
        ("src/[ab].ts", ("src/a.ts",), ()),
        ("src/?.ts", ("src/가.ts",), ()),
        ("**/테스트/**", ("앱/테스트/가.ts",), ()),
        ("{ts}", (), ("ts",)),
        ("", (), ("a",)),
        ("[", (), ("a",)),
    ],
)
def test_a_glob_matches(glob: str, matching: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert [path for path in (*matching, *others) if matches_globs(path, [glob])] == list(matching)


def test_what_begins_with_an_exclamation_mark_is_left_out() -> None:
    globs = ["**/*.ts", "!**/*.{test,spec}.ts"]
    assert matches_globs("src/a.ts", globs)
    assert not matches_globs("src/a.test.ts", globs)
    assert not matches_globs("a.ts", ["!b.ts"])


def test_a_hostile_glob_is_refused_or_matched_without_backtracking() -> None:
    for glob in ("{a,b}" * 7, "x" * 1_001, "{" + "," * 900 + "}"):
        with pytest.raises(ValueError, match=r".*"):
            expand_braces(glob)
    assert not matches_globs("a" * 200, ["*a" * 100 + "*b"])
    assert not matches_globs("/".join("a" * 200), ["**/a/" * 100 + "b"])


@given(PATHS, st.text("ab.*?[]!{},/", max_size=40))
def test_two_stars_match_every_path_and_no_glob_breaks_the_matcher(path: str, glob: str) -> None:
    assert matches_globs(path, ["**"])
    assert matches_globs(f"src/{path}", ["src/**"])
    try:
        expand_braces(glob.removeprefix("!"))
    except ValueError:
        return
    assert matches_globs(path, [glob]) in {True, False}
