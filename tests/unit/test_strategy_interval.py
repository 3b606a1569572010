from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from graph.core.snapshot import SessionSnapshot
from graph.fold.record import begin_record
from graph.fold.spec import FoldSpec, source_key
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.value.record import Record
from prompt.summary.summary_generator import sizes
from prompt.system.framing import Language
from tests.fake.snapshot import NOON, adopted, archived, plain_turn, record_of, snapshot_of

LONG = "구매 담당자가 지난주 회의에서 정한 내용을 정리해 두었고 다음 달 3일까지 검토합니다. " * 12


def run(turn_count: int, summary: str, limits: Limits) -> tuple[list[Record], list[int], int]:
    """Every fold works; gives the active records at the last turn, their tokens by turn, and merges of turn 1."""
    strategy, active, merges = IntervalStrategy(limits), list[Record](), 0
    sizes = []
    turns = [plain_turn(number, LONG) for number in range(1, turn_count + 1)]
    entries = archived(turns)
    for number in range(1, turn_count + 1):
        covered_to = active[-1].to_position if active else 0
        snapshot = SessionSnapshot(number - 1, tuple(active), entries[covered_to : 2 * number - 1], 0.3)
        for spec in strategy.due_folds(snapshot):
            tokens = spec.max_tokens or 10_000
            record = adopted(spec, summary, f"r{number}-{spec.kind}").with_changes(
                level=spec.level, summary_tokens=min(tokens, 450), kind=spec.kind
            )
            active = [old for old in active if old.id not in spec.sources]
            active = sorted([*active, record], key=lambda entry: entry.from_position)
            merges += spec.kind == "merge" and 1 in spec.turns
        sizes.append(sum(record.summary_tokens for record in active))
    return active, sizes, merges


def test_at_fifty_turns_it_is_the_sixteen_summaries_of_the_seed() -> None:
    active, _, merges = run(50, "요약", Limits())
    assert [record.turns for record in active] == [(3 * k + 1, 3 * k + 2, 3 * k + 3) for k in range(16)]
    assert merges == 0


@pytest.mark.slow
def test_over_a_thousand_turns_the_records_stay_bounded_and_the_first_turn_is_condensed_three_times_at_most() -> None:
    active, sizes, merges = run(1_000, "요약", Limits())
    assert max(sizes[299:]) <= 1.2 * max(sizes[:299])
    assert 1 <= merges <= 3
    assert [turn for record in active for turn in record.turns] == list(range(1, 1_000))
    assert len([record for record in active if record.level == 0]) >= 16


@pytest.mark.parametrize(
    ("imported", "due_at"),
    [
        (set(), {4: [(1, 3)], 7: [(1, 3), (4, 6)], 10: [(1, 3), (4, 6), (7, 9)]}),
        ({1, 2, 3}, {4: [], 9: [], 10: [(1, 3), (4, 6), (7, 9)]}),
        ({1, 2, 3, 4}, {5: [], 10: [], 11: [(1, 3), (4, 6), (7, 9)]}),
        # A program's own turns in the middle hold up what follows them, not what stands before.
        ({5}, {7: [(1, 3)], 11: [(1, 3)], 12: [(1, 3), (4, 6), (7, 9)]}),
        ({2, 8}, {10: [(1, 3), (4, 6)], 15: [(1, 3), (4, 6), (7, 9), (10, 12)]}),
    ],
)
def test_imported_turns_are_folded_once_two_blocks_of_own_turns_stand_behind_them(
    imported: set[int], due_at: dict[int, list[tuple[int, int]]]
) -> None:
    strategy = IntervalStrategy(Limits())
    for open_turn, blocks in due_at.items():
        snapshot = snapshot_of([plain_turn(number, LONG) for number in range(1, open_turn)])
        snapshot = replace(snapshot, imported=frozenset(imported), input_tokens=100_000)
        due = strategy.due_folds(snapshot)
        assert [(spec.turns[0], spec.turns[-1]) for spec in due] == blocks
        following = strategy.next_fold(snapshot)
        assert following.is_due is bool(due)


