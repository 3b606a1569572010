from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.core.manifest import (
    LONGEST_CHAIN,
    Block,
    Manifest,
    decode_all,
    decode_manifest,
    encode_manifest,
    without_gaps,
)

BLOCKS = st.one_of(
    st.builds(lambda number: ("message", f"ai-{number}", 1, number), st.integers(1, 40)),
    st.tuples(
        st.sampled_from(["system", "record", "message", "shortened", "cut", "tools"]),
        st.text(max_size=8),
        st.integers(-1, 3),
        st.integers(0, 10**6),
    ),
)
LISTS = st.lists(BLOCKS, max_size=12)


@st.composite
def changed(draw: st.DrawFn, before: Manifest) -> Manifest:
    """What may come after a list: anything, or the same with blocks out and in at any place."""
    if draw(st.integers(0, 5)) == 0:
        return tuple(draw(LISTS))
    first, last = sorted((draw(st.integers(0, len(before))), draw(st.integers(0, len(before)))))
    middle = before[first:last] if draw(st.booleans()) else ()
    return (*before[:first], *draw(LISTS), *middle, *draw(LISTS), *before[last:])


@st.composite
def series(draw: st.DrawFn) -> list[Manifest]:
    manifests = [tuple(draw(LISTS))]
    for _ in range(draw(st.integers(0, 8))):
        manifests.append(draw(changed(manifests[-1])))
    return manifests


def write_all(manifests: list[Manifest]) -> list[str]:
    texts: list[str] = []
    for manifest in manifests:
        texts.append(encode_manifest(manifest, texts))
    return texts


def old(manifest: Manifest) -> str:
    return json.dumps(manifest, separators=(",", ":"))


def grown(turn: int) -> Manifest:
    """What a long chat sends at a turn: two records a block of three, then what is raw, and the tools last."""
    records = [("record", f"rec-{number}", 1, 190) for number in range(1, (turn - 1) // 3 + 1)]
    raw = [("message", f"said-{number}", 1, 70) for number in range(len(records) * 6, 2 * turn - 1)]
    return (("system", "chat", 1, 80 + len(records)), *records, *raw, ("tools", "a2e8748522302f3d", 1, 344))


@given(series())
def test_every_list_of_a_series_comes_back_as_it_was(manifests: list[Manifest]) -> None:
    texts = write_all(manifests)
    assert [decode_manifest(texts[: index + 1]) for index in range(len(texts))] == manifests


@given(series(), st.sets(st.integers(0, 8)), st.sets(st.integers(0, 8)))
def test_a_series_comes_back_over_lists_of_an_older_database_and_calls_that_were_never_kept(
    manifests: list[Manifest], of_older: set[int], lost: set[int]
) -> None:
    texts: list[str] = []
    retained: list[Manifest] = []
    for index, manifest in enumerate(manifests):
        text = old(manifest) if index in of_older else encode_manifest(manifest, texts)
        if index not in lost:
            texts.append(text)
            retained.append(manifest)
    assert [decode_manifest(texts[: index + 1]) for index in range(len(texts))] == retained


@given(series(), st.sets(st.integers(0, 8)))
def test_where_lists_are_missing_those_that_need_them_are_empty_and_all_can_be_read(
    manifests: list[Manifest], lost: set[int]
) -> None:
    texts = write_all(manifests)
    retained = [index for index in range(len(texts)) if index not in lost]
    assert without_gaps(texts) == texts
    mended = without_gaps([texts[index] for index in retained])
    for number, index in enumerate(retained):
        if decode_manifest(mended[: number + 1]) not in (manifests[index], ()):
            # A difference fits any list of as many blocks; that it was another one the input's hash tells.
            assert len(decode_manifest(mended[:number])) == len(manifests[index - 1])
    assert len(decode_all(mended)) == len(retained)
    assert without_gaps(["{", "[5]", *texts])[:2] == ["[0]", "[0]"]


def test_any_list_of_a_long_series_is_read_from_a_bounded_number_of_rows() -> None:
    manifests = [grown(turn) for turn in range(1, 3 * LONGEST_CHAIN)]
    texts = write_all(manifests)
    for index, manifest in enumerate(manifests):
        assert decode_manifest(texts[: index + 1][-LONGEST_CHAIN:]) == manifest
    assert sum(json.loads(text)[0] == 0 for text in texts) == 3


def test_a_turn_more_costs_its_own_blocks_and_not_the_whole_list() -> None:
    texts = write_all([grown(turn) for turn in range(1, 201)])
    difference = json.loads(texts[-1])
    assert difference[1:] == [68, ["said-397", 70], ["said-398", 70], 1]
    assert len(texts[-1]) * 20 < len(old(grown(200)))


def test_a_record_that_comes_in_at_the_front_is_a_short_difference() -> None:
    texts = write_all([grown(turn) for turn in range(1, 200)])
    depth, *steps = json.loads(texts[-1])
    assert depth > 0
    assert [step for step in steps if isinstance(step, list)] == [
        ["system", "chat", 146],
        ["record", "rec-66", 190],
        ["said-396", 70],
    ]


def test_a_list_with_nothing_in_common_is_written_whole() -> None:
    texts = write_all([grown(9), (("system", "other", 2, 3),)])
    assert json.loads(texts[-1]) == [0, ["system", "other", 2, 3]]


def test_a_list_that_takes_long_to_compare_is_written_whole() -> None:
    whole = tuple(("message", f"said-{number}", 1, 70) for number in range(10_000))
    between = tuple(block for number, said in enumerate(whole) for block in (said, ("cut", f"cut-{number}", 1, 3)))
    texts = write_all([whole, between])
    assert json.loads(texts[1])[0] == 0
    assert decode_manifest(texts) == between


def test_lists_of_an_older_database_are_read_and_are_no_base() -> None:
    before: tuple[Block, ...] = grown(8)
    assert decode_manifest([old(before)]) == before
    assert decode_manifest(["[]"]) == ()
    texts = [old(before), encode_manifest(grown(9), [old(before)])]
    assert json.loads(texts[1])[0] == 0
    assert decode_manifest(texts) == grown(9)


@pytest.mark.parametrize("spoilt", ["", "{}", "3", '[0,"a"]', '[0,["a"]]', '[0,["a",1,2]]', "[0,null]", '[1,["a",1]]'])
def test_a_list_that_cannot_be_read_is_told_and_is_no_base(spoilt: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # json's own among them
        decode_manifest([spoilt])
    assert json.loads(encode_manifest(grown(3), [spoilt]))[0] == 0


def test_a_difference_behind_another_list_than_its_own_is_told() -> None:
    texts = write_all([grown(1), grown(2), grown(3)])
    for wrong in ([texts[0], texts[2]], [texts[2]], [encode_manifest(grown(9)), texts[1]]):
        with pytest.raises(ValueError, match=r"depth|blocks"):
            decode_manifest(wrong)
