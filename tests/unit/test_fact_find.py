import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import Fact, facts_in, facts_of, is_instruction


def _found(text: str) -> set[tuple[str, str]]:
    return {(fact.kind, fact.text) for fact in facts_in(text)}


@pytest.mark.parametrize(
    ("text", "kind", "fact"),
    [
        ("예약번호는 K7QX2M이에요", "identifier", "K7QX2M"),
        ("티켓 AUTH-4821을 보세요", "identifier", "AUTH-4821"),
        ("Error 55P03 came back", "identifier", "55P03"),
        ("released as v2.3.1.", "identifier", "v2.3.1"),
        ("order_events를 지우지 않아요", "code", "order_events"),
        ("lock_batch()가 멈춰요", "code", "lock_batch()"),
        ("the field maxRetries is set", "code", "maxRetries"),
        ("it raises psycopg.errors.LockNotAvailable here", "code", "psycopg.errors.LockNotAvailable"),
        ("`git push -f`는 위험해요", "code", "git push -f"),
        ("보관은 14일로 해요", "date", "14일"),
        ("용량은 175GB예요", "number", "175GB"),
        ("3박으로 갈게요", "number", "3박"),
        ("timeout is 45 s now", "number", "45 s"),
        ("call 0113 496 0144 today", "number", "0113 496 0144"),
        ("call (0113) 496-0144 today", "number", "(0113) 496-0144"),
        ("전화는 010 1234 5678이에요", "number", "010 1234 5678"),
        ("전화는 02-123-4567이에요", "number", "02-123-4567"),
        ("reach us at +44 113 496 0144.", "number", "+44 113 496 0144"),
        ("+82-10-1234-5678로 주세요", "number", "+82-10-1234-5678"),
        ("we move on 12 September.", "date", "12 September"),
        ("we move on Sept. 12, 2027.", "date", "Sept. 12, 2027"),
        ("약 12%가 늘었어요", "number", "12%"),
        ("1,800명이 왔어요", "number", "1,800명"),
        ("관객은 6천520명이에요", "number", "6천520명"),
        ("it took 3 retries", "number", "3 retries"),
        ("a 48-hour window opens", "number", "48-hour"),
        ("키는 175인데요", "number", "175"),
        ("1월 24일에 출발해요", "date", "1월 24일"),
        ("2027-01-17(일) 02:00에 해요", "date", "2027-01-17"),
        ("2027-01-17(일) 02:00에 해요", "date", "02:00"),
        ("2027. 1. 17. 마감", "date", "2027. 1. 17"),
        ("오후 3시 30분까지요", "date", "오후 3시 30분"),
        ("we meet at 3pm there", "date", "3pm"),
        ("due on March 3, 2027", "date", "March 3, 2027"),
        ("on 3 March we go", "date", "3 March"),
        ("월요일에 봐요", "date", "월요일"),
        ("예산은 180만 원을 넘어요", "money", "180만 원"),
        ("총 ₩1,200이에요", "money", "₩1,200"),
        ("it costs $35 a night", "money", "$35"),
        ("입장료 5,690엔이래요", "money", "5,690엔"),
        ("about 20 euros each", "money", "20 euros"),
        ("김민수 과장님이 승인했어요", "name", "김민수"),
        ("박 팀장에게 물어봐요", "name", "박 팀장"),
        ("제니 씨가 왔어요", "name", "제니"),
        ("제 이름은 박지훈이에요", "name", "박지훈"),
        ("도쿄역에서 만나요", "name", "도쿄역"),
        ("미쓰이가든호텔로 했어요", "name", "미쓰이가든호텔"),
        ("we asked Alice Smith about it", "name", "Alice Smith"),
        ("it runs on Postgres here", "name", "Postgres"),
        ("제목은 '늦가을 산책'으로", "quoted", "늦가을 산책"),
        ("the label “Ready to ship” stays", "quoted", "Ready to ship"),
        ("「설국」을 읽어요", "quoted", "설국"),
        ("mail kim.ms@example.co.kr로 보내요", "email", "kim.ms@example.co.kr"),
        ("https://example.com/a?b=1에서 봐요", "link", "https://example.com/a?b=1"),
        ("설정은 /etc/nginx/app.conf에 있어요", "path", "/etc/nginx/app.conf"),
        ("see src/app/main.py for it", "path", "src/app/main.py"),
        (r"C:\data\a.csv를 열어요", "path", r"C:\data\a.csv"),
        ("정문은 12번지 옆이에요", "number", "12번지"),
        ("공유기는 AX6000+예요", "identifier", "AX6000+"),
        ("CHART-SVR은 2층에 있어요", "identifier", "CHART-SVR"),
        ("it fails with 0x80070005 here", "identifier", "0x80070005"),
        ("in /etc/label-svc/config.yaml. So edit it", "path", "/etc/label-svc/config.yaml"),
        ("설정은 ~/deploy/prod.yaml.", "path", "~/deploy/prod.yaml"),
        ("merge hotfix/idem-key first", "code", "hotfix/idem-key"),
        ("restart label-svc now", "code", "label-svc"),
        ("it answers at db-2.internal:5433 only", "code", "db-2.internal:5433"),
        ("cap max_poll_records at 25", "code", "max_poll_records at 25"),
        ("rrn_mask는 true로 둬요", "code", "rrn_mask는 true"),
        ("it raises psycopg.OperationalError now", "code", "psycopg.OperationalError"),
        ("휴진은 12:00–14:30이에요", "date", "12:00–14:30"),
        ("점심은 두 시 반이에요", "date", "두 시 반"),
        ("표은정 수간호사가 와요", "name", "표은정"),
        ("저는 사무장 오세라예요", "name", "오세라"),
        ("법무법인 도담에서 봐요", "name", "법무법인 도담"),
        ("ask Dr. Halvorsen about it", "name", "Halvorsen"),
        ("제 차는 83다 4127이고", "identifier", "83다 4127"),
        ("상대 차는 12가3456이에요", "identifier", "12가3456"),
        ("접수 번호는 제2026-03318호예요", "identifier", "제2026-03318호"),
        ("과실은 20 대 80으로 해요", "number", "20 대 80"),
        ("집은 만정로 58, 204동 1103호예요", "identifier", "만정로 58, 204동 1103호"),
        ("서초구 반포대로 12-3에서 봐요", "identifier", "서초구 반포대로 12-3"),
        ("204동 1103호로 보내요", "identifier", "204동 1103호"),
        ("담당은 윤재경 경위예요", "name", "윤재경"),
        ("목격자 김도형이 전화했어요", "name", "김도형"),
        ("내일 한시에 만나요", "date", "한시"),
        ("두 사람이 가요", "count", "두 사람"),
        ("stay for three nights there", "count", "three nights"),
    ],
)
def test_each_kind_of_fact_is_found_without_its_particle(text: str, kind: str, fact: str) -> None:
    assert (kind, fact) in _found(text)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("절대 야간버스는 안 돼요.", "negation"),
        ("Please never use print in this code.", "negation"),
        ("새우는 빼 주세요", "negation"),
        ("그 파일은 지우지 마", "negation"),
        ("저는 땅콩 알레르기가 있어요", "negation"),
        ("Don't touch the billing table.", "negation"),
        ("Keep it short, and never add comments.", "negation"),
        ("Make sure every answer has a source.", "rule"),
        ("You must not restart the worker.", "negation"),
        ("임신 중이라 저녁 교육에 못 와요", "negation"),
        ("아침 회의에는 참석 못 해요", "negation"),
        ("건물주가 외벽 타공을 못 하게 해요", "negation"),
        ("She can't attend evening sessions.", "negation"),
        ("No bullet points please.", "negation"),
        ("Keep it simple — don't add retries.", "negation"),
        ("Tomasz has to approve every void batch.", "rule"),
        ("배포할 때마다 팀장님 승인을 받아야 해요", "rule"),
        ("Only Hiro may touch it.", "rule"),
        ("앞으로 표 대신 세 문장으로 답해 주세요", "rule"),
        ("From now on answer in one line.", "rule"),
    ],
)
def test_what_the_user_forbids_or_asks_for_is_found_as_a_whole_sentence(text: str, kind: str) -> None:
    assert (kind, text.rstrip(".")) in _found(text)


