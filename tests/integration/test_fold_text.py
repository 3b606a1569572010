from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from graph.fold.extract import count_terms
from graph.model.summariser import ExtractiveSummariser
from graph.node.fold_worker import SessionTerms
from graph.value.error import InputError
from tests.fake import openai_reply
from tests.fake.body import content_of, roles, system_prompt
from tests.fake.chat import Chat, question
from tests.fake.draft import korean
from tests.fake.open_chat import OpenChat
from tests.fake.openai_server import FakeOpenAI
from tests.fake.scripted_model import ScriptedChat, scripted_models
from tests.fake.store import SESSION, StoreSet
from tests.fake.summary_text import split_facts
from tests.fake.trip import ANSWER as TRIP_ANSWER
from tests.fake.trip import DRAFTS, TRIP, Talk, fold, requests, summary_of, target_of

MAIL = (
    "Dear Mr Kim, thank you for your order of twelve chairs in dark oak, which we confirmed on 3 March. We are sorry "
    "to tell you that the delivery will be two weeks late, because the ship has to wait at the port. Please let us "
    "know until Friday whether you still want them or prefer your money back. Kind regards, Ann Miller, Oakwood Ltd. "
) * 2
IN_KOREAN = "(1턴) 의자 12개 배송이 항구 사정으로 2주 늦음. (2턴) 금요일까지 수령이나 환불을 정함. (3턴) 답장은 없음. "
ANSWER = "알겠습니다. 의자 열두 개의 배송이 이 주 늦는다는 내용이고 금요일까지 답을 달라고 합니다."


def test_pasted_foreign_text_costs_no_retry_and_the_summary_is_adopted(chat: Chat, server: FakeOpenAI) -> None:
    talk = [(words, ANSWER) for words in ("이 메일이 무슨 말인지 알려 줘", MAIL, "답장은 어떻게 쓰지?")]
    size = target_of(talk)
    draft = f"{IN_KOREAN}{korean(size)}"[:size].strip()
    record = fold(chat, server, talk, draft)
    assert record is not None
    assert (record.summary, record.outcome) == (draft, "compressed")
    (request,) = requests(server)
    prompt = "\n".join(content_of(message) for message in request)
    assert re.search("[가-힣]", prompt.partition("\n<source>\n")[0] + prompt.rpartition("</source>")[2])


@pytest.mark.parametrize("flaw", ["long", "short", "thoughts", "copy", "invented"])
def test_a_flawed_draft_is_mended_behind_itself_and_the_second_one_adopted(
    chat: Chat, server: FakeOpenAI, flaw: str
) -> None:
    draft, said = DRAFTS[flaw]
    good = summary_of(target_of(TRIP))
    record = fold(chat, server, TRIP, draft, good, after_turns=3)
    assert record is not None
    assert (record.summary, record.outcome, record.invented_facts) == (good, "compressed", ())
    _, first, second = requests(server)
    assert second[:2] == first
    assert roles({"messages": second}) == ["system", "user", "assistant", "user"]
    assert content_of(second[2]) == ("…" if flaw == "thoughts" else draft.strip())
    assert said in content_of(second[3])
    assert not re.search("[A-Za-z]{3,}", content_of(second[3]).replace("source", ""))


