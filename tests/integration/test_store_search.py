from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph.store.database import Lease
from graph.store.search import Hit, SearchStore, rebuild_index, term_index_of
from graph.store.sqlite.sqlite_database import open_sqlite
from graph.store.transfer import export_lines, import_lines
from tests.fake.store import OWNER, SESSION, StoreSet

pytestmark = pytest.mark.both_engines


@pytest.fixture
def lease(stores: StoreSet) -> Lease:
    return stores.make_session()


def talk(stores: StoreSet, lease: Lease, *exchanges: tuple[str, str]) -> None:
    for user, answer in exchanges:
        turn = stores.begin(lease, f"{lease.session_id}-{user}", user)
        stores.say(lease, turn, AIMessage(answer, id=f"{lease.session_id}-{user}-answer"))
        stores.turns.finish(lease, turn.number, "finished")


def turns(stores: StoreSet, query: str, *, before_turn: int = 100, limit: int = 10) -> list[int]:
    return stores.search.turns(SESSION, query, before_turn=before_turn, limit=limit)


def indexed_bytes(stores: StoreSet) -> int:
    with stores.database.read() as connection:
        query = "SELECT sum(length(block)) FROM message_search_data"
        return int(connection.exec_driver_sql(query).scalar_one())


def test_whole_exchanges_are_found_the_best_first_and_of_equal_ones_the_newest(stores: StoreSet, lease: Lease) -> None:
    talk(
        stores,
        lease,
        ("예산은 120만 원입니다.", "알겠습니다."),
        ("날씨가 좋네요.", "그렇네요."),
        ("숙소는 어디죠?", "서면입니다."),
        ("예산 이야기입니다.", "숙소 예산은 30만 원입니다."),
        ("날씨가 좋네요!", "그렇네요."),
    )
    assert turns(stores, "숙소 예산이 얼마야?") == [4, 3, 1]
    assert turns(stores, "날씨") == [5, 2]
    assert turns(stores, "날씨", before_turn=5) == [2]
    assert turns(stores, "예산", limit=1) == [4]
    assert turns(stores, "낙하산") == []
    assert turns(stores, "예산 " + "낙하산" * 20_000) == turns(stores, "예산")
    for long in ("가" * 60_000, "x" * 200_000, "가 " * 60_000, "a-" * 60_000):
        assert turns(stores, long) == []
        assert stores.search.sessions(OWNER, long, limit=9) == {}
    assert stores.search.turns("another", "예산", before_turn=9, limit=9) == []


# What the user said once, and a question about it; the answers are long and have the same words, apart from each other.
TOLD: dict[str, list[tuple[str, str]]] = {
    "korean": [
        ("창고 선반은 모두 18칸이고 칸마다 책 40권을 꽂아요.", "창고 선반은 몇 칸"),
        ("합창단 연습은 목요일 저녁 7시 20분에 강당에서 해요.", "합창단 연습 시간"),
        ("도서관 회비는 한 달에 12,000원이고 자동 이체예요.", "도서관 회비 얼마"),
        ("창고 열쇠는 관리실 서랍 둘째 칸에 둡니다.", "창고 열쇠 어디"),
        ("합창단 발표회에는 초대권을 35장 찍었어요.", "발표회 초대권 몇 장"),
        ("도서관 반납 기한은 빌린 날부터 16일이에요.", "도서관 반납 기한"),
        ("강당 의자는 210개 가운데 9개가 부서졌어요.", "부서진 강당 의자 몇 개"),
        ("관리실 전화는 031-555-0192로 바뀌었어요.", "관리실 전화 번호"),
    ],
    "english": [
        ("The storage room has 18 shelves with 40 books on each of them.", "How many shelves are in the storage room?"),
        ("Choir practice is on Thursdays at 7:20 pm in the hall.", "What time is choir practice?"),
        ("The library charges 12 dollars a month, by direct debit.", "What does the library charge a month?"),
        (
            "The key of the storage room lies in the second drawer of the office.",
            "Where is the key of the storage room?",
        ),
        ("We printed 35 invitations for the choir's concert.", "How many invitations for the concert?"),
        ("Library books are due 16 days after they were borrowed.", "When are library books due?"),
        ("Of the 210 chairs in the hall, 9 are broken.", "How many chairs in the hall are broken?"),
        ("The office has a new phone number, 031-555-0192.", "phone number of the office"),
    ],
}


