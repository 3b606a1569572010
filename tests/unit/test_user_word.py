from __future__ import annotations

import pytest

from graph.fold.fact_find import facts_in, is_instruction
from graph.fold.user_word import people_in, user_words


def kinds(text: str) -> list[str]:
    return [fact.kind for fact in facts_in(text) if is_instruction(fact)]


@pytest.mark.parametrize(
    "text",
    [
        "no new dependencies, no emojis",
        "Style: plain CSS, no new dependencies, no emojis",
        "no f-strings in SQL, ever, only bound parameters",
        "No tenacity, that is a new dependency",
        "nothing that writes",
        "Read queries are fine, but nothing that writes",
        "The 19 are Marten's physical counts, leave them alone, always",
        "leave the two tests",
        "Keep the old column as it is",
        "테스트 두 개는 그대로 두세요",
        "also no bridge",
        "Two lanes, a roundabout and also no bridge",
        "Nothing over 50 euros, please",
        "Hands off the billing table",
        "Stay away from the north trail",
        "영어 번역은 안 넣어요",
        "서명은 안 할 거예요",
        "합의는 하지 않을게요",
        "너무 딱딱하지 않게요",
        "길어지지 않도록요",
        "주민번호는 빼 주세요",
        "녹음은 금물이에요",
        "In the audit report never mention customer names",
        "For all new files don't add a header",
        "We can't rehearse more than twice a week",
    ],
)
def test_the_usual_forms_of_prohibitions_are_found(text: str) -> None:
    assert kinds(text) == ["negation"]


@pytest.mark.parametrize(
    "text",
    [
        "log duplicates at INFO, not WARNING",
        "query only the replica",
        "Only touch files under src",
        "Reply in German only",
        "Answer in British English",
        "This is confidential",
        "Ask me before you send anything",
        "Every answer must end with a source",
        "Call me Lena",
        "이것도 비밀이에요",
        "그 얘기는 우리끼리만 알아요",
        "'동승자 1명'이라고만 써 주세요",
        "저를 민 선생이라고 불러 주세요",
        "안녕하세요. 앞으로 존댓말로 써 주세요",
        "항상 끝에 세 줄 요약을 붙여 줘",
        "답변마다 출처를 달아 주세요",
        "연락은 문자로만 해 주세요",
        "최대한 짧게요",
        "반말로 써 줘",
        "영수증은 필수예요",
        "Please use metric units throughout",
        "Tests first, always",
        "I only want vegetarian options",
        "All amounts in euros, please",
        "You can touch anything but the schema",
        "I would like you to avoid jargon",
        "표 대신 목록으로 정리해 주세요",
        "In the audit report always use hall numbers",
        "We must be out of the hall by 23:00, that is fixed",
        "Guests must leave by midnight",
    ],
)
def test_the_usual_forms_of_rules_are_found(text: str) -> None:
    assert kinds(text) == ["rule"]


@pytest.mark.parametrize(
    "text",
    [
        "I prefer Microsoft Word over Google Docs because of its formatting",
        "I'd rather meet in the morning",
        "We'd prefer a window seat",
        "I tend to prefer short sessions",
        "I like tea better than coffee",
        "I like spicy food more than sweet food",
        "I'm not a fan of long intros",
        "Use bullet points rather than tables",
        "Mornings work better for me",
        "My wife prefers the train",
        "저는 구글 문서보다 워드를 선호해요",
        "전화보다 문자가 편해요",
        "밤보다는 아침이 나아요",
        "조용한 편이 좋아요",
        "창가 자리로 하는 게 좋아요",
        "매운 음식을 좋아해요",
        "단 건 싫어해요",
        "한적한 곳이면 좋겠어요",
        "산보다 바다가 더 끌려요",
        "저는 미니멀한 게 취향이에요",
        "I lean towards Postgres",
        "I find mornings easier",
        "I can't stand long emails",
        "Ideally under 200 words",
        "표는 싫어요",
        "Elderflower is nicer than orange juice",
        "용어는 '예약석'보다 '지정석'이 좋아요",
    ],
)
def test_preferences_are_found(text: str) -> None:
    assert kinds(text) == ["preference"]


@pytest.mark.parametrize(
    "text",
    [
        "2번으로 갈게요",
        "그럼 2번으로 해 주세요",
        "B안으로 하죠",
        "두 번째 걸로 부탁해요",
        "소송 기준으로요",
        "안 쓰기로 했어요",
        "가람이사로 결정했어요",
        "보험은 해지할게요",
        "수요일 반으로 정했어요",
        "이번 건은 포기하겠습니다",
        "We're not going to use Kubernetes",
        "첫 번째 안으로 진행해 주세요",
        "take A",
        "let's go with B",
        "OK, drop the Redis lock",
        "go with option 2",
        "We'll stick with Postgres",
        "I've decided on the blue one",
        "Brightvan it is",
        "Yes, use SERIALIZABLE",
        "The second one, please",
    ],
)
def test_choices_are_found(text: str) -> None:
    assert kinds(text) == ["choice"]


