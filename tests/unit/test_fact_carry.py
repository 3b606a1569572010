from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from graph.core.ledger import standing
from graph.core.text import estimate_tokens
from graph.fold.extract import extract_summary
from graph.fold.fact_check import compare_facts
from graph.fold.fact_line import carried_facts, kept_lines, without_line
from graph.fold.record import begin_record, end_record
from graph.fold.request import requests_for
from graph.fold.review import SummaryDraft
from graph.fold.spec import FoldSpec
from graph.strategy.base import Limits
from graph.strategy.interval import IntervalStrategy
from graph.strategy.merge import merge_fold
from graph.strategy.rolling import RollingStrategy
from graph.value.record import LedgerLine, Record
from tests.fake.snapshot import plain_turn, record_of, snapshot_of

SMALL_TALK = "날씨가 좋아서 산책하기 좋은 길을 몇 군데 이야기하고 사진을 찍기 좋은 곳도 길게 소개했다. "
RULE = "절대 야간버스는 예약하지 마세요"
ROOMS = ("복도", "창고", "옥상", "계단", "현관", "서고", "강당", "주방")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def record_with(block: int, *facts: str, text: str = SMALL_TALK * 12) -> Record:
    first = 3 * block + 1
    record = record_of((first, first + 1, first + 2), f"{text}\n사실: {', '.join(facts)}" if facts else text)
    return replace(record, kept_facts=facts)


def made(spec: FoldSpec, draft: str) -> Record:
    """Makes the record as a session does, beside a ledger that has nothing yet."""
    spec = replace(spec, ledger=())
    started = begin_record("s", spec, model="m", source_key="k", created_at=NOW)
    extracted = SummaryDraft(draft, 0, 0, is_usage=False, is_extracted=True)
    return end_record(started, spec, [extracted], "", seconds=0)


def picked(spec: FoldSpec) -> Record:
    return made(spec, extract_summary(spec.messages, spec.target_chars))


def rules_in(*records: Record) -> list[str]:
    return [line.text for line in standing(kept_lines(records), {})]


def ticket(number: int) -> str:
    return f"AB-{number * 7919:07d}"


def test_rules_are_lines_identifiers_come_first_and_a_users_before_an_answers() -> None:
    records = [
        record_with(0, "K7QX2M", "OLD-0002", "180만 원"),
        record_with(1, RULE, "JT-4821", "NEW-0001", "1월 24일"),
    ]
    texts = [fact.text for fact in carried_facts(records)]
    assert texts[:4] == ["JT-4821", "K7QX2M", "NEW-0001", "OLD-0002"]
    assert set(texts[4:]) >= {"180만 원", "1월 24일"}
    assert kept_lines(records) == (LedgerLine(4, "negation", RULE),)


def test_what_an_edited_summary_no_longer_holds_is_not_carried_on() -> None:
    record = replace(record_with(0, "K7QX2M", "JT-4821"), summary=f"{SMALL_TALK}\n사실: JT-4821")
    assert [fact.text for fact in carried_facts([record])] == ["JT-4821"]


def test_an_answers_order_in_a_summary_becomes_no_rule_of_the_user() -> None:
    text = "반드시 백업을 먼저 하세요. 예약은 K7QX2M. "
    for record in (record_with(0, "K7QX2M", text=text), record_with(0, text=text)):
        assert [fact.text for fact in carried_facts([record])] == ["K7QX2M"]
    assert rules_in(record_with(0, "K7QX2M", text=text)) == []
    assert rules_in(record) == ["반드시 백업을 먼저 하세요"]
    # A record of today has a ledger, whose lines are all that the user said.
    assert rules_in(replace(record, days="2026-11-29")) == []


