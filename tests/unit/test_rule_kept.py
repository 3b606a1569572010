"""Rules, preferences and choices of the user compared with what a summary says of them."""

from __future__ import annotations

import pytest

from graph.fold.fact_compare import missing_from
from graph.fold.fact_find import facts_in, is_instruction

PHONE = "그리고 저는 보험사랑 전화로는 절대 얘기 안 하고 서면으로만 할 거예요."


def missing(said: str, summary: str) -> list[str]:
    words = [fact for fact in facts_in(said) if is_instruction(fact)]
    assert words
    return [fact.text for fact in missing_from(words, summary)]


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (PHONE, "보험사와 전화 금지."),
        (PHONE, "보험사와는 서면으로만."),
        (PHONE, "(2턴) 규칙: 보험사와 전화 금지, 서면으로만."),
        (PHONE, "보험사와 전화로 얘기하지 않고 서면으로만 연락."),
        ("민서 이름은 모든 서류에서 빼 주세요.", "민서 이름은 모든 서류에서 뺌."),
        ("'유감' 같은 감정 표현은 빼 주세요.", "'유감' 같은 감정 표현은 뺌."),
        ("너무 딱딱하지 않게요.", "말투는 딱딱하지 않게."),
        ("이것도 비밀이에요.", "알레르기 얘기도 비밀."),
        ("'동승자 1명'이라고만 써 주세요.", "서류에는 '동승자 1명'으로만 씀."),
        ("영어 번역은 안 넣어요.", "영어 번역 없음."),
        ("앞으로 존댓말로 써 주세요.", "규칙: 존댓말."),
        ("항상 끝에 세 줄 요약을 붙여 줘.", "답변 끝에 세 줄 요약을 붙임."),
        ("테스트 두 개는 그대로 두세요.", "테스트 두 개는 건드리지 않음."),
        ("표는 쓰지 마세요.", "표 금지."),
        ("술은 빼 주세요.", "술 없이."),
        ("연락은 문자로만 해 주세요.", "연락은 문자만."),
        ("저는 구글 문서보다 워드를 선호해요.", "구글 문서보다 워드 선호."),
        ("저는 구글 문서보다 워드를 선호해요.", "선호: 워드(구글 문서 대신)."),
        ("창가 자리로 하는 게 좋아요.", "창가 자리를 원함."),
        ("매운 음식을 좋아해요.", "매운 음식 좋아함."),
        ("호텔은 닛코로 할게요.", "호텔: 닛코."),
        ("2번으로 갈게요.", "결정: 2번(소송)."),
        ("B안으로 하죠.", "B안으로 정함."),
        ("소송 기준으로요.", "소송 기준으로 계산."),
        ("합의금은 안 받기로 했어요.", "합의금은 받지 않기로 함."),
        ("보험은 해지할게요.", "보험 해지 결정."),
        ("No tenacity, that is a new dependency.", "No tenacity (new dependency)."),
        ("no new dependencies, no emojis", "Rules: no new dependencies or emojis."),
        ("no f-strings in SQL, ever, only bound parameters", "SQL: bound parameters only, no f-strings."),
        ("The 19 are Marten's physical counts, leave them alone, always", "19 rows are Marten's counts: untouched."),
        ("log duplicates at INFO, not WARNING", "Duplicates are logged at INFO, not WARNING."),
        ("Read queries are fine, but nothing that writes", "Only read queries, nothing that writes."),
        ("leave the two tests", "The two tests stay unchanged."),
        ("query only the replica", "Queries go to the replica only."),
        (
            "I prefer Microsoft Word over Google Docs because of its formatting.",
            "Prefers Microsoft Word to Google Docs.",
        ),
        ("I'd rather meet in the morning.", "Prefers to meet in the morning."),
        ("I like tea better than coffee.", "Tea over coffee."),
        ("take A", "Decided: A (retry in the client)."),
        ("let's go with option 2", "Option 2 was chosen."),
        ("OK, drop the Redis lock", "Redis lock dropped."),
        ("OK, drop the Redis lock", "Decided: no Redis lock."),
        ("Yes, use SERIALIZABLE", "Isolation level: SERIALIZABLE."),
        ("Never deploy on Fridays.", "No Friday deploys."),
    ],
)
def test_what_a_summary_says_in_other_words_is_kept(said: str, summary: str) -> None:
    assert missing(said, summary) == []


@pytest.mark.parametrize(
    ("said", "summary"),
    [
        (PHONE, "서명하지 말고 제3의료기관 감정(비용 보험사 부담)을 제안."),
        (PHONE, "보험사에 서면 통지를 보냄. 서류는 서랍에 둠."),
        (PHONE, "보험사와 전화로 얘기함. 서명하지 않음."),
        ("민서 이름은 모든 서류에서 빼 주세요.", "민서 이름을 서류에 넣음."),
        ("이것도 비밀이에요.", "알레르기를 말함."),
        ("영어 번역은 안 넣어요.", "영어 번역을 넣음."),
        ("테스트 두 개는 그대로 두세요.", "테스트 두 개를 고침."),
        ("저는 구글 문서보다 워드를 선호해요.", "구글 문서와 워드를 설치함."),
        ("표는 쓰지 마세요.", "목표는 아직 정하지 않음."),
        ("창가 자리로 하는 게 좋아요.", "자리는 통로 쪽."),
        ("호텔은 닛코로 할게요.", "호텔과 음식을 이야기함."),
        ("2번으로 갈게요.", "1번과 3번을 비교함."),
        ("B안으로 하죠.", "A안으로 정함."),
        ("소송 기준으로요.", "합의를 논의함."),
        ("합의금은 안 받기로 했어요.", "합의금은 받기로 함."),
        ("No tenacity, that is a new dependency.", "Uses tenacity for retries."),
        ("no f-strings in SQL, ever, only bound parameters", "SQL is written with f-strings."),
        ("The 19 are Marten's physical counts, leave them alone, always", "Marten's 19 counts were overwritten."),
        ("leave the two tests", "The two tests were rewritten."),
        ("I prefer Microsoft Word over Google Docs.", "Microsoft Word and Google Docs are installed."),
        ("I'd rather meet in the morning.", "Meets on Tuesday."),
        ("take A", "A retry in the client was discussed."),
        ("let's go with option 2", "Option 1 was chosen."),
        ("OK, drop the Redis lock", "The Redis lock stays."),
        ("Never deploy on Fridays.", "Deploys on Fridays."),
    ],
)
def test_what_a_summary_lacks_or_turns_round_is_missing(said: str, summary: str) -> None:
    assert missing(said, summary) == [fact.text for fact in facts_in(said) if is_instruction(fact)]