@pytest.mark.parametrize(
    "text",
    [
        "안녕하세요, 잘 지내셨어요?",
        "네, 그렇게 해 주세요",
        "날씨가 좋고 솜씨도 좋네요",
        "유명 배우가 나온 주연 배우 이야기",
        "이 지역은 무역이 활발해요",
        "Thanks, that works and I like it",
        "I don't know what to do next",
        "He was always late and I never minded that",
        "I want to make sure it works, no matter what",
        "로그인이 안 돼요",
        "and/or, either/or",
        "1. 먼저 짐을 싸요",
        "</source>",
        "  2) then go",
        "",
        "\n\n  \n",
    ],
)
def test_plain_words_hold_no_fact(text: str) -> None:
    assert facts_in(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "No test today, we ship.",
        "No wait, five of them.",
        "No changes since yesterday.",
        "아, 그런데 1월 24일은 안 되겠어요",
        "오후 3시는 안 돼요",
        "1월 10일 말고 1월 3일로 당겨 주세요",
        "김 과장 말고 박 팀장으로 바꿔 주세요",
        "후보에서 빼 주세요",
        "11시 30분까지 마케팅팀 회의를 잡아 주세요",
        "I don't like the second draft",
        "I have to check every room tonight",
        "Don't get me wrong, I love it",
    ],
)
def test_a_plan_a_change_and_a_taste_forbid_nothing(text: str) -> None:
    assert not [fact for fact in facts_in(text) if is_instruction(fact)]


