from __future__ import annotations

from tests.fake.body import content_of
from tests.fake.chat import Chat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.summary_text import split_facts
from tests.fake.trip import RULE, TRIP, fold, requests, summary_of, target_of

LACKING = (
    "(1턴) 가족 네 명이 후쿠오카에 감. 밤에 타는 버스 이야기를 함. (2턴) 호텔과 아이의 음식 이야기를 길게 나눔. "
    "조건을 하나씩 살펴보고 표로 정리했으며 이동 시간과 비용을 함께 따져 봄. (3턴) 예산을 늘릴지 더 싼 호텔로 바꿀지 "
    "묻고 기다림. 앞으로 더 살펴볼 것을 적어 둠."
)


def test_a_draft_without_a_third_of_the_users_facts_is_told_them_by_name(chat: Chat, server: FakeOpenAI) -> None:
    good = summary_of(target_of(TRIP))
    record = fold(chat, server, TRIP, LACKING, good)
    assert record is not None
    assert (record.summary, record.outcome) == (good, "compressed")
    first, second = requests(server)
    assert second[:2] == first
    assert content_of(second[2]) == LACKING
    told = content_of(second[3])
    assert "여럿이 빠졌습니다" in told
    assert told.endswith("빠진 것: 야간버스는 절대 안 타요, 둘째가 새우 알레르기예요, 200만 원, 220만 원.")
    assert record.missing_facts == ()


def test_what_no_draft_has_stands_in_the_line_and_what_has_no_room_is_listed(chat: Chat, server: FakeOpenAI) -> None:
    record = fold(chat, server, TRIP, LACKING, f"{LACKING} ")
    assert record is not None
    words, facts = split_facts(record.summary)
    assert words == LACKING
    assert facts[:2] == ["야간버스는 절대 안 타요", "둘째가 새우 알레르기예요"]
    assert set(facts) <= set(record.kept_facts)
    assert len(record.summary) <= record.target_chars
    assert len(record.summary) - len(words) - 1 <= record.target_chars * 0.3
    assert len(requests(server)) == 2


def test_of_two_drafts_the_one_with_the_users_facts_is_adopted_though_it_is_longer(
    chat: Chat, server: FakeOpenAI
) -> None:
    longer = summary_of(int(target_of(TRIP) * 1.2))
    record = fold(chat, server, TRIP, LACKING, longer)
    assert record is not None
    assert (record.summary, record.outcome) == (longer, "compressed")


def test_a_short_draft_is_told_what_is_missing_by_name(chat: Chat, server: FakeOpenAI) -> None:
    record = fold(chat, server, TRIP, f"(1턴) {RULE}", summary_of(target_of(TRIP)), after_turns=3)
    assert record is not None
    told = content_of(requests(server)[-1][3])
    assert told.endswith("빠진 것: 둘째가 새우 알레르기예요, 200만 원, 네 명, 220만 원.")


def test_the_request_names_the_facts_that_are_to_be_kept(chat: Chat, server: FakeOpenAI) -> None:
    fold(chat, server, TRIP, summary_of(target_of(TRIP)))
    ((_, request),) = requests(server)
    _, _, listed = content_of(request).partition("\n<facts>\n")
    facts, _, size = listed.partition("\n</facts>\n")
    assert facts.splitlines() == [
        "야간버스는 절대 안 타요",
        "둘째가 새우 알레르기예요",
        "200만 원",
        "220만 원",
        "네 명",
    ]
    assert size.startswith("한국어로, 공백 포함")
