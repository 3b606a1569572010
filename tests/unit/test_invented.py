from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from bench.quality.invented import LEAST_CAUGHT, LISTS, MOST_DOUBTED, rates_of, read_cases
from graph.fold.fact_check import check_facts
from graph.fold.invented import invented_in
from graph.fold.request import messages_behind, requests_for
from graph.fold.review import Flaw, SummaryDraft, flaw_of, review_drafts
from graph.fold.spec import FoldSpec
from tests.fake.draft import draft_of, spec_of

SAID = (
    "환자가 21,906명이고 예산은 900만 원, 마감은 11월 30일이에요. 서버는 SV-4410과 SV-4411, 전화는 010-7734-2069예요."
)
ANSWER = "11월 30일까지면 넉넉합니다. 어떤 순서로 옮길지 차근차근 정하면 됩니다. " * 8
RIGHT = (
    "(1턴) 환자 21,906명, 예산 900만 원, 마감 11월 30일, 서버 SV-4410, SV-4411, 전화 010-7734-2069. 넉넉하다고 답함."
)
WRONG = RIGHT.replace("900만", "990만")


def spec_with(said: str = SAID, answer: str = ANSWER, **changes: object) -> FoldSpec:
    return spec_of([HumanMessage(said), AIMessage(answer)], 110, **changes)


@pytest.mark.parametrize("file", LISTS.values())
def test_nine_of_ten_wrong_values_are_caught_and_two_of_a_hundred_honest_ones_doubted_at_most(file: str) -> None:
    rates = rates_of(read_cases(file))
    assert rates.caught_share >= LEAST_CAUGHT
    assert rates.doubted_share <= MOST_DOUBTED


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        ("회의는 오전 9시에 열어요", "회의 09:00"),
        ("회의는 오후 세 시 반이에요", "회의 15:30"),
        ("half past seven in the evening", "at 19:30"),
        ("자정까지 열어요", "24:00까지"),
        ("9~18시에는 멈추지 마", "09:00–18:00"),
        ("open 5-7pm", "17:00–19:00"),
        ("12:00부터 2시간 30분", "12:00–14:30"),
        ("the outage lasted from 08:58 to 10:02", "64 minutes (08:58–10:02)"),
        ("서버 192.168.0.15, 포트 1433", "192.168.0.15:1433"),
        ("db1.local:8443", "호스트 db1.local, 포트 8443"),
        ("1,800,000원", "180만 원"),
        ("3억 5천만 원", "350,000,000원"),
        ("13만 5천 원", "13.5만 원"),
        ("$1.2M for 7.3 million users", "$1,200,000, 7.3M"),
        ("백만 원, 이천오백 원", "100만 원, 2,500원"),
        ("다섯 명, 마흔여섯 석", "5명, 46석"),
        ("thirty-four desks, a hundred and fifty seats", "34 desks, 150 seats"),
        ("2027년 1월 24일", "1월 24일(일)"),
        ("1월 24일", "2027년 1월 24일"),
        ("3월 14일부터 17일까지", "3월 14–17일, 3/14, 3월 17일"),
        ("2026-11-27T09:30", "27 Nov, 9:30 am"),
        ("5.3(월)", "5월 3일"),
        ("May 14, June 3 and 4", "14 May, the 4th of June"),
        ("90분, 48시간", "1시간 30분, 이틀(2일 이내)"),
        ("60%", "0.6"),
        ("20-30만 원", "20만~30만 원"),
        ("20만~30만 원", "20–30만 원"),
        ("2주 뒤", "14일 후"),
        ("3,200원에서 3,500원으로", "300원 올려 3,500원"),
        ("10개 중 3개가 통과했어요", "3/10 통과"),
        ("12,345명", "약 1만 2천 명"),
        ("8월 15일에 가서 9월 3일에 와요", "8.15 출발, 9.3 귀국"),
        ("9월 25일까지", "만료 9.25"),
        ("The dump has 1841 MB", "1.8 GB"),
        ("2,400g, 3.5 km", "2.4kg, 3,500m"),
        ("from Monday, November 16, until the 24th", "16 to 24 November"),
        ("November 16, for nine days", "16–24 November"),
        ("과실은 20 대 40", "20:40"),
        ("과실은 20:80", "20 대 80"),
        ("/etc/label-svc/config.yaml", "label-svc/config.yaml"),
        ("version 2.3.1", "v2.3.1"),
        ("예약 ＡＢ４８２１", "예약 AB4821"),
        ("010 7734 2069", "010-7734-2069"),
        ("세 회사를 보았어요", "(1-3턴) 3. 두 안 중 1) 가, 2) 나. 질문 2개, 3 options"),
        ("학생회 260만 원과 학부모회 150만 원", "260만 원 + 150만 원 = 410만 원"),
    ],
)
def test_the_same_value_in_another_form_is_not_invented(said: str, summary: str) -> None:
    assert invented_in(summary, [said]) == ()