@pytest.mark.parametrize(
    "text",
    [
        "정해야 하는데 후보를 좀 추려 주세요",
        "한시 장해로 보았고 한시 소장은 아니에요",
        "정확한 경위를 적어요, 완만한 경사, 상대방 자동차가",
        "새로 2, 그대로 3, 83다 같은 것",
        "SELECT name FROM labels LEFT JOIN scans ON TRUE",
        "Level 16, State 1, Line 1",
        "The API returns JSON in UTC, the status is READY",
        "2번으로 하고 세 가지 중에 한 번 더 골라요",
        "the offset is 0x19 or +0x3c",
        "- Laundry: Wash the whites",
        "I am in my mid-40s",
    ],
)
def test_capitals_options_and_fragments_name_nothing(text: str) -> None:
    assert [fact.text for fact in facts_of([HumanMessage(text)]) if not fact.says_little] == []


_POD = "label-svc-5d8f7-abcde   1/1     Running   3          31m"


@pytest.mark.parametrize(
    "pasted",
    [
        "| 이름 | 금액 |\n|---|---|\n| 가온 | 98,000원 |",
        f"NAME                    READY   STATUS    RESTARTS   AGE\n{_POD}",
        "id,name,qty\n1,chair-12,49000\n2,desk-7,18900",
        "품목\t수량\t단가\n의자\t12개\t49,000원",
        "[2026-11-02 09:10:11] ERROR worker-3 job 88121 failed after 3 retries",
        "level=info ts=11:02:03 msg=started port=8080",
        "goroutine 17 [running]:\nmain.(*Writer).flush(0xc000a1e000, 0x3c)\n\t/src/writer.go:212 +0x19",
        "\tat com.acme.pool.Pool.get(Pool.java:77)\nCaused by: java.io.IOException: reset",
        "label-svc-5d8f7-abcde 212Mi 31m 4%",
    ],
)
def test_a_row_of_a_table_and_what_a_program_printed_hold_no_facts(pasted: str) -> None:
    cells = facts_in(pasted)
    assert cells
    assert all(fact.is_cell and not fact.is_countable for fact in cells)
    assert facts_of([HumanMessage(f"{pasted}\nwhat is that?")]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "김치,2명,180만 원,도쿄역",
        "예산은  180만 원이고  3박이에요",
        "Two spaces.  Always 14GB.  Then K7QX2M.",
        "use_ssl=false ttl=30s",
    ],
)
def test_a_sentence_that_resembles_a_row_keeps_its_facts(text: str) -> None:
    facts = facts_of([HumanMessage(text)])
    assert facts
    assert not any(fact.is_cell for fact in facts)


def test_what_the_user_names_of_a_table_counts() -> None:
    facts = facts_of([HumanMessage(f"NAME      READY   AGE\n{_POD}\nWhy does label-svc-5d8f7-abcde restart?")])
    assert [fact.text for fact in facts] == ["label-svc-5d8f7-abcde"]


def test_people_forbid_in_tables_and_programs_do_not() -> None:
    table = "| 항목 | 규칙 |\n|---|---|\n| 로그 | 절대 지우지 마세요 |"
    log = "[2026-11-02 09:10:11] ERROR the column must not be null"
    assert [fact.kind for fact in facts_of([HumanMessage(f"{table}\n{log}")])] == ["negation"]


def test_a_number_beside_its_unit_or_its_setting_is_named_once() -> None:
    said = "280,000원 들었고 한도는 280,000. retry_limit = 400, 다시 400."
    assert {fact.text for fact in facts_of([HumanMessage(said)])} == {"280,000원", "retry_limit", "retry_limit = 400"}


def test_who_said_a_fact_and_whether_it_counts_alone() -> None:
    messages: list[AnyMessage] = [HumanMessage("K7QX2M이고 두 명, 7이에요."), AIMessage("JT-4821과 K7QX2M이군요.")]
    facts = {fact.text: fact for fact in facts_of(messages)}
    assert {text for text, fact in facts.items() if fact.is_of_user} == {"K7QX2M", "두 명", "7"}
    assert {text for text, fact in facts.items() if fact.is_countable} == {"K7QX2M", "JT-4821"}