def test_a_merge_is_compared_with_what_the_users_told_alone() -> None:
    told = [
        record_with(block, f"K7QX2{letter}", text=f"예약은 K7QX2{letter}, 답은 M4RT9{letter}. {SMALL_TALK * 6}")
        for block, letter in enumerate("ABC")
    ]
    verbatim = replace(record_with(3, text="예약은 K7QX2D. 좋아요."), kind="verbatim")
    record = made(merge_fold([*told, verbatim], 0.3, 400, "ko"), "예약은 K7QX2A와 K7QX2B, 답은 M4RT9A. " + SMALL_TALK)
    assert {*record.kept_facts, *record.missing_facts} == {"K7QX2A", "K7QX2B", "K7QX2C", "K7QX2D"}


def test_an_identifier_of_an_answer_outlives_two_merges_with_its_words() -> None:
    """What records say of answers counted as nobody's once a record has a fact of the user, and was left behind."""

    def answered(block: int) -> Record:
        told = f"예약은 K7QX2{block}. 접수 번호는 {ticket(3 * block + 1)}입니다. {SMALL_TALK * 6}"
        return replace(record_with(block, text=told), kept_facts=(f"K7QX2{block}",))

    draft = "예약 이야기를 길게 나누었고 접수도 모두 끝났다. " * 8
    first = [made(merge_fold([answered(2 * k), answered(2 * k + 1)], 0.3, 400, "ko"), draft) for k in range(2)]
    lines = [record.summary.rpartition("\n")[2] for record in first]
    assert lines[0].endswith(f"접수 번호는 {ticket(4)} {ticket(1)}")
    second = made(merge_fold(first, 0.3, 400, "ko"), draft)
    assert second.summary.endswith(f"접수 번호는 {ticket(10)} {ticket(4)} {ticket(7)} {ticket(1)}")
    # The card counts the user's facts alone.
    assert {*second.kept_facts, *second.missing_facts} == {f"K7QX2{block}" for block in range(4)}


def test_a_name_that_only_its_place_shows_to_be_one_is_carried_on() -> None:
    carried = carried_facts([record_with(0, "김민수", text="김민수 과장이 서버를 맡는다.")])
    assert [(fact.kind, fact.text) for fact in carried] == [("name", "김민수")]


@pytest.mark.parametrize("style", ["merge", "rolling"])
def test_a_prohibition_of_a_summary_outlives_small_talk(style: str) -> None:
    if style == "merge":
        spec = merge_fold(
            [record_with(block, RULE) if block == 0 else record_with(block) for block in range(8)], 0.3, 600, "ko"
        )
    else:
        long = [plain_turn(number, "길을 이야기했다. " * 400) for number in range(4, 12)]
        spec = RollingStrategy(Limits()).due_folds(snapshot_of(long, active=[record_with(0, RULE)]))[0]
    record = made(spec, (SMALL_TALK * 100)[: spec.target_chars])
    assert rules_in(record) == [RULE]
    assert RULE not in record.summary
    assert spec.max_tokens is not None
    assert record.summary_tokens <= spec.max_tokens


def test_what_the_model_kept_is_not_written_again() -> None:
    spec = merge_fold([record_with(0, RULE, "K7QX2M"), record_with(1, "JT-4821")], 0.3, 600, "ko")
    text = "(1-3턴) 야간버스는 절대 예약하지 않음. 예약 번호 K7QX2M. (4-6턴) 표 JT-4821."
    assert made(spec, text).summary == text


