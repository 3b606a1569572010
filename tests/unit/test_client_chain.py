from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from graph.recognise.client_chain import HASH_BYTES, ArchivedTurn, ChainKey, Link, RequestChain, canonical, undated
from graph.recognise.match import Exchange, align
from graph.value.client import ClientMessage, ClientOptions, ClientRequest, ClientRole, Hint
from graph.value.event import ClientCall
from graph.value.view import TurnStatus

KEY = ChainKey(bytes(range(32)))
PIECES = st.sampled_from(
    ["", "Hi", "안녕", "é", "e\u0301", "\u202eabc", "👩‍👩‍👧", "\x00", "\ud800", "<think>", "</think>", "\r\n", " "]
)
TEXT = st.lists(st.one_of(PIECES, st.text(st.characters(), max_size=20)), max_size=4).map("".join)
ROLE: st.SearchStrategy[ClientRole] = st.sampled_from(["user", "assistant"])
MESSAGES = st.lists(st.builds(ClientMessage, role=ROLE, text=TEXT), min_size=1, max_size=6)


def read(messages: list[ClientMessage], owner: str = "ann", **fields: object) -> RequestChain:
    return KEY.read(ClientRequest(tuple(messages), ClientOptions("editor"), **fields), owner=owner)  # type: ignore[arg-type]  # fields of the request


def words(messages: list[ClientMessage]) -> list[tuple[str, str]]:
    """What counts of these messages."""
    said = [(message.role, canonical(message.role, message.text)) for message in messages]
    return [part for part in said if part[0] == "user" or part[1]]


def hashes(chain: RequestChain, answer: str) -> set[bytes]:
    ended = chain.fingerprint.ended(answer)
    found = (chain.fingerprint.asked, chain.fingerprint.idempotency, ended.chain, ended.answer)
    return {part for part in found if part is not None} | {link.chain for link in chain.links}


@example([ClientMessage("user", "Hi")], [ClientMessage("assistant", "Hi")])
@given(MESSAGES, MESSAGES)
def test_two_histories_have_one_hash_only_if_they_say_the_same(
    one: list[ClientMessage], other: list[ClientMessage]
) -> None:
    assert (read(one).fingerprint.asked == read(other).fingerprint.asked) == (words(one) == words(other))


@example([ClientMessage("user", "Hi")], "ann", "bob", "annb", "ob")
@example([ClientMessage("user", "Hi")], "ann", "bob", "eve", "bob")
@given(MESSAGES, TEXT, TEXT, TEXT, TEXT)
def test_two_scopes_share_no_hash(
    messages: list[ClientMessage], owner: str, user: str, owner_2: str, user_2: str
) -> None:
    one = read(messages, owner, user=user, idempotency_key="k")
    other = read(messages, owner_2, user=user_2, idempotency_key="k")
    if (owner, user) != (owner_2, user_2):
        assert not hashes(one, "an answer") & hashes(other, "an answer")
    else:
        assert hashes(one, "an answer") == hashes(other, "an answer")


@given(MESSAGES)
def test_another_servers_key_shares_no_hash(messages: list[ClientMessage]) -> None:
    request = ClientRequest(tuple(messages), ClientOptions("editor"), idempotency_key="k")
    other = ChainKey(bytes(32)).read(request, owner="ann")
    assert not hashes(KEY.read(request, owner="ann"), "yes") & hashes(other, "yes")


@given(MESSAGES, TEXT)
def test_chain_behind_an_answer_is_found_in_the_next_request(messages: list[ClientMessage], answer: str) -> None:
    ended = read(messages).fingerprint.ended(answer)
    later = read([*messages, ClientMessage("assistant", answer), ClientMessage("user", "and?")])
    if ended.chain is None:
        assert not canonical("assistant", answer)
    else:
        assert later.links[-2].chain == ended.chain
        assert all(len(part) == HASH_BYTES for part in hashes(later, answer))


@example("user", "a\r\r\nb")
@given(ROLE, TEXT)
def test_spelling_of_the_same_words_makes_no_difference(role: ClientRole, text: str) -> None:
    plain = canonical(role, text)
    for variant in (text + " \n", text.replace("\r\n", "\n"), unicodedata.normalize("NFD", plain)):
        assert canonical(role, variant) == plain
    plain.encode()