def test_the_page_is_told_how_many_turns_imported_ones_wait_for() -> None:
    strategy = IntervalStrategy(Limits())
    for complete, left in ((3, 6), (4, 5), (8, 1), (9, 0)):
        snapshot = snapshot_of([plain_turn(number, LONG) for number in range(1, complete + 1)])
        assert strategy.next_fold(replace(snapshot, imported=frozenset({1, 2, 3}))).turns_left == left


def test_without_room_the_oldest_imported_turns_are_folded_first() -> None:
    snapshot = snapshot_of([plain_turn(number, LONG) for number in range(1, 31)])
    snapshot = replace(snapshot, imported=frozenset(range(1, 30)))
    strategy, whole = IntervalStrategy(Limits()), snapshot.context_tokens
    counts = [
        len(strategy.due_folds(replace(snapshot, input_tokens=tokens))) for tokens in (2 * whole, whole, whole // 2)
    ]
    assert counts[0] == 0 < counts[1] < counts[2] < 10


def test_a_merge_is_due_beside_the_block_and_no_turn_waits_for_it() -> None:
    old = [record_of((3 * k + 1, 3 * k + 2, 3 * k + 3), LONG) for k in range(24)]
    snapshot = snapshot_of([plain_turn(n, LONG) for n in (73, 74, 75)], old)
    block, merge = IntervalStrategy(Limits()).due_folds(snapshot)
    assert (block.kind, block.turns, block.is_waited) == ("interval", (73, 74, 75), True)
    assert (merge.kind, merge.turns, merge.is_waited) == ("merge", tuple(range(1, 25)), False)


def test_a_turn_that_a_compaction_cut_in_two_is_folded_with_what_is_left_of_it() -> None:
    compaction = record_of((1, 2), "S", kind="compaction").with_changes(to_position=6)
    left: list[AnyMessage] = [AIMessage(f"the rest {LONG}", id="a3")]
    entries = [
        *archived([left], first_turn=3, first_position=7),
        *archived([plain_turn(4, LONG), [HumanMessage("now", id="u5")]], first_turn=4, first_position=8),
    ]
    (spec,) = IntervalStrategy(Limits()).due_folds(SessionSnapshot(4, (compaction,), entries, 0.3))
    assert (spec.turns, spec.from_position, spec.to_position) == ((3,), 7, 7)


def test_after_the_context_was_begun_anew_blocks_start_behind_it() -> None:
    entries = archived([plain_turn(n, LONG) for n in (6, 7, 8, 9)], first_turn=6, first_position=11)
    specs = IntervalStrategy(Limits()).due_folds(SessionSnapshot(9, (), entries, 0.3))
    assert [spec.turns for spec in specs] == [(6,), (7, 8, 9)]


def test_with_nothing_raw_there_is_nothing_to_fold() -> None:
    assert IntervalStrategy(Limits()).due_folds(SessionSnapshot(9, (), (), 0.3)) == ()


@pytest.mark.parametrize("complete", range(8))
def test_it_says_which_block_comes_next_and_that_it_is_due_just_when_it_is(complete: int) -> None:
    snapshot = SessionSnapshot(complete, (), archived([plain_turn(n, LONG) for n in range(1, complete + 1)]), 0.3)
    following, due = IntervalStrategy(Limits()).next_fold(snapshot), IntervalStrategy(Limits()).due_folds(snapshot)
    assert following.turns == (1, 2, 3)
    assert following.turns_left == max(0, 3 - complete)
    assert following.is_due == bool(due)
    if due:
        assert (following.original_chars, following.summary_chars) == (due[0].original_chars, due[0].target_chars)


def test_a_block_knows_what_stands_right_before_it_and_the_turns_of_its_messages() -> None:
    turns = [plain_turn(number, LONG) for number in range(1, 7)]
    first, second = IntervalStrategy(Limits()).due_folds(snapshot_of(turns))
    assert (first.before, first.message_turns) == ("", (1, 1, 2, 2, 3, 3))
    assert (second.before, second.message_turns) == (f"A3 {LONG}".strip(), (4, 4, 5, 5, 6, 6))
    folded = snapshot_of(turns[3:], [adopted(first, "앞 요약")])
    (second,) = IntervalStrategy(Limits()).due_folds(folded)
    assert second.before == "앞 요약"


def test_a_prepared_fold_is_not_thrown_away_because_the_record_before_it_changed() -> None:
    def key(summary: str) -> str:
        snapshot = snapshot_of([plain_turn(n, LONG) for n in (4, 5, 6)], [record_of((1, 2, 3), summary)])
        (spec,) = IntervalStrategy(Limits()).due_folds(snapshot)
        assert spec.before == summary
        return source_key(spec, model="m", prompt_version="2")

    assert key("앞 요약") == key("고친 앞 요약")


@pytest.mark.parametrize(("reads_cache", "least_chars"), [(False, 300), (True, 600)])
def test_a_short_block_stands_verbatim_and_only_a_block_does(*, reads_cache: bool, least_chars: int) -> None:
    def decided(chars: int) -> tuple[FoldSpec, bool]:
        turns = [plain_turn(n, "가" * (chars // 6 - 3)) for n in (1, 2, 3)]
        snapshot = replace(snapshot_of(turns), reads_cache=reads_cache)
        (spec,) = IntervalStrategy(Limits()).due_folds(snapshot)
        return spec, IntervalStrategy(Limits()).next_fold(snapshot).stands_verbatim

    short, is_told_short = decided(least_chars - 6)
    assert (short.source_chars, short.stands_verbatim, is_told_short) == (least_chars - 6, True, True)
    long, is_told_short = decided(least_chars)
    assert (long.source_chars, long.stands_verbatim, is_told_short) == (least_chars, False, False)
    assert not replace(short, kind="merge").stands_verbatim


def test_a_front_takes_room_from_the_records() -> None:
    records = [record_of((3 * k + 1, 3 * k + 2, 3 * k + 3), "요약 " * 600, record_id=f"r{k}") for k in range(4)]
    snapshot = snapshot_of([plain_turn(13, LONG)], records)
    assert snapshot.within(6_000).input_tokens == 6_000
    assert IntervalStrategy(Limits()).due_folds(snapshot.within(6_000)) == ()
    (merge,) = IntervalStrategy(Limits()).due_folds(replace(snapshot, front_tokens={"front": 2_000}).within(6_000))
    assert merge.kind == "merge"
    # What was made for a larger model is cut for this one: it never takes all the room.
    crowded = replace(snapshot, front_tokens={"front": 90_000, "client": 900}, pin_tokens=4_000)
    assert crowded.within(6_000).input_tokens == 6_000 - 2_000 - 900 - 750
    # Nor is all folded away for a program's instructions, which are sent whole.
    assert replace(crowded, front_tokens={"client": 90_000}).within(6_000).input_tokens == 1_500


def blocks_of(snapshot: SessionSnapshot) -> tuple[FoldSpec, ...]:
    return IntervalStrategy(Limits()).due_folds(snapshot)


def taken(number: int, target_chars: int, summary_chars: int) -> Record:
    record = record_of((3 * number - 2, 3 * number - 1, 3 * number), "요약", record_id=f"r{number}")
    return record.with_changes(target_chars=target_chars, summary_chars=summary_chars)


def next_block_after(*records: Record) -> FoldSpec:
    first = 3 * len(records) + 1
    (spec,) = blocks_of(snapshot_of([plain_turn(n, LONG) for n in range(first, first + 3)], records))
    return spec


def test_the_next_fold_makes_up_for_what_earlier_ones_took_too_much_or_too_little() -> None:
    first = next_block_after()
    target, asked = first.target_chars, first.asked_chars
    assert asked == round(target * 0.6)
    for records, less_chars in (
        ([taken(1, 900, 1_000)], 100),
        ([taken(1, 900, 1_000), taken(2, 900, 1_020)], 212),
        ([taken(1, 900, 1_000), taken(2, 900, 870)], 70),
        ([taken(1, 900, 880)], -20),
        ([taken(1, 900, 880), taken(2, 900, 910)], -10),
        # More than 6,000 characters are never asked for.
        ([taken(1, 9_000, 6_100)], 100),
    ):
        spec = next_block_after(*records)
        assert (spec.target_chars, spec.asked_chars, spec.less_chars) == (
            target,
            spec.full_chars - less_chars,
            less_chars,
        )
    for chars, share in ((5_000, 2 / 3), (1, 1.2)):
        assert abs(next_block_after(taken(1, 900, chars)).asked_chars - asked * share) <= 1


@pytest.mark.parametrize("changes", [{"edited": True}, {"kind": "verbatim"}, {"kind": "merge"}, {"kind": "compaction"}])
def test_what_no_model_was_asked_for_by_the_rate_is_not_made_up_for(changes: dict[str, object]) -> None:
    assert next_block_after(taken(1, 900, 1_300).with_changes(**changes)).less_chars == 0


def test_of_several_due_blocks_the_oldest_makes_up_first() -> None:
    record = taken(1, 900, 1_500)
    first, second, third = blocks_of(snapshot_of([plain_turn(n, LONG) for n in range(4, 13)], [record]))
    assert [spec.full_chars - spec.asked_chars for spec in (first, second, third)] == [212, 212, 176]
    assert first.less_chars + second.less_chars + third.less_chars == 600
    # A block that stands verbatim is asked of nobody.
    turns = [plain_turn(n, "") for n in (4, 5, 6)] + [plain_turn(n, LONG) for n in (7, 8, 9)]
    verbatim, asked = blocks_of(snapshot_of(turns, [taken(1, 900, 1_000)]))
    assert (verbatim.stands_verbatim, verbatim.less_chars, asked.less_chars) == (True, 0, 100)


def test_a_prepared_fold_is_not_thrown_away_because_another_took_too_much() -> None:
    specs = [next_block_after(taken(1, 900, chars)) for chars in (900, 905, 1_400)]
    assert [spec.asked_chars for spec in specs] == sorted({spec.asked_chars for spec in specs}, reverse=True)
    assert len({source_key(spec, model="m", prompt_version="2") for spec in specs}) == 1


@given(
    st.lists(st.tuples(st.floats(0.95, 1.6), st.floats(0.9, 1.1)), min_size=4, max_size=16),
)
def test_the_folds_of_a_session_are_as_long_as_was_asked_on_average(blocks: list[tuple[float, float]]) -> None:
    records: list[Record] = []
    for number, (share, size) in enumerate(blocks, start=1):
        first = 3 * number - 2
        words = LONG[: int(len(LONG) * size / 1.3)]
        (spec,) = blocks_of(snapshot_of([plain_turn(n, words) for n in range(first, first + 3)], records))
        length, _ = sizes(spec.asked_chars)
        asked = {"needed_rate": spec.needed_rate, "original_chars": spec.original_chars}
        records.append(taken(number, spec.target_chars, int(length * share)).with_changes(**asked))
    asked_chars = sum(record.original_chars * record.needed_rate for record in records)
    assert 0.8 <= sum(record.summary_chars for record in records) / asked_chars <= 1.2


DENSE_KO = (
    "납품일은 11월 30일, 금액은 900만 원, 계약 번호는 AK-3301이에요. 입금 계좌는 하나은행 110-234-567890이고요.",
    "네. 11월 30일 납품, 900만 원으로 적어 둘게요. 선금은 270만 원이면 될까요?",
    "선금은 180만 원이요. 담당은 송지혜 과장, 전화 010-7734-2068, 검수는 12월 5일 오전 9시부터 오세라 대리가 합니다.",
    "네. 토요일 작업은 없는 것으로 두겠습니다.",
    "로그는 /var/log/emr.log, 서버는 192.168.0.15예요. 용량은 212GB, 환자는 14,328명이에요.",
    "확인했습니다. 담당은 누구인가요?",
)
DENSE_EN = (
    "Deploy v3.14.2 failed at 08:58, pod label-writer-7d9f, error ORA-00060. Ticket INC-4821.",
    "Noted. Is flag ENABLE_0098 on in prod?",
    "It's off. Cap max_poll_records at 25, 21,906 labels, 40 a batch, until 2026-11-30 17:00. Use scripts/void.py.",
    "Fine, 548 batches then. Who approves them?",
    "Tomasz Bielak. Budget $4,200, contact ops@northgate.example, host 10.0.4.17, port 8443.",
    "All noted.",
)
FILLER = {
    "ko": "먼저 범위를 나누고 각 단계를 맡을 사람을 정해 두는 편이 안전합니다. 안내문은 짧게 쓰면 충분합니다. ",
    "en": "It is safer to split the work into stages first. Keep the notice short and tell everybody in time. ",
}


def said(texts: tuple[str, ...], filler: str = "") -> list[list[AnyMessage]]:
    return [
        [
            HumanMessage(texts[2 * turn], id=f"u{turn + 1}"),
            AIMessage(f"{texts[2 * turn + 1]} {filler}".strip(), id=f"a{turn + 1}"),
        ]
        for turn in range(3)
    ]


def block_of(turns: list[list[AnyMessage]], *, rate: float = 0.3, language: Language = "ko") -> FoldSpec:
    (spec,) = blocks_of(replace(snapshot_of(turns), rate=rate, language=language))
    return spec


@pytest.mark.parametrize(("language", "texts"), [("ko", DENSE_KO), ("en", DENSE_EN)])
def test_a_block_full_of_facts_is_asked_for_more_than_its_target(language: Language, texts: tuple[str, ...]) -> None:
    filler = FILLER[language]
    spec = block_of(said(texts, filler), language=language)
    assert (spec.rate, spec.target_chars) == (0.3, int(spec.original_chars * 0.3))
    assert 0.3 < spec.needed_rate <= 0.5
    assert spec.asked_chars == round(spec.original_chars * spec.needed_rate) > 60 * 3
    assert begin_record("s", spec, model="m", source_key="k", created_at=NOON).needed_rate == spec.needed_rate
    following = IntervalStrategy(Limits()).next_fold(replace(snapshot_of(said(texts, filler)), language=language))
    assert following.summary_chars == spec.target_chars
    # At a larger rate there is more for the rest, and with long answers the facts have room enough.
    asked = [block_of(said(texts, filler), rate=rate, language=language).asked_chars for rate in (0.1, 0.3, 0.5)]
    assert asked[0] < asked[1] <= asked[2]
    roomy = block_of(said(texts, filler * 16), language=language)
    assert roomy.asked_chars == int(roomy.original_chars * 0.18)


@pytest.mark.parametrize(("rate", "share"), [(0.1, 0.1), (0.2, 0.14), (0.3, 0.18), (0.4, 0.22), (0.5, 0.26)])
def test_notes_are_asked_for_less_than_the_target_and_for_more_at_each_rate(rate: float, share: float) -> None:
    spec = block_of(said(("", "") * 3, FILLER["ko"] * 20), rate=rate)
    assert spec.target_chars == int(spec.original_chars * rate)
    assert abs(spec.asked_chars - spec.original_chars * share) <= 1


def test_a_block_full_of_facts_makes_up_for_a_tenth_of_what_is_asked_alone() -> None:
    texts = tuple(
        f"{text} 예비 계약은 BK-77{index}0, 보증금은 {index}20만 원이고요." for index, text in enumerate(DENSE_KO, 1)
    )
    (spec,) = blocks_of(snapshot_of(said(texts), [taken(1, 900, 5_000)]))
    assert spec.needed_rate > spec.rate
    assert spec.full_chars * 0.9 <= spec.asked_chars <= spec.full_chars * 0.9 + 1


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5])
def test_results_of_tools_count_a_tenth_of_what_is_asked_and_nothing_less_of_the_target(rate: float) -> None:
    """Eleven results of 12,401 characters raised what was asked for by 46 %, while the prompt said: not the listing."""
    turns = said(("", "") * 3, FILLER["ko"] * 12)
    plain = block_of(turns, rate=rate)
    turns[1].insert(1, ToolMessage("row 1 of the listing\n" * 250, tool_call_id="c", id="t2"))
    spec = block_of(turns, rate=rate)
    assert spec.target_chars == int(spec.original_chars * rate) > plain.target_chars + 5_000 * rate - 1
    asked = 0.1 + 0.4 * (rate - 0.1)
    assert abs(spec.asked_chars - plain.asked_chars - 525 * asked) <= 1
    assert spec.needed_rate < rate


@pytest.mark.parametrize("pasted", ["```\n{}\n```", "> {}", "| {} |"])
def test_pasted_text_counts_for_little_of_what_is_asked(pasted: str) -> None:
    turns = said(("어떻게 고칠까요?", "", "", "", "", ""), FILLER["ko"] * 10)
    plain = block_of(turns)
    turns[0][0] = HumanMessage("어떻게 고칠까요?\n" + pasted.format("the retry loop never ends " * 100), id="u1")
    spec = block_of(turns)
    assert spec.target_chars == int(spec.original_chars * 0.3) > plain.target_chars + 700
    assert 0.14 * 2_600 * 0.18 < spec.asked_chars - plain.asked_chars < 0.17 * 2_600 * 0.18


def test_no_turn_is_asked_for_in_fewer_than_sixty_characters_however_much_earlier_folds_took() -> None:
    """Dense blocks of 300 characters were asked for 80 to 92, 27 a turn, and each draft was too long again."""
    turns = said(("어떻게 할까요?", "먼저 범위를 나누세요.") * 3, FILLER["ko"] * 2)
    for rate in (0.1, 0.3):
        spec = block_of(turns, rate=rate)
        assert spec.target_chars < spec.asked_chars == 180
        snapshot = replace(snapshot_of(turns, [taken(1, 900, 5_000)]), rate=rate)
        assert blocks_of(snapshot)[0].asked_chars == 180


def test_what_was_asked_for_is_made_up_for_and_not_the_target() -> None:
    results = taken(1, 900, 400).with_changes(original_chars=3_000, needed_rate=0.12)
    assert next_block_after(results).less_chars == 40


def test_pasted_text_code_tables_and_tool_results_ask_for_no_room() -> None:
    rows = [f"{name}-{number} 2026-03-{number} {number}00원" for number in range(11, 30) for name in ("AK", "BL")]
    plain = "그 표를 정리해 주세요. 어떤 순서로 읽으면 좋을까요?"
    for pasted in (
        "\n".join(["```", *rows, "```"]),
        "\n".join(f"| {row} |" for row in rows),
        "\n".join(f"> {row}" for row in rows),
    ):
        turns = said((f"{plain}\n{pasted}", "네.", plain, f"네.\n{pasted}", plain, "네."))
        assert 0 < block_of(turns).needed_rate < 0.3
    turns = said((plain, "네.", plain, "네.", plain, "네."))
    turns[1].insert(1, ToolMessage("\n".join(rows), tool_call_id="c", id="t2"))
    assert block_of(turns).asked_chars == 180


def test_a_target_never_passes_half_of_the_source_nor_what_is_asked_at_most() -> None:
    def listed(first: int, last: int) -> tuple[str, ...]:
        return tuple(", ".join(f"AK-{number * 7 + turn}" for number in range(first, last)) for turn in range(6))

    assert block_of(said(listed(100, 160)), language="en").needed_rate == 0.5
    assert block_of(said(listed(1_000, 1_800)), language="en").asked_chars == 6_000


# When it pays


def waiting(complete: int, words: str = LONG, **changes: object) -> SessionSnapshot:
    snapshot = snapshot_of([plain_turn(number, words) for number in range(1, complete + 1)])
    return replace(snapshot, **({"fold_when": "pays"} | changes))  # type: ignore[arg-type]  # as a test names them


def ranges(specs: Sequence[FoldSpec]) -> list[tuple[int, int]]:
    return [(spec.turns[0], spec.turns[-1]) for spec in specs]


@pytest.mark.parametrize(
    ("complete", "due", "left"),
    [
        (0, [], 6),
        (3, [], 3),
        (5, [], 1),
        (6, [(1, 6)], 0),
        (11, [(1, 6)], 0),
        (12, [(1, 6), (7, 12)], 0),
    ],
)
def test_when_it_pays_a_due_block_waits_for_the_next_and_one_record_covers_both(
    complete: int, due: list[tuple[int, int]], left: int
) -> None:
    strategy, snapshot = IntervalStrategy(Limits()), waiting(complete)
    specs, following = strategy.due_folds(snapshot), strategy.next_fold(snapshot)
    assert ranges(specs) == due
    assert (following.turns, following.turns_left, following.is_due) == ((1, 2, 3, 4, 5, 6), left, bool(due))
    if specs:
        assert specs[0].target_chars == following.summary_chars == int(following.original_chars * 0.3)


def test_behind_a_record_the_next_two_blocks_are_told() -> None:
    strategy = IntervalStrategy(Limits())
    for complete, left in ((7, 5), (9, 3), (11, 1)):
        turns = [plain_turn(number, LONG) for number in range(7, complete + 1)]
        snapshot = replace(snapshot_of(turns, [record_of((1, 2, 3, 4, 5, 6), "요약")]), fold_when="pays")
        following = strategy.next_fold(snapshot)
        assert (following.turns, following.turns_left) == ((7, 8, 9, 10, 11, 12), left)
        assert strategy.due_folds(snapshot) == ()


def test_without_room_a_block_waits_no_longer() -> None:
    strategy, whole = IntervalStrategy(Limits()), waiting(3).context_tokens
    for tokens, due in ((2 * whole + 2_000, []), (whole, [(1, 3)])):
        snapshot = waiting(3, input_tokens=tokens)
        following = strategy.next_fold(snapshot)
        assert ranges(strategy.due_folds(snapshot)) == due
        assert (following.turns[-1], following.is_due) == ((3, True) if due else (6, False))


def test_two_blocks_that_one_summary_has_no_room_for_stay_apart_and_the_second_waits() -> None:
    snapshot = waiting(6, LONG * 8)
    assert ranges(IntervalStrategy(Limits()).due_folds(snapshot)) == [(1, 3)]
    assert IntervalStrategy(Limits()).next_fold(snapshot).turns == (1, 2, 3)


def test_a_block_that_has_a_record_behind_it_does_not_wait() -> None:
    behind = record_of((4, 5, 6), "요약", record_id="behind")
    entries = archived([plain_turn(number, LONG) for number in range(1, 7)])
    snapshot = SessionSnapshot(6, (behind,), entries[:6], 0.3, fold_when="pays")
    assert ranges(blocks_of(snapshot)) == [(1, 3)]
    following = IntervalStrategy(Limits()).next_fold(snapshot)
    assert (following.turns, following.is_due) == ((1, 2, 3), True)
    aside = SessionSnapshot(6, (), entries, 0.3, set_aside=(behind,), fold_when="pays")
    assert [(spec.turns[0], spec.set_aside) for spec in blocks_of(aside)] == [(1, ""), (4, "behind")]


def test_the_default_of_the_server_holds_where_a_session_chose_nothing() -> None:
    strategy = IntervalStrategy(Limits(fold_when="pays"))
    assert strategy.due_folds(waiting(3, fold_when="")) == ()
    assert ranges(strategy.due_folds(waiting(3, fold_when="due"))) == [(1, 3)]


def test_imported_turns_hold_up_both_blocks() -> None:
    for complete, due in ((8, []), (9, [(1, 6)])):
        snapshot = waiting(complete, imported=frozenset({1, 2, 3}))
        assert ranges(blocks_of(snapshot)) == due
        assert IntervalStrategy(Limits()).next_fold(snapshot).turns_left == 9 - complete