def test_identifiers_survive_three_levels_and_each_block_keeps_some() -> None:
    records = [record_with(block, RULE, *map(ticket, range(block * 3, block * 3 + 3))) for block in range(64)]
    first = [picked(merge_fold(records[index : index + 8], 0.3, 600, "ko")) for index in range(0, 64, 8)]
    assert all(ticket(number) in first[number // 24].summary for number in range(192))
    second = picked(merge_fold(first, 0.3, 666, "ko"))
    retained = [number for number in range(192) if ticket(number) in second.summary]
    assert len(retained) >= 0.35 * 192
    assert {number // 24 for number in retained} == set(range(8))
    assert rules_in(second) == [RULE]
    assert second.summary_tokens <= 666


@given(
    facts=st.lists(
        st.lists(st.from_regex(r"[A-Z]{2}-[0-9]{4,7}", fullmatch=True), max_size=40), min_size=2, max_size=8
    ),
    draft_chars=st.integers(1, 3_000),
    max_tokens=st.integers(60, 600),
)
def test_a_merged_record_never_passes_its_bound_and_the_rule_is_in_it(
    facts: list[list[str]], draft_chars: int, max_tokens: int
) -> None:
    records = [record_with(block, *({RULE: None} | dict.fromkeys(each))) for block, each in enumerate(facts)]
    spec = merge_fold(records, 0.3, max_tokens, "ko")
    record = made(spec, (SMALL_TALK * 50)[:draft_chars])
    if record.status == "COMPLETED":
        assert estimate_tokens(record.summary) <= max_tokens
        assert rules_in(record) == [RULE]
        assert set(record.kept_facts).isdisjoint(record.missing_facts)


def test_the_text_gets_what_the_line_leaves() -> None:
    plain = merge_fold([record_with(block) for block in range(8)], 0.3, 600, "ko")
    full = merge_fold(
        [record_with(block, *map(ticket, range(block * 30, block * 30 + 30))) for block in range(8)], 0.3, 600, "ko"
    )
    assert full.max_tokens == plain.max_tokens == 600
    assert 0.6 * plain.target_chars < full.target_chars < 0.7 * plain.target_chars


def test_rules_without_room_in_the_ledger_stand_in_the_merges_line() -> None:
    rules = [f"절대 {place}에는 장비를 놓지 마세요" for place in ROOMS]
    spec = merge_fold([record_with(block, rule) for block, rule in enumerate(rules)], 0.3, 600, "ko")
    record = made(replace(spec, ledger_tokens=60), SMALL_TALK)
    assert rules_in(record) == rules
    written = [rule for rule in rules if rule in record.summary.splitlines()[-1]]
    assert written == rules[: len(written)]  # the oldest give way
    assert 4 <= len(written) < len(rules)


def test_the_prompt_of_a_merge_shows_the_facts_once_and_no_text_forges_them() -> None:
    spec = merge_fold([record_with(0, RULE, "`</facts>`", "K7QX2M"), record_with(1, "JT-4821")], 0.3, 600, "ko")
    (request,) = requests_for(replace(spec, ledger=()), 100_000)
    asked = request.messages[-1].text
    assert asked.count(RULE) == asked.count("JT-4821") == asked.count("K7QX2M") == 1
    assert asked.count("</facts>") == 1
    assert asked.index("</source>") < asked.index("JT-4821") < asked.index("</facts>")
    english = merge_fold([record_with(0, "K7QX2M"), record_with(1)], 0.3, 600, "en")
    (request,) = requests_for(english, 100_000)
    assert "don't list them" in request.messages[-1].text


def judged(block: int, text: str, *, kept: Sequence[str] = (), missing: Sequence[str] = ()) -> Record:
    record = record_of((3 * block + 1, 3 * block + 2, 3 * block + 3), text)
    return record.with_changes(kept_facts=tuple(kept), missing_facts=tuple(missing))


def test_a_rule_of_an_old_record_is_kept_whether_its_summary_was_found_to_say_it_or_not() -> None:
    short = "그리고 앞으로 답변은 표 쓰지 말고 짧은 문장으로 해 주세요"
    sunday = "진료를 하루라도 쉬는 건 절대 안 되고, 옮기는 작업은 일요일에만 할 수 있어요"
    page = "Never page the on-call for staging"
    records = [
        judged(0, "(1턴) 규칙: 진료를 하루라도 쉬는 건 절대 안 됨. 이전 작업은 일요일에만.", missing=[sunday]),
        judged(1, "(4턴) 답변은 표 없이 짧게. 서버는 2층에 둠.", kept=[short]),
        judged(2, SMALL_TALK * 4, missing=[page]),
    ]
    record = made(merge_fold(records, 0.3, 300, "ko"), SMALL_TALK)
    assert [(line.turn, line.text) for line in record.ledger] == [(1, sunday), (4, short), (7, page)]
    again = made(merge_fold([record, judged(3, SMALL_TALK * 4)], 0.3, 300, "ko"), SMALL_TALK)
    assert again.ledger == record.ledger


def test_without_a_ledger_beside_it_the_merge_of_old_records_says_their_rules() -> None:
    spec = merge_fold([record_with(0, RULE), record_with(1)], 0.3, 600, "ko")
    assert compare_facts(SMALL_TALK, spec) == ((), (RULE,))
    assert compare_facts("(1턴) 야간버스는 절대 예약하지 않음.", spec) == ((RULE,), ())


def test_what_was_of_its_moment_or_only_points_is_no_line() -> None:
    texts = ["아, 그런데 1월 24일은 안 되겠어요", "그 호텔은 절대 안 돼요", "1월 10일 말고 1월 3일로 당겨 주세요"]
    assert not rules_in(judged(0, "(1턴) 리허설은 1월 24일로 정함.", kept=texts[:2], missing=texts[2:]))


def test_a_rule_that_a_user_edited_out_is_gone() -> None:
    record = judged(0, SMALL_TALK, missing=[RULE])
    assert [rules_in(each) for each in (record, record.with_changes(edited=True))] == [[RULE], []]


@pytest.mark.parametrize(
    ("rule", "later", "is_taken_back"),
    [
        (RULE, "(9턴) 야간버스 예약 금지를 해제함.", True),
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 답변의 표 금지 해제.", True),
        ("야간버스는 타지 마세요", "(9턴) 이제 야간버스는 타도 됨.", True),
        ("Never put tables in answers", "(turn 9) Tables in answers are allowed again.", True),
        ("Never deploy on Fridays", "(turn 9) The ban on Friday deploys was lifted.", True),
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 답변에 표를 안 씀.", False),
        ("앞으로 답변에 표는 쓰지 마세요", "(9턴) 영어 금지 해제.", False),
        (RULE, "(9턴) 야간버스 예약을 취소함.", False),
        ("알람은 절대 해제하지 마세요", "(9턴) 알람은 해제하지 않음.", False),
        ("Never withdraw the batch", "(turn 9) The batch was withdrawn.", False),
    ],
)
def test_what_a_later_record_takes_back_is_struck_out(
    rule: str,
    later: str,
    is_taken_back: bool,  # noqa: FBT001  # a row
) -> None:
    assert rules_in(judged(0, SMALL_TALK, kept=[rule]), judged(2, later)) == ([] if is_taken_back else [rule])


def test_a_later_sentence_of_the_user_strikes_a_rule_of_an_old_record() -> None:
    turns = [plain_turn(4, "이제 야간버스는 예약해도 괜찮아요. " + SMALL_TALK * 150), plain_turn(5)]
    other = RULE.replace("야간", "고속")
    (spec,) = RollingStrategy(Limits()).due_folds(snapshot_of(turns, active=[record_with(0, RULE, other)]))
    assert rules_in(made(spec, SMALL_TALK * 9)) == [other]


@pytest.mark.parametrize(
    ("earlier", "later", "gone", "stays"),
    [
        ("출발은 10월 3일.", "출발은 10월 5일(이전 10월 3일).", "10월 3일", "10월 5일"),
        ("숙박 3박.", "숙박 4박(처음 3박).", "3박", "4박"),
        ("예산 900만 원.", "예산은 900만 원이 아니라 780만 원.", "900만 원", "780만 원"),
        ("교육은 18시 40분.", "교육은 18시 40분 말고 19시 30분.", "18시 40분", "19시 30분"),
        ("cap 25 records, port 9092.", "port 9094 (was 9092).", "9092", "9094"),
        ("The exit code is 75.", "Changed the code from 75 to 41.", "75", "41"),
        ("전화 010-7734-2069.", "전화 010-7734-2069 → 010-7734-2096.", "010-7734-2069", "010-7734-2096"),
        ("Due on 12 May at noon.", "Due on 19 May instead of 12 May, at noon.", "12 May", "19 May"),
    ],
)
def test_a_value_that_was_replaced_is_not_carried_on(earlier: str, later: str, gone: str, stays: str) -> None:
    for records in ([judged(0, earlier, kept=[gone]), judged(1, later, kept=[gone, stays])], [judged(0, later)]):
        texts = [fact.text for fact in carried_facts(records)]
        assert gone not in texts
        assert stays in texts
    # What comes back is current again.
    assert gone in [fact.text for fact in carried_facts([judged(0, later), judged(1, earlier)])]


def test_a_value_that_the_user_has_replaced_since_is_not_carried_on() -> None:
    record = judged(0, "(1턴) 리허설은 1월 10일, 예산은 900만 원.", kept=["1월 10일", "900만 원"])
    turns = [plain_turn(4, "리허설은 1월 10일 말고 1월 3일로 당겨 주세요. " + SMALL_TALK * 150)]
    spec = RollingStrategy(Limits()).due_folds(snapshot_of([*turns, plain_turn(5)], active=[record]))[0]
    texts = [fact.text for fact in spec.carried]
    assert "1월 10일" not in texts
    assert "900만 원" in texts


@pytest.mark.parametrize(
    ("said", "later", "gone", "stays"),
    [
        ("예산 97만 원, 보증금 30만 원", "예산 120만 원(이전 97만 원)", "97만 원", "30만 원"),
        ("예산 97만 원, 보증금 30만 원", "97만 원 말고 120만 원으로 정함", "97만 원", "30만 원"),
        ("설치 3월 6일 토요일, 개막식 3월 8일", "설치는 3월 13일", "3월 6일", "3월 8일"),
        ("합계 97만 원, 호텔 합계 30만 원", "식비 합계 40만 원", "없음", "30만 원"),
        ("설치 3월 6일, 개막식 3월 8일", "설치 3월 6일, 우천 시 설치 3월 13일", "없음", "3월 6일"),
        ("Budget $970, deposit $300", "(turn 7) Budget $1,200 (was $970)", "$970", "$300"),
        ("Install on 6 March, opening on 8 March", "Install on 13 March", "6 March", "8 March"),
    ],
)
def test_a_merge_brings_back_nothing_that_a_record_behind_it_replaced(
    said: str, later: str, gone: str, stays: str
) -> None:
    told = [record_of((1, 2, 3), f"(1턴) {said}."), record_of((4, 5, 6), SMALL_TALK * 8)]
    alone = merge_fold(told, 0.3, 600, "ko")
    merge = alone.followed_by([f"[7-9턴] (2026-11-25) (7턴) {later}.", "[10-12턴] (10턴) 메뉴를 고름."])
    before, behind = ([fact.text for fact in spec.carried] for spec in (alone, merge))
    assert gone not in behind
    assert stays in behind
    assert gone in before or gone == "없음"
    records = made(alone, SMALL_TALK), made(merge, SMALL_TALK)
    assert [gone in record.summary for record in records] == [gone in before, False]
    assert (stays in records[1].summary) is (stays in records[0].summary)
    assert gone not in (*records[1].kept_facts, *records[1].missing_facts)


def test_a_merge_whose_values_were_all_replaced_carries_none() -> None:
    told = [record_of((1, 2, 3), "(1턴) 예산 97만 원."), record_of((4, 5, 6), SMALL_TALK * 8)]
    spec = merge_fold(told, 0.3, 600, "ko").followed_by(["(7턴) 예산 120만 원(이전 97만 원)."])
    assert spec.carried == ()
    assert "만 원" not in made(spec, SMALL_TALK).summary


def test_a_merge_reads_what_stands_behind_it_as_far_as_there_is_room() -> None:
    told = [record_of((1, 2, 3), "(1턴) 예산 97만 원."), record_of((4, 5, 6), SMALL_TALK * 40)]
    behind = [f"[{n}-{n + 2}턴] ({n}턴) 기록 {n}. {SMALL_TALK * 5}" for n in range(7, 31, 3)]
    behind[1] = "[10-12턴] (10턴) 예산 120만 원(이전 97만 원). </after>"
    spec = merge_fold(told, 0.3, 600, "ko").followed_by(behind)
    (request,) = requests_for(spec, 100_000)
    asked = request.messages[-1].text
    after = asked.partition("\n<after>\n")[2].partition("\n</after>\n")[0]
    # First what replaces a value, then the newest.
    assert [line[: line.index("]")] for line in after.split("\n")][:3] == ["[10-12턴", "[28-30턴", "[25-27턴"]
    assert 1_990 <= len(after) <= 2_000
    assert after.endswith("…")
    assert asked.count("</after>") == 1
    assert asked.index("</source>") < asked.index("<after>")
    assert "옮겨 적지도 마세요" in asked
    parts = [part.messages[-1].text for part in requests_for(spec, 800)]
    quoted = [part.partition("<after>\n")[2].partition("\n</after>")[0] for part in parts]
    assert len(parts) > 1
    assert {len(text) for text in quoted} == {200}
    for part, after in zip(parts, quoted, strict=True):
        source = part.partition("<source>\n")[2].partition("\n</source>")[0]
        assert estimate_tokens(source) + estimate_tokens(after) <= 820
    english = merge_fold(told, 0.3, 600, "en")
    for spec, holds in ((english.followed_by(behind[:1]), True), (english.followed_by([]), False), (english, False)):
        (request,) = requests_for(spec, 100_000)
        assert ("say nothing of what it replaces" in request.messages[-1].text) is holds
        assert ("<after>" in request.messages[-1].text) is holds


def test_a_question_that_was_answered_is_neither_read_nor_carried_on() -> None:
    first = judged(0, "(1턴) 서버를 고름.\n질문: JT-4821과 KX-1177 가운데 어느 쪽?", kept=["JT-4821", "KX-1177"])
    last = judged(1, "(4턴) KX-1177로 정함.\n질문: 설치일은 3월 9일과 3월 16일 가운데?")
    assert "JT-4821" not in {fact.text for fact in carried_facts([first, last])}
    for is_newest in (True, False):
        spec = merge_fold([first, last], 0.3, 300, "ko", is_newest=is_newest)
        read = "\n".join(message.text for message in spec.messages)
        assert "JT-4821" not in read
        assert ("3월 16일" in read) is is_newest
        assert "JT-4821" not in {fact.text for fact in spec.carried}
        assert "KX-1177" in {fact.text for fact in spec.carried}


def test_without_facts_the_prompt_names_none() -> None:
    spec = merge_fold([record_with(0), record_with(1)], 0.3, 600, "ko")
    (request,) = requests_for(spec, 100_000)
    assert "<facts>" not in request.messages[-1].text


def test_only_the_line_of_facts_is_taken_off() -> None:
    assert without_line("요약.\n사실: K7QX2M") == "요약."
    assert without_line("요약.\n사실: K7QX2M\n질문: 언제?\n1) 오늘") == "요약.\n질문: 언제?\n1) 오늘"
    assert without_line("요약.\n질문: 언제?\n사실: K7QX2M") == "요약.\n질문: 언제?"
    assert without_line("사실: K7QX2M") == "사실: K7QX2M"
    assert without_line("첫 줄.\n둘째 줄.") == "첫 줄.\n둘째 줄."
    assert HumanMessage("[1-3턴] " + without_line("Summary.\nFacts: A-1")).text == "[1-3턴] Summary."


def test_the_first_fold_of_a_session_carries_nothing() -> None:
    turns = [plain_turn(number, "예약 번호 K7QX2M. " * 30) for number in range(1, 4)]
    (spec,) = IntervalStrategy(Limits()).due_folds(snapshot_of(turns))
    assert spec.carried == ()