@pytest.mark.parametrize(
    ("said", "summary", "value"),
    [
        ("900만 원", "예산 990만 원", "990만 원"),
        ("$1,280", "refund $1,820", "$1,820"),
        ("21,906명", "환자 29,106명", "29,106명"),
        ("직원 7명, 오전 9시", "직원 9명", "9명"),
        ("11월 30일", "12월 30일", "12월 30일"),
        ("1월 24일 회의, 2월 3일 마감", "1월 3일 회의", "1월 3일"),
        ("2026년 1월 5일", "2027년 1월 5일", "2027년 1월 5일"),
        ("15 May", "May 25", "May 25"),
        ("15 May", "15 to 25 May", "15 to 25 May"),
        ("8월 15일", "8.16 출발", "8.16 출발"),
        ("1841 MB", "1.9 GB", "1.9 GB"),
        ("오전 9시", "오후 9시", "오후 9시"),
        ("18:40", "18:50", "18:50"),
        ("3 hours", "4 hours", "4 hours"),
        ("5%", "6%", "6%"),
        ("2kg", "3kg", "3kg"),
        ("010-7734-2069", "010-7743-2069", "010-7743-2069"),
        ("4471 0093 2218", "4471 0093 2281", "4471 0093 2281"),
        ("K7QX2M", "K7XQ2M", "K7XQ2M"),
        ("10.0.4.22", "10.0.4.42", "10.0.4.42"),
        ("firmware 4.1.9", "firmware 4.9.1", "4.9.1"),
        ("/etc/a.conf", "/etc/b.conf", "/etc/b.conf"),
        ("ines@leidenlab.nl", "inez@leidenlab.nl", "inez@leidenlab.nl"),
        ("https://a.co/7731", "https://a.co/7713", "https://a.co/7713"),
    ],
)
def test_a_value_that_nobody_said_is_named(said: str, summary: str, value: str) -> None:
    assert invented_in(summary, [said]) == (value,)


def test_what_stands_before_tools_and_the_users_instruction_are_known() -> None:
    called = AIMessage("", tool_calls=[{"name": "shop__read_query", "args": {"id": "AB-4821"}, "id": "c"}])
    messages: list[AnyMessage] = [HumanMessage("찾아 줘"), called, ToolMessage("재고 382개", tool_call_id="c")]
    text = "shop__read_query: AB-4821은 382개. 이전 기록의 예산 650만 원, 어제 19:45에 정함. 77자로."
    spec = spec_of(messages, 300, before="예산 650만 원", context="19:45에 정해요", instruction="77자로")
    assert flaw_of(draft_of(text * 4), spec) is None
    assert invented_in(text, ["찾아 줘"]) == ("shop__read_query", "AB-4821", "382개", "650만 원", "19:45", "77자")


def test_a_draft_with_invented_values_is_sent_back_by_their_names() -> None:
    assert flaw_of(draft_of(RIGHT), spec_with()) is None
    flaw = flaw_of(draft_of(WRONG), spec_with())
    assert flaw == Flaw("invented", invented=("990만 원",))
    (request,) = requests_for(spec_with(), 50_000)
    told = messages_behind(request, 0, draft_of(WRONG), flaw)[-1].text
    assert "대화에 없는 것: 990만 원." in told


def test_a_draft_that_lacks_facts_is_told_what_it_invented_too_in_its_language() -> None:
    said = (
        "The budget is $900 for 240 guests, the hall is HL-2207, the caterer KT-3310. Never serve peanuts at the party."
    )
    spec = spec_with(said, "Fine, that is enough for all of it. " * 20, language="en")
    draft = draft_of(
        "(turn 1) Budget $990, 240 guests, HL-2207, KT-3310. Peanuts may be served at the party. That is enough."
    )
    flaw = flaw_of(draft, spec)
    assert flaw is not None
    assert (flaw.kind, flaw.invented) == ("lacking", ("$990", "Peanuts may be served at the party"))
    (request,) = requests_for(spec, 50_000)
    told = messages_behind(request, 0, draft, flaw)[-1].text
    assert "Not in the conversation: $990, Peanuts may be served at the party." in told


def test_each_part_is_told_only_what_it_invented_itself() -> None:
    draft = SummaryDraft("가 15명.\n나 16명.", 0, 0, is_usage=False, parts=("가 15명.", "나 16명."))
    (request,) = requests_for(spec_with(), 50_000)
    told = [
        messages_behind(request, index, draft, Flaw("invented", invented=("15명", "16명")))[-1].text for index in (0, 1)
    ]
    assert [text.partition("대화에 없는 것: ")[2] for text in told] == ["15명.", "16명."]


def test_a_long_draft_is_told_what_it_invented_too() -> None:
    flaw = flaw_of(
        draft_of(WRONG + "".join(f" 순서를 {each}, 자리를 {each} 정함." for each in "가나다라마바사아자차카타파하")),
        spec_with(),
    )
    assert flaw == Flaw("long", invented=("990만 원",))


def test_of_two_drafts_the_honest_one_is_taken() -> None:
    assert review_drafts([draft_of(WRONG), draft_of(RIGHT)], spec_with()).text == RIGHT
    assert review_drafts([draft_of(RIGHT), draft_of(WRONG)], spec_with()).text == RIGHT


def test_what_stays_invented_is_marked() -> None:
    review = check_facts(review_drafts([draft_of(WRONG), draft_of(WRONG)], spec_with()), spec_with())
    assert review.outcome == "compressed"
    assert review.invented == ("990만 원",)
    assert check_facts(review_drafts([draft_of(RIGHT)], spec_with()), spec_with()).invented == ()


def test_picked_sentences_invent_nothing() -> None:
    review = review_drafts([draft_of(WRONG, is_extracted=True)], spec_with())
    assert (review.text, review.invented) == (WRONG, ())
