from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from graph.layer.rule_file import RuleFile
from graph.layer.rule_set import RuleSet

FILES = st.builds(
    RuleFile,
    path=st.text(st.characters(exclude_categories=["Cs"])),
    folder=st.sampled_from(["", "a", "a/b"]),
    raw=st.text(st.characters(exclude_categories=["Cs"])),
    unread_bytes=st.integers(0, 9),
    refusal=st.none() | st.just("binary"),
)
SETS = st.builds(RuleSet, files=st.lists(FILES, max_size=5).map(tuple), exceeded=st.just(("files",)))


def own(folder: str, raw: str) -> RuleFile:
    return RuleFile(path=f"{folder}/AGENTS.md" if folder else "AGENTS.md", folder=folder, raw=raw)


@given(SETS)
def test_set_comes_back_whole_from_json(rules: RuleSet) -> None:
    assert rules.text_for("a/b/x.ts").shares is not None  # what is derived isn't stored
    back = RuleSet.model_validate_json(rules.model_dump_json())
    assert back == rules
    assert back.digest == rules.digest
    assert back.text_for("a/b/x.ts") == rules.text_for("a/b/x.ts")


def test_json_of_a_newer_version_is_read() -> None:
    data = '{"files": [{"path": "AGENTS.md", "raw": "x", "later": 1}], "later": 2}'
    assert RuleSet.model_validate_json(data).files == (RuleFile(path="AGENTS.md", raw="x"),)


def test_digest_changes_with_what_is_read_and_nothing_else() -> None:
    rules = RuleSet(files=(own("", "x"), own("a", "y")))
    assert RuleSet(files=(own("a", "y"), own("", "x")), exceeded=("files",)).digest == rules.digest
    refused = RuleFile(path="b/AGENTS.md", refusal="not_regular")
    assert RuleSet(files=(*rules.files, refused)).digest == rules.digest
    others = {
        RuleSet(files=(own("", "x"), own("a", "z"))).digest,
        RuleSet(files=(own("", "x"), own("b", "y"))).digest,
        RuleSet(files=(own("", "x"),)).digest,
        RuleSet(files=(own("", "x"), RuleFile(path="a/AGENTS.md", raw="y", unread_bytes=1))).digest,
    }
    assert len(others | {rules.digest}) == 5


def test_difference_shows_what_is_new_changed_and_gone() -> None:
    old = RuleSet(files=(own("", "Be brief.\nUse tabs.\n"), own("a", "Gone.")))
    new = RuleSet(files=(own("", "Be brief.\nUse \u200bspaces.\n"), own("b", "New.")))
    assert [line for line in old.difference(new) if not line.startswith("@@")] == [
        "--- AGENTS.md",
        "+++ AGENTS.md",
        " Be brief.",
        "-Use tabs.",
        "+Use ⟦U+200B⟧spaces.",
        "--- a/AGENTS.md",
        "+++ a/AGENTS.md",
        "-Gone.",
        "--- b/AGENTS.md",
        "+++ b/AGENTS.md",
        "+New.",
    ]


@given(SETS, SETS)
def test_difference_is_empty_where_nothing_differs(old: RuleSet, new: RuleSet) -> None:
    assert old.difference(old) == ()
    if not old.difference(new):
        assert {file.path for file in old.files if file.refusal is None} == {
            file.path for file in new.files if file.refusal is None
        }


def test_change_behind_what_is_read_is_shown() -> None:
    old = RuleSet(files=(RuleFile(path="AGENTS.md", raw="x\n", unread_bytes=5),))
    new = RuleSet(files=(RuleFile(path="AGENTS.md", raw="x\n", unread_bytes=6),))
    assert "+[… 6 of 8 bytes left out]" in old.difference(new)


def test_agreement_to_one_folder_keeps_that_to_another() -> None:
    at_a = RuleSet(files=(own("", "root"), own("a", "in a")), folders=("", "a"))
    at_b = RuleSet(files=(own("", "root"), own("b", "in b")), folders=("", "b"))
    agreed = at_a.renewed(at_b)
    assert [file.path for file in agreed.files] == ["AGENTS.md", "a/AGENTS.md", "b/AGENTS.md"]
    assert agreed.within(at_a.folders).digest == at_a.digest
    assert agreed.within(at_b.folders).digest == at_b.digest
    assert "in a" in agreed.text_for("a/x.ts").volatile
    assert "in b" not in agreed.text_for("a/x.ts").volatile


def test_file_that_is_gone_is_gone_once_it_is_agreed() -> None:
    agreed = RuleSet(files=(own("", "root"), own("a", "in a")), folders=("", "a"))
    found = RuleSet(files=(own("a", "in a"),), folders=("", "a"))
    assert agreed.within(found.folders).digest != found.digest
    assert agreed.renewed(found).files == found.files


def test_long_file_that_differs_stands_there_whole() -> None:
    lines = [f"{number % 150}" for number in range(10_000)]
    old = RuleSet(files=(own("", "\n".join(lines)),))
    new = RuleSet(files=(own("", "\n".join(reversed(lines))),))
    shown = old.difference(new)
    assert shown == (
        "--- AGENTS.md",
        "+++ AGENTS.md",
        *(f"-{line}" for line in lines),
        *(f"+{line}" for line in reversed(lines)),
    )
    assert old.difference(old) == ()