def test_a_draft_half_longer_is_taken_as_it_is_and_the_next_fold_is_asked_for_less(
    chat: Chat, server: FakeOpenAI
) -> None:
    asked_chars = 180  # 60 a turn
    draft = summary_of(int(asked_chars * 1.5))
    first = fold(chat, server, TRIP, draft)
    assert first is not None
    assert (first.summary, first.outcome, first.target_chars) == (draft, "compressed", target_of(TRIP))
    assert round(first.needed_rate * first.original_chars) == asked_chars
    server.script(*(openai_reply.text(TRIP_ANSWER * 4) for _ in range(2)))
    chat.ask(5, 7)
    (second,) = [record for record in chat.service.folds.records(chat.session_id) if record.turns[0] == 4]
    full_chars = round(second.needed_rate * second.original_chars)
    less_chars = min(len(draft) - asked_chars, full_chars // 3)
    assert [len(request) for request in requests(server)] == [2, 2]
    asked_chars = full_chars - less_chars
    assert f"공백 포함 {round(asked_chars * 0.85)}자쯤, 많아도 {round(asked_chars * 1.25)}자." in content_of(
        requests(server)[1][1]
    )


def test_a_block_full_of_facts_is_asked_for_more_than_the_rate(chat: Chat, server: FakeOpenAI) -> None:
    talk = [
        (
            "납품일은 11월 30일, 금액은 900만 원, 계약 번호는 AK-3301, 계좌는 하나은행 110-234-567890이에요.",
            "네, 말씀하신 대로 적어 두고 필요할 때 다시 확인하겠습니다. 선금은 얼마로 할까요?",
        ),
        (
            "선금은 180만 원이요. 담당은 송지혜 과장, 전화 010-7734-2068, 검수는 12월 5일 오전 9시부터예요.",
            "네, 담당과 연락할 곳을 함께 적어 두었습니다. 검수는 누가 하시나요?",
        ),
        (
            "검수는 오세라 대리요. 로그는 /var/log/emr.log, 서버는 192.168.0.15, 용량은 212GB, 환자는 14,328명이에요.",
            "확인했습니다. 담당은 누구인가요?",
        ),
    ]
    record = fold(chat, server, talk)
    assert record is not None
    assert record.compression_rate == 0.3
    assert record.target_chars == int(record.original_chars * 0.3)
    asked_chars = round(record.original_chars * record.needed_rate)
    assert asked_chars >= 180 > record.target_chars
    assert f"공백 포함 {round(asked_chars * 0.85)}자쯤" in content_of(requests(server)[0][1])


WEAK = {
    "summary_answer": (DRAFTS["answer"][0],) * 2,
    "summary_repetition": ("같은 말을 되풀이합니다. 그래서 다시 말씀드립니다. " * 12,) * 2,
    "summary_markup": ('<m turn="2" from="user">I just want to get everything ready before you leave.',) * 2,
    "summary_lacking": (korean(300).strip(), korean(320).strip()),
}


@pytest.mark.parametrize(("code", "drafts"), WEAK.items(), ids=WEAK)
def test_a_draft_of_a_weak_model_gives_way_to_sentences_of_the_source(
    chat: Chat, server: FakeOpenAI, code: str, drafts: tuple[str, str]
) -> None:
    record = fold(chat, server, TRIP, *drafts, after_turns=3)
    assert record is not None
    assert (record.outcome, record.error_code) == ("picked", code)
    assert drafts[-1][:40] not in record.summary
    assert record.input_tokens > 0  # what the drafts cost
    of_block = "SELECT status FROM record WHERE session_id = ? AND turns = ?"
    assert chat.rows(of_block, chat.session_id, "[1,2,3]") == [("COMPLETED",)]


def test_a_draft_that_stays_cut_loses_its_unfinished_sentence(chat: Chat, server: FakeOpenAI) -> None:
    draft = summary_of(target_of(TRIP))
    unfinished = draft[: draft.rindex("올릴지")]
    record = fold(chat, server, TRIP, unfinished, unfinished, finish_reason="length")
    assert record is not None
    assert record.outcome == "shortened"
    words, facts = split_facts(record.summary)
    assert words.endswith("예산은 200만 원.")
    assert facts == []  # the amount is the answer's, not the user's
    assert "길이 한도에서 끊겼습니다" in content_of(requests(server)[1][3])


def test_what_stays_invented_is_marked_until_an_edit_takes_it_out(chat: Chat, server: FakeOpenAI) -> None:
    draft, _ = DRAFTS["invented"]
    record = fold(chat, server, TRIP, draft, draft)
    assert record is not None
    assert (record.summary, record.invented_facts) == (draft, ("290만 원",))
    kept = chat.service.folds.edit(chat.session_id, record.id, "가족 네 명, 예산 290만 원, 7월 8일 출발.")
    assert kept.invented_facts == ("290만 원",)  # what the user adds isn't invented
    own = chat.service.folds.edit(chat.session_id, kept.id, "예산 290만 원, 예비비 77만 원, 9월 19일 출발.")
    assert own.invented_facts == ("290만 원",)
    assert chat.service.folds.edit(chat.session_id, own.id, "예산 200만 원.").invented_facts == ()


def test_an_edit_is_at_most_as_long_as_what_it_stands_for(chat: Chat) -> None:
    chat.ask(1, 4)
    chat.wait_for_folds()
    (record,) = chat.service.folds.records(chat.session_id)
    with pytest.raises(InputError, match=f"{record.original_chars + 1} > {record.original_chars}") as caught:
        chat.service.folds.edit(chat.session_id, record.id, "가" * (record.original_chars + 1))
    assert caught.value.reason == "not_shorter"
    edited = chat.service.folds.edit(chat.session_id, record.id, "가" * record.original_chars)
    assert edited.summary_chars == record.original_chars


def test_a_value_of_an_older_summary_is_not_invented(open_chat: OpenChat, server: FakeOpenAI) -> None:
    chat = open_chat(fold_in_place="never")
    old, new = "담당 연락처는 010-2345-6789예요.", "연락처를 정정해요. 010-9876-5432가 맞습니다."
    drafts = ("(1턴) 연락처는 010-2345-6789.", "(4턴)", "(7턴) 연락처는 010-9876-5432 (이전 010-2345-6789).")
    server.script(*(openai_reply.text(f"{draft} {korean(240)}") for draft in drafts), kind="summary")
    for said in (old, "", "", "", "", "", new, "", "", ""):
        chat.say(f"{said} {korean(300)}".strip())
        chat.wait_for_folds()
    assert [record.invented_facts for record in chat.service.folds.records(chat.session_id)] == [(), (), ()]
    assert len(requests(server)) == 3


def test_a_fold_is_told_what_stood_before_it(chat: Chat, server: FakeOpenAI) -> None:
    first = fold(chat, server, TRIP, summary_of(target_of(TRIP)))
    assert first is not None
    chat.ask(5, 7)
    before, after = (content_of(request[1]) for request in requests(server))
    assert before.startswith("<source>\n")
    told, _, source = after.partition("\n</before>\n<source>\n")
    assert told == f"<before>\n{first.summary}"
    assert source.startswith(f'<m turn="4" from="user">{question(4)}</m>')
    assert '<m turn="6" from="assistant">' in source
    assert '<m turn="7"' not in source


@pytest.mark.parametrize(
    ("chars", "usage", "is_called"),
    [
        (299, openai_reply.DEFAULT_USAGE, False),
        (300, openai_reply.DEFAULT_USAGE, True),
        (599, openai_reply.CACHED_USAGE, False),
        (600, openai_reply.CACHED_USAGE, True),
    ],
)
def test_a_short_source_stands_verbatim_without_a_call_and_a_longer_one_with_a_cache(
    chat: Chat, server: FakeOpenAI, chars: int, usage: Mapping[str, Any], *, is_called: bool
) -> None:
    talk = [("비밀번호는 무엇인가요?", "아직 정하지 않았습니다."), ("그럼 정해 주세요.", "네."), ("길게요?", "")]
    left = chars - sum(len(asked) + len(answer) for asked, answer in talk)
    talk[2] = (talk[2][0], ("암호는 길수록 좋습니다. " * 40)[: left - 1] + "끝")
    record = fold(chat, server, talk, usage=usage)
    assert record is not None
    assert record.original_chars == chars
    assert bool(requests(server)) is is_called
    assert (record.kind == "verbatim") is not is_called
    assert chat.covered == [(1, 2, 3)]
    assert roles(server.bodies("chat")[-1]) == ["system", "user"]
    if not is_called:
        assert (record.outcome, record.input_tokens, record.output_tokens) == ("inflated", 0, 0)
        prompt = system_prompt(server.bodies("chat")[-1]).replace("\n  ", "\n")
        assert all(f"> 사용자: {asked}" in prompt and f"> AI: {answer}" in prompt for asked, answer in talk)


CODE = """\
```python
def lock_batch(ids):
    for attempt in range(3):
        try:
            return select(ids, nowait=True)
        except LockNotAvailable:
            sleep(0.2 * attempt)

    raise TimeoutError("batch is locked")
```"""
ERROR = 'psycopg.errors.LockNotAvailable: could not obtain lock on row in relation "orders"'
SAID = "배치를 다시 돌릴 때 잠긴 행에서 멈추지 않도록 차례로 시도하고, 그래도 안 되면 포기하는 쪽으로 이야기했습니다. "
CODE_TALK: Talk = (
    ("배치가 잠긴 행에서 멈춥니다. 어떻게 할까요?", f"이렇게 고치면 됩니다.\n{CODE}\n{SAID * 12}"),
    ("오류는 그대로 두나요?", f"네, 이 오류만 잡습니다: {ERROR}\n{SAID * 12}"),
    ("그럼 그렇게 합시다.", SAID * 8),
)


def test_short_code_and_an_error_stay_letter_for_letter_where_sentences_around_them_go(
    chat: Chat, server: FakeOpenAI
) -> None:
    draft = (
        f"(1턴) 잠긴 행에서 멈추는 배치를 이렇게 고치기로 함:\n{CODE}\n(2턴) 이 오류만 잡음: {ERROR}\n"
        f"(3턴) 그렇게 하기로 결정함.\n{SAID * 8}"
    ).strip()
    record = fold(chat, server, CODE_TALK, draft, f"{draft} ")
    assert record is not None
    assert record.outcome == "shortened"
    assert record.summary_chars < len(draft)
    prompt = system_prompt(server.bodies("chat")[-1]).replace("\n  ", "\n")
    assert CODE in prompt
    assert ERROR in prompt
    rules, material = (content_of(message) for message in requests(server)[0])
    assert "지금 쓰는 코드는 10줄까지 그대로 둡니다." in rules
    exact = next(line for line in rules.splitlines() if line.startswith("3. "))
    assert all(word in exact for word in ("명령", "오류 문구"))
    assert CODE in material


LACKING = (
    "(1턴) 가족이 후쿠오카에 감. 밤에 타는 버스 이야기를 함. (2턴) 호텔과 아이의 음식 이야기를 길게 나눔. "
    "조건을 하나씩 살펴보고 표로 정리했으며 이동 시간과 비용을 함께 따져 봄. (3턴) 예산을 늘릴지 더 싼 호텔로 바꿀지 "
    "묻고 기다림. 앞으로 더 살펴볼 것을 적어 둠."
)


def test_a_draft_without_a_third_of_the_users_facts_is_told_them_by_name_and_the_one_with_them_taken(
    chat: Chat, server: FakeOpenAI
) -> None:
    longer = summary_of(int(target_of(TRIP) * 1.2))
    record = fold(chat, server, TRIP, LACKING, longer)
    assert record is not None
    assert (record.summary, record.outcome, record.missing_facts) == (longer, "compressed", ())
    first, second = requests(server)
    _, _, listed = content_of(first[1]).partition("\n<facts>\n")
    facts, _, size = listed.partition("\n</facts>\n")
    wanted = ["200만 원", "220만 원", "네 명"]
    assert facts.splitlines() == wanted
    assert size.startswith("한국어로, 공백 포함")
    assert second[:2] == first
    assert content_of(second[2]) == LACKING
    assert "여럿이 빠졌습니다" in content_of(second[3])
    assert content_of(second[3]).endswith("빠진 것: 200만 원, 네 명, 220만 원.")


OFTEN = "The lantern hangs beside the wooden door."
ONCE = "The anchor hangs beside the rusted gate."


def test_terms_are_those_of_all_live_messages_of_the_session_said_so_far(stores: StoreSet) -> None:
    lease = stores.make_session()
    terms = SessionTerms(stores.archive)
    assert terms.counts(SESSION) == count_terms([])
    turn = stores.begin(lease, "q1", OFTEN)
    assert terms.counts(SESSION) == count_terms([OFTEN])
    stores.say(lease, turn, AIMessage(ONCE, id="a1"))
    assert terms.counts(SESSION) == count_terms([OFTEN, ONCE])
    assert terms.counts("another") == count_terms([])
    terms.forget(SESSION)
    assert terms.counts(SESSION) == count_terms([OFTEN, ONCE])


def test_a_fold_prefers_what_is_rare_in_its_session(open_chat: OpenChat) -> None:
    chat = open_chat(models=scripted_models(ScriptedChat(), ExtractiveSummariser()), compression_rate=0.15)
    block = [
        f"{ONCE} {OFTEN}",
        "Good, thank you for that, it is nice to hear. " + "We are all glad of it, as we were before. " * 2,
        "And so we go on as before, all of us. " + "It is fine as it is, and we like it so. " * 2,
    ]
    for text in [OFTEN] * 3 + block:
        chat.say(text)
        chat.wait_for_folds()
    chat.say("Go on, please.")
    _, second = chat.service.folds.records(chat.session_id)
    alone = ExtractiveSummariser().summarise([HumanMessage(text) for text in block], second.target_chars).text
    assert (OFTEN in alone, ONCE in alone) == (True, False)
    assert (OFTEN in second.summary, ONCE in second.summary) == (False, True)