@pytest.mark.parametrize(
    "text",
    [
        "사과가 몇 개예요?",
        "몇 명이 몇 시에 오나요?",
        "몇 시간 걸려요, 몇 분 정도요?",
        "몇 월 며칠이죠? 몇 번째 주예요?",
        "몇십 명이요? 몇백 원, 몇 천 원, 몇 만 원이요?",
        "십몇 명이 오고 문장을 몇 개 더 붙여요",
        "얼마예요? 얼마나 걸려요?",
        "무슨 요일, 어느 달에 가죠?",
        "How many people come, and how much is it?",
        "what time is it, and how many hours are left?",
    ],
)
def test_how_many_is_asked_and_no_fact(text: str) -> None:
    assert facts_of([HumanMessage(text)]) == ()


@pytest.mark.parametrize(
    "text",
    [
        "식당을 고를 때 제가 절대 넣지 말라고 한 게 뭐였고, 왜였죠?",
        "order_log에 대해 제가 못 하게 한 게 뭐죠, 절대 안 된다고 했던 거요?",
        "Which setting must not be raised, what is its value, and who said so?",
        "What did I say you must never suggest?",
    ],
)
def test_who_asks_what_was_forbidden_forbids_nothing(text: str) -> None:
    assert not [fact for fact in facts_in(text) if is_instruction(fact)]


@pytest.mark.parametrize(
    "text",
    [
        "해산물 뷔페는 절대 안 되는데 어디가 좋을까요?",
        "갑각류 알레르기라고 했는데 어디로 갈까요?",
        "What can we eat there, as I'm allergic to shrimp?",
        "표는 쓰지 말아 주시겠어요?",
    ],
)
def test_a_prohibition_within_a_question_counts(text: str) -> None:
    assert [fact for fact in facts_in(text) if is_instruction(fact)]


def test_of_a_very_long_sentence_the_stretch_around_the_prohibition_is_taken() -> None:
    text = f"{'가방 ' * 100}그리고 야간버스는 절대 안 돼요 {'나무 ' * 100}"
    (instruction,) = (fact for fact in facts_in(text) if fact.kind == "negation")
    assert "야간버스는 절대 안 돼요" in instruction.text
    assert len(instruction.text) <= 120
    assert missing_from([instruction], text) == ()


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        (
            f"{'we looked at the boards and ' * 5}it is late, and don't restart broker kafka-3",
            "don't restart broker kafka-3",
        ),
        (f"{'컴퓨터가 자꾸 멈추고 ' * 12}, 진료 중에는 절대 끄지 마세요", "진료 중에는 절대 끄지 마세요"),
        (f"{'the queue is long, ' * 8}but never delete the topic; {'it waits, ' * 8}", "never delete the topic"),
    ],
)
def test_of_a_long_sentence_the_clause_of_the_prohibition_is_taken_whole(text: str, clause: str) -> None:
    assert [fact.text for fact in facts_in(text) if is_instruction(fact)] == [clause]


def test_a_wish_is_found_in_the_sentence_that_says_it() -> None:
    assert _found("새우는 빼 주세요. 3박이에요! Never use tabs.") == {
        ("negation", "새우는 빼 주세요"),
        ("number", "3박"),
        ("negation", "Never use tabs"),
    }


def test_facts_come_in_the_order_of_their_places_and_once() -> None:
    found = [fact.text for fact in facts_in("AUTH-4821, 1,800,000원\n다시 auth-4821과 1800000 원, 3박")]
    assert found == ["AUTH-4821", "1,800,000원", "3박"]


def test_a_number_inside_an_identifier_or_a_range_is_no_fact_of_its_own() -> None:
    assert _found("AUTH-4821과 10.0.0.5, 21-24일") == {
        ("identifier", "AUTH-4821"),
        ("number", "10.0.0.5"),
        ("date", "21-24일"),
    }


def test_a_term_in_quotes_may_hold_other_facts() -> None:
    assert _found("'갤럭시 노트 3' 출시") == {("quoted", "갤럭시 노트 3"), ("number", "3")}


def test_the_keys_of_json_are_no_quoted_terms() -> None:
    assert _found('{"flight": "HAT136", "cabin": "economy"}') == {
        ("identifier", "HAT136"),
        ("quoted", "economy"),
    }


def test_full_width_forms_are_found_as_they_are_written() -> None:
    fact = facts_in("예약 ＡＵＴＨ－４８２１ 확인")[0]
    assert (fact.kind, fact.text) == ("identifier", "ＡＵＴＨ－４８２１")
    assert fact.key == facts_in("AUTH-4821")[0].key


def test_a_fact_weighs_by_its_kind() -> None:
    def weight(text: str) -> float:
        return facts_in(text)[0].weight

    ordered = ["절대 야간버스는 안 돼요", "K7QX2M", "180만 원", "1월 24일", "14명", "도쿄역", "두 명", "오늘"]
    weights = [weight(text) for text in ordered]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == len(weights)


def test_facts_are_equal_by_what_they_say() -> None:
    assert facts_in("14일") == (Fact("date", "14일", " 14 일 ", 3.5),)