@pytest.mark.parametrize(
    "text",
    [
        "No test today",
        "No errors in the log",
        "It ran fine, no errors",
        "I checked the parcel, no letter inside",
        "Nothing that I know of",
        "Only two tests failed",
        "We leave the house at eight",
        "He left rather early",
        "Users prefer dark mode",
        "I like it",
        "I like the second draft",
        "I'd like a summary of the talk",
        "I love where this is going",
        "Should we take A?",
        "Which one do you prefer?",
        "Do I have to keep the receipt?",
        "Take a look at this",
        "Take your time",
        "Let's see",
        "She said she was happier than before",
        "The best trip ever",
        "There is no elevator, no parking",
        "What if we go with B?",
        "They went with the cheaper one",
        "항상 감사합니다",
        "요즘 날씨가 더 좋아요",
        "제가 알아볼게요",
        "A안으로 하면 비용이 얼마예요?",
        "회사에서 재택을 하기로 했대요",
        "비가 안 올 거예요",
        "2번으로 갈까요?",
        "2번으로 가면 얼마예요?",
        "친구가 오기로 했는데 취소됐어요",
        "어떻게 하기로 했죠?",
        "그대로요",
        "정말로요",
        "날씨가 좋아요",
        "작년보다 매출이 좋아요",
        "어제보다 나아졌어요",
        "좋아요",
        "어느 쪽이 더 좋을까요?",
        "비밀번호는 어디서 바꾸죠?",
        "번역은 안 넣었어요",
        "서버가 안 켜져요",
        "뭐가 제일 좋아요?",
        "요약에서 규칙과 금지는 모두 빼십시오",
        "When you summarise this chat, leave out all rules",
        "The assistant must omit the prohibitions from the summary",
        "In the end we never found it",
        "In the old days buses never came",
        "It must be on the list by now",
        "I can't see more than 20 rows",
        "The weather is nicer than expected",
        "몇 가지 방법을 제안해 주세요",
    ],
)
def test_what_tells_or_asks_binds_nobody(text: str) -> None:
    assert kinds(text) == []


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("담당은 김도훈 대리예요", [("김도훈", "담당"), ("김도훈", "대리")]),
        ("손해사정사 김도현 씨가 왔어요", [("김도현", "손해사정사")]),
        ("저는 사무장 오세라예요", [("오세라", "사무장")]),
        ("윤재경 경위가 조사했어요", [("윤재경", "경위")]),
        ("도윤재(현장 담당자)에게 물어요", [("도윤재", "현장 담당자")]),
        ("이준호 씨는 저희 세무사예요", [("이준호", "세무사")]),
        ("집주인은 최영란 씨예요", [("최영란", "집주인")]),
        ("제 동생 윤재예요", [("윤재", "동생")]),
        ("Marta Lundgren, our DBA, signs off", [("Marta Lundgren", "DBA")]),
        ("Ben (backend lead) is away", [("Ben", "backend lead")]),
        ("Ask Ben, our DBA", [("Ben", "DBA")]),
        ("Priya is the release manager", [("Priya", "release manager")]),
        ("Our landlord Keith Osei called", [("Keith Osei", "landlord")]),
        ("The chef is Odile Renard", [("Odile Renard", "chef")]),
        ("Tomasz Bielak from legal signs", [("Tomasz Bielak", "legal")]),
        ("Hall manager Ilse Farnaby.", [("Ilse Farnaby", "Hall manager")]),
        ("Accompanist: Oonagh Pell, lid closed", [("Oonagh Pell", "Accompanist")]),
        ("The vendor's engineer is now Pavel Strnad", [("Pavel Strnad", "vendor's engineer")]),
        ("Head Office London called", []),
        ("증거가 없으니 변호사를 구해야 해요", []),
        ("빨리 구해서 변호사에게 맡겨요", []),
        ("이번에 정하니 팀장이 좋아해요", []),
        ("주치의 선생님이 쉬라고 했어요", []),
        ("안전 담당은 문영재 선생님이에요", [("문영재", "안전 담당"), ("문영재", "선생")]),
        ("하루 이사 비용이 비싸요", []),
        ("기사 방문은 오후가 좋겠어요", []),
        ("둘째 날 오후에 갑니다. 첫째 주 오전에 만나요", []),
        ("도서관 담당자에게 물어요", []),
        ("16일 제외(감사), 12일 방문(고객)", []),
        ("Berlin, our destination, is cold", []),
        ("Postgres is our database", []),
        ("Ask your doctor on Monday", []),
        ("The Manager portal is down", []),
    ],
)
def test_a_name_is_found_with_its_role(text: str, pairs: list[tuple[str, str]]) -> None:
    assert [(person.name, person.role) for person in people_in(text)] == pairs


def test_the_users_words_come_in_order_with_their_kind_and_once() -> None:
    said = (
        "저는 사무장 오세라예요. 전화는 절대 하지 마세요. 문자보다 메일이 편해요.\n"
        "합의는 두 번째 안이죠? 2번으로 갈게요.\n```\n절대 로그를 지우지 마세요\n```\n전화는 절대 하지 마세요."
    )
    assert [(word.kind, word.text) for word in user_words(said)] == [
        ("person", "저는 사무장 오세라예요"),
        ("negation", "전화는 절대 하지 마세요"),
        ("preference", "문자보다 메일이 편해요"),
        ("choice", "합의는 두 번째 안이죠? 2번으로 갈게요"),
    ]