@pytest.mark.parametrize("language", TOLD)
def test_what_one_sentence_says_comes_before_answers_that_repeat_its_words(
    stores: StoreSet, lease: Lease, language: str
) -> None:
    told = TOLD[language]
    words = " ".join(" ".join(pair) for pair in told).translate(str.maketrans("", "", ".,?")).split()
    filler = {"korean": "그 밖의 이야기를 좀 더 해 보겠습니다", "english": "and then we went on about it for a while"}[
        language
    ]
    repeated = [" ".join(f"{word} {filler}." for word in words[turn::2]) for turn in (0, 1)] * (len(told) // 2)
    talk(stores, lease, *((sentence, filler) for sentence, _ in told))
    talk(stores, lease, *((f"{filler} {turn}", answer) for turn, answer in enumerate(repeated, start=1)))
    assert [turns(stores, query)[0] for _, query in told] == list(range(1, len(told) + 1))


def test_tool_results_and_the_last_attempt_are_found_but_for_what_recall_found(stores: StoreSet, lease: Lease) -> None:
    turn = stores.begin(lease, "q", "찾아 줘")
    results = [ToolMessage("부산은 맑음", tool_call_id="a", name="web_search", id="a")]
    results += [ToolMessage("옛날에는 제주도", tool_call_id="b", name="recall", id="b")]
    stores.say(lease, turn, *results)
    assert turns(stores, "부산의") == [1]
    assert turns(stores, "제주도") == []
    stores.turns.finish(lease, 1, "finished")
    again = stores.turns.begin_attempt(lease, 1, model="m")
    stores.say(lease, again, AIMessage("제주도로 갑니다.", id="second"))
    assert turns(stores, "부산") == []
    assert turns(stores, "제주도") == turns(stores, "찾아") == [1]
    assert stores.search.sessions(OWNER, "부산", limit=5) == {}


def unsaid(stores: StoreSet, query: str, *, from_turn: int = 1, before_turn: int = 100) -> list[str]:
    return stores.search.unsaid(SESSION, query, from_turn=from_turn, before_turn=before_turn)


def test_words_of_a_query_that_stand_nowhere_are_told_as_written(stores: StoreSet, lease: Lease) -> None:
    talk(
        stores,
        lease,
        ("숙소 예산은 120만 원이고 MSSQL을 옮깁니다.", "She booked the Seaview hotel."),
        ("카메라는 민수가 챙기겠습니다.", "가방 이야기입니다."),
    )
    for said in (
        "예산에서 숙소까지",
        "mssql",
        "hotels booking",
        "예산안 챙기기로 카메라가방",
        "뭐였지 얼마 what was the",
    ):
        assert unsaid(stores, said) == [], said
    assert unsaid(stores, "여권 예산 MySQL") == ["여권", "MySQL"]
    assert unsaid(stores, "passport number of the hotel, KX-7781") == ["passport", "number", "KX-7781"]
    assert unsaid(stores, "민수 예산", before_turn=2) == ["민수"]
    assert unsaid(stores, "민수 예산", from_turn=2) == ["예산"]
    assert unsaid(stores, "") == []
    assert len(unsaid(stores, " ".join(f"낱말{number}" for number in range(100)))) <= 12
    stores.say(lease, stores.turns.begin_attempt(lease, 2, model="m"), AIMessage("배낭입니다.", id="second"))
    assert unsaid(stores, "가방 배낭") == ["가방"]


def test_nobody_finds_what_another_owner_said(stores: StoreSet, lease: Lease) -> None:
    talk(stores, lease, ("예산은?", "120만 원"))
    other = stores.make_session("theirs", "bob")
    stores.turns.begin(other, owner="bob", message=HumanMessage("예산은 비밀", id="theirs"), model="m", is_casual=False)
    assert stores.search.sessions(OWNER, "예산", limit=5) == {SESSION: Hit(1, 1)}
    assert stores.search.sessions("bob", "예산", limit=5) == {"theirs": Hit(1, 1)}
    assert turns(stores, "비밀") == []


def test_a_session_is_found_by_its_best_message_that_has_every_word(stores: StoreSet, lease: Lease) -> None:
    talk(stores, lease, ("예산 이야기", "네"), ("서버의 예산은 얼마죠?", "서버 예산 120만 원"), ("서버 이야기", "네"))
    found = stores.search.sessions(OWNER, "서버 예산", limit=5)
    assert found == {SESSION: Hit(2, 4)}
    assert stores.search.sessions(OWNER, "서버 낙하산", limit=5) == {}
    assert stores.search.sessions(OWNER, "", limit=5) == {}


def test_each_turn_with_every_word_is_found_by_all_that_it_says_of_them(stores: StoreSet, lease: Lease) -> None:
    talk(
        stores,
        lease,
        ("예산 이야기", "예산은 이야기한 대로"),
        ("예약하고 약속한 속도", "네"),
        ("이야기", "그 예산 이야기"),
    )
    talk(stores, stores.make_session("second"), ("예산 이야기", "네"))
    talk(stores, stores.make_session("third"), ("예산 이야기", "네"))
    found = stores.search.found([SESSION, "second", "none"], "예산은 이야기가")
    assert found == {
        SESSION: {1: "예산 이야기\n예산은 이야기한 대로", 3: "그 예산 이야기"},
        "second": {1: "예산 이야기"},
    }
    assert stores.search.found([SESSION], "예약속도") == stores.search.found([SESSION], "") == {}
    assert stores.search.found([], "예산") == {}


@pytest.mark.sqlite
def test_a_deleted_session_leaves_nothing_in_the_index(stores: StoreSet, lease: Lease) -> None:
    empty = indexed_bytes(stores)
    talk(stores, stores.make_session("kept"), ("부산 여행", "좋습니다."))
    retained = indexed_bytes(stores)
    talk(stores, lease, *((f"예산 {number}번 질문입니다.", f"{number}번 답은 제주도입니다.") for number in range(40)))
    assert indexed_bytes(stores) > retained + 500
    stores.sessions.delete(SESSION, OWNER)
    stores.search.forget_deleted()
    assert empty < indexed_bytes(stores) <= retained + 20
    assert stores.search.sessions(OWNER, "제주도", limit=5) == {}
    assert stores.search.sessions(OWNER, "부산", limit=5) == {"kept": Hit(1, 1)}
    with stores.database.write() as connection:
        connection.exec_driver_sql("INSERT INTO message_search(message_search) VALUES('integrity-check')")
    talk(stores, stores.make_session("new"), ("예산은?", "네"))
    assert stores.search.sessions(OWNER, "예산", limit=5) == {"new": Hit(1, 1)}


def test_an_imported_session_is_found(stores: StoreSet, lease: Lease, tmp_path: Path) -> None:
    talk(stores, lease, ("예산은?", "제주도에서 120만 원"))
    lines = list(export_lines(stores.database))
    assert not any("search_session" in line for line in lines)
    with closing(open_sqlite(tmp_path / "other.db", busy_timeout_seconds=5)) as other:
        import_lines(other, lines, owner="carol")
        search = SearchStore(other)
        assert search.turns(SESSION, "제주도", before_turn=9, limit=9) == [1]
        assert search.sessions("carol", "예산", limit=9) == {SESSION: Hit(1, 1)}
        import_lines(other, lines, owner="carol")
        assert search.turns(SESSION, "제주도", before_turn=9, limit=9) == [1]


def test_no_query_breaks_the_search(stores: StoreSet, lease: Lease) -> None:
    talk(stores, lease, ("예산은?", "x AND y"))
    for query in ('"', "a AND", "NEAR(", "^", "x" * 10_000, "예산 " * 3_000, "terms: (", "*", "\x00"):
        turns(stores, query)
        stores.search.sessions(OWNER, query, limit=5)


def test_a_rebuilt_index_has_every_message_and_nothing_else(stores: StoreSet, lease: Lease) -> None:
    talk(stores, lease, ("예산은?", "running costs"), ("서버", "네"))
    talk(stores, stores.make_session("other"), *((f"질문 {number}", "a budget") for number in range(40)))
    with stores.database.write() as connection:
        term_index_of(connection).add_terms(connection, SESSION, 9, "제주 주도")
        connection.exec_driver_sql("UPDATE message SET content = '[1]' WHERE session_id = 'other' AND position = 2")
        rebuild_index(connection)
    with stores.database.read() as connection:
        found = term_index_of(connection).find_phrases(connection, SESSION, ["예산", "runs", "서버", "제주도"])
    assert [set(positions) for positions in found.values()] == [{1}, {2}, {3}, set()]
    assert stores.search.turns("other", "budgets", before_turn=99, limit=99) == list(range(40, 1, -1))
    stores.sessions.delete(SESSION, OWNER)
    assert stores.search.sessions(OWNER, "runs", limit=5) == {}


def test_what_a_damaged_message_leaves_behind_is_found_in_no_later_session(stores: StoreSet, lease: Lease) -> None:
    talk(stores, lease, ("예산은?", "제주도"))
    with stores.database.write() as connection:
        connection.exec_driver_sql("UPDATE message SET content = '[1]' WHERE position = 2")
    stores.sessions.delete(SESSION, OWNER)
    talk(stores, stores.make_session("new"), ("예산은?", "부산"))
    assert stores.search.sessions(OWNER, "제주도", limit=5) == {}
    assert stores.search.sessions(OWNER, "부산", limit=5) == {"new": Hit(1, 2)}