LONGEST = 2_000
HOSTILE: dict[str, tuple[list[tuple[str, str]], str, TurnStatus]] = {
    "equal answers to other questions": ([(f"q{number}", "Ok.") for number in range(LONGEST)], "Ok.", "finished"),
    "stopped turns": ([(f"q{number}", f"a{number}") for number in range(LONGEST)], "a", "stopped"),
    "a long answer": ([("", "x y" * 2_500_000)], "an answer of more than twenty characters", "finished"),
    "a long question": ([("x" * 8_000_000, "Ok.")], "Ok.", "finished"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_histories_are_aligned_with_many_turns_in_little_time(case: str) -> None:
    texts, answer, status = HOSTILE[case]
    exchanges = [
        Exchange([Link(0, "user", asked, b"", b""), Link(1, "assistant", answered, b"", b"")], ())
        for asked, answered in texts
    ]
    turns = [ArchivedTurn(number, f"z{number}", frozenset([answer]), status) for number in range(1, LONGEST)]
    began = time.process_time()
    assert align(exchanges, turns).pairs == ()
    assert time.process_time() - began < 3


def test_what_front_ends_show_of_thoughts_and_tools_is_no_answer() -> None:
    for shown in (
        "<think>first this\nthen that</think>\nYes.",
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\n> so\n</details>\nYes.',
        "<details open type='tool_calls'>{}</details>Yes.",
        "Yes. ",
    ):
        assert canonical("assistant", shown) == "Yes."


def test_hostile_tags_are_read_once() -> None:
    for text in (
        "</think></details>" + "<think>" * 300_000,
        "</details>" + "<details " * 300_000,
        "</details>" + "<details type=" * 200_000,
        "<details" + " type=" * 300_000,
        "<details><summary>s</summary>t" * 50_000,
    ):
        assert canonical("assistant", text) == text.strip()


def test_a_thought_that_never_ends_hides_no_other_block_and_details_of_an_answer_stay() -> None:
    assert canonical("assistant", "<think>a<details type='x'>b</details>c") == "<think>ac"
    assert canonical("assistant", "<think>a</think>b<think>c") == "b<think>c"
    assert canonical("assistant", "<THINK>a<think>b</Think>c</think>d") == "c</think>d"
    # What a user or an answer speaks of stays.
    assert canonical("user", "<think>a</think>b") == "<think>a</think>b"
    assert canonical("assistant", "<details><summary>s</summary>t</details>") != ""


CALLS = (ClientCall("c1", "clock", "{}"),)


def test_tools_and_messages_that_only_call_them_stay_out_of_the_chain() -> None:
    asked = [ClientMessage("user", "What time is it?")]
    answered, again = ClientMessage("assistant", "Noon."), ClientMessage("user", "Thanks")
    for said, calls in (("", ()), ("", CALLS), ("Let me look that up.", CALLS)):
        called = [*asked, ClientMessage("assistant", said, calls=calls), ClientMessage("tool", "noon", call_id="c1")]
        later = read([*asked, answered, again])
        assert read([*called, answered, again]).fingerprint.asked == later.fingerprint.asked
        assert read(called).fingerprint.ended(answered.text).chain == later.links[-2].chain


def test_order_of_tool_answers_makes_no_difference_but_which_calls_they_answer_does() -> None:
    asked = ClientMessage("user", "Go")
    results = [ClientMessage("tool", "one", call_id="a"), ClientMessage("tool", "two", call_id="b")]
    both = read([asked, *results])
    assert both.answered == ("a", "b")
    assert both.fingerprint.asked == read([asked, *reversed(results)]).fingerprint.asked
    assert (
        len({read(messages).fingerprint.asked for messages in ([asked], [asked, results[0]], [asked, *results])}) == 3
    )


def test_missing_image_makes_no_difference() -> None:
    with_image = [ClientMessage("user", "", ("data:image/png;base64,AA",)), ClientMessage("assistant", "A cat.")]
    without = [ClientMessage("user", ""), with_image[1]]
    assert read(with_image).fingerprint.asked == read(without).fingerprint.asked


def test_no_group_without_an_id_of_the_chat() -> None:
    messages = [ClientMessage("user", "Hi")]
    for value in ("", "local:socket"):
        assert read(messages, hint=Hint("x-openwebui-chat-id", value)).group == ""
    named = {read(messages, hint=Hint(name, "1")).group for name in ("x-session-id", "prompt_cache_key")}
    assert len(named) == 2


def test_key_and_words_are_not_shown() -> None:
    fingerprint = read([ClientMessage("user", "the secret plan")]).fingerprint
    assert "secret plan" not in repr(fingerprint)
    assert repr(KEY.secret) not in repr(fingerprint)


DATED = (
    "You serve the shop. Today is 27 November 2026.",
    "당신은 상점 안내원입니다. 오늘은 2026년 11월 27일 금요일 오전 9시입니다.",
)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (DATED[0], "You serve the shop. Today is Tue, 1st Dec 2026, 09:30 am KST.", True),
        (DATED[0], "You serve the shop. Today is November 28, 2026.", True),
        (DATED[0], "You serve the shop.  Today is 2026-11-28T09:30:00Z.", True),
        (DATED[0], "You serve the shop. Tomorrow is 27 November 2026.", False),
        (DATED[1], "당신은 상점 안내원입니다. 오늘은 2026년 12월 1일 화요일 오후 11시입니다.", True),
        (DATED[1], "당신은 상점 안내원입니다. 어제는 2026년 11월 27일 금요일 오전 9시입니다.", False),
        ("The customer is Ann. 3 open orders.", "The customer is Bob. 3 open orders.", False),
        ("The customer is Ann. 3 open orders.", "The customer is Ann. 12 open orders.", True),
    ],
)
def test_dates_times_and_numbers_make_no_other_system_message(one: str, other: str, *, is_same: bool) -> None:
    assert (undated(one) == undated(other)) is is_same


def test_pictures_and_results_tell_apart_what_is_said_with_the_same_words() -> None:
    call = ClientMessage("assistant", "", calls=(ClientCall("call-1", "look", "{}"),))
    chats = [
        [ClientMessage("user", "Look.", (picture,)), call, ClientMessage("tool", result, call_id="call-1")]
        for picture in ("data:image/png;base64,AAAA", "data:image/png;base64,BBBB")
        for result in ("blue", "green")
    ]
    read_whole = [read([*chat, ClientMessage("assistant", "I see."), ClientMessage("user", "?")]) for chat in chats]
    assert len({chain.links[-1].chain for chain in read_whole}) == 1
    assert len({chain.links[-1].exact for chain in read_whole}) == len(chats)
    # What a response keeps of its request is what the next request has before the answer.
    for chat, chain in zip(chats, read_whole, strict=True):
        assert chain.links[-2].exact == read(chat).fingerprint.whole
