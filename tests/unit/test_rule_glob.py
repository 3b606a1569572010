from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.layer.rule_glob import expand_braces, matches_globs

PATHS = st.lists(st.text("ab.*", min_size=1), min_size=1, max_size=5).map("/".join)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("**/*.ts", "a.ts"),
        ("**/*.ts", "src/deep/a.ts"),
        ("*.ts", "src/a.ts"),
        ("src/*.ts", "src/a.ts"),
        ("src/**", "src/deep/a.ts"),
        ("src/**/*.ts", "src/a.ts"),
        ("src/", "src/deep/a.ts"),
        ("./src/*.ts", "src/a.ts"),
        ("/src/*.ts", "src/a.ts"),
        ("**/*.{ts,tsx}", "src/a.tsx"),
        ("{src,lib/{a,b}}/*.ts", "lib/b/x.ts"),
        ("src/[ab].ts", "src/a.ts"),
        ("src/?.ts", "src/가.ts"),
        ("**/테스트/**", "앱/테스트/가.ts"),
    ],
)
def test_glob_matches(glob: str, path: str) -> None:
    assert matches_globs(path, [glob])


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.ts", "a.tsx"),
        ("src/*.ts", "src/deep/a.ts"),
        ("src/*.ts", "lib/src/a.ts"),
        ("src/", "lib/a.ts"),
        ("**/*.ts", "a.TS"),
        ("{ts}", "ts"),
        ("", "a"),
        ("[", "a"),
    ],
)
def test_glob_does_not_match(glob: str, path: str) -> None:
    assert not matches_globs(path, [glob])


def test_what_begins_with_an_exclamation_mark_is_left_out() -> None:
    globs = ["**/*.ts", "!**/*.{test,spec}.ts"]
    assert matches_globs("src/a.ts", globs)
    assert not matches_globs("src/a.test.ts", globs)
    assert not matches_globs("a.ts", ["!b.ts"])


@pytest.mark.parametrize("glob", ["{a,b}" * 7, "x" * 1_001, "{" + "," * 900 + "}"])
def test_glob_that_is_too_much_is_refused(glob: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        expand_braces(glob)


@given(PATHS)
def test_two_stars_match_every_path(path: str) -> None:
    assert matches_globs(path, ["**"])
    assert matches_globs(f"src/{path}", ["src/**"])


@given(PATHS, st.text("ab.*?[]!{},/", max_size=40))
def test_no_glob_breaks_the_matcher(path: str, glob: str) -> None:
    try:
        expand_braces(glob.removeprefix("!"))
    except ValueError:
        return
    assert matches_globs(path, [glob]) in {True, False}


def test_hostile_glob_is_matched_without_backtracking() -> None:
    assert not matches_globs("a" * 200, ["*a" * 100 + "*b"])
    assert not matches_globs("/".join("a" * 200), ["**/a/" * 100 + "b"])
