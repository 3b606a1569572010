from __future__ import annotations

import pytest

from graph.fold.user_word import user_words

RULE = "절대 전화하지 마십시오"
MAIL = f"안녕하세요, 고객님. 담당자입니다.\n{RULE}.\n앞으로 서류는 우편으로만 보내 주세요."
ENGLISH = "Dear customer,\nnever call us again. Always answer by post, no emails.\nKind regards\nAnn Miller"


def words(text: str) -> list[str]:
    return [word.text for word in user_words(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"보험사가 보낸 메일이에요:\n---\n{MAIL}\n---",
        f"보험사가 보낸 메일이에요:\n{MAIL}",
        f"메일이 왔어요:\n\n{MAIL}\n\n보험사 드림\n\n뭐라고 답하죠?",
        f"다음은 상대방 답변입니다:\n{RULE}. 합의하기로 했습니다.",
        f"아래는 공지 전문이에요:\n\n첫 문단입니다.\n\n{RULE}.",
        f"회의록 내용입니다: 예산은 그대로 두세요. {RULE}. 다음 회의는 3월입니다.",
        f"이거 봐 주세요\n\n안녕하세요.\n{RULE}.\n현대화재 드림\n\n어떻게 답할까요?",
        f"=====\n{MAIL}\n=====\n이거 어때요?",
        f"받은 문자입니다:\n{RULE}",
        f"다음은 집주인이 보낸 조건입니다:\n{RULE}",
        f"-----원본 메시지-----\n보낸 사람: kim\n{RULE}",
        f"보낸 사람: 김 대리\n제목: 안내\n\n{RULE}",
        f'그쪽은 "안녕하세요. {RULE}. 감사합니다."라고 보냈어요.',
        f'"우리한테 {RULE}"라고 하네요.',
        f"pasted below\n\n{ENGLISH}",
        f"Here is the mail:\n{ENGLISH}",
        f"Here's what they sent, pasted below:\n\n{ENGLISH}\n\nWhat do I answer?",
        "Here is the log:\n[12:01] never retry this job\nonly read queries may run\n\nWhy does it fail?",
        "The insurer wrote:\n\nNever call us. We prefer letters.\n\nWhat do you think?",
        f"Have a look at this:\n---\n{ENGLISH}\n---\nIs that normal?",
        'Their mail says "Never call us again, always write a letter", is that legal?',
        f"---------- Forwarded message ---------\nFrom: Ann\n\n{ENGLISH}",
        f"Thoughts?\n\n{ENGLISH}\n\nIs that fine?",
        "The contract: the tenant must never sublet the flat, and no pets are allowed in it.",
    ],
)
def test_nothing_in_a_pasted_passage_is_the_users_word(text: str) -> None:
    assert words(text) == []


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("안녕하세요. 앞으로 존댓말로 써 주세요", ["앞으로 존댓말로 써 주세요"]),
        ("안녕하세요!\n표는 쓰지 마세요.\n감사합니다.", ["표는 쓰지 마세요"]),
        ("다음은 제 규칙입니다:\n- 표는 쓰지 마세요", ["표는 쓰지 마세요"]),
        ("제 조건은 다음과 같아요:\n1. 표는 쓰지 마세요", ["표는 쓰지 마세요"]),
        (f"메일이에요:\n---\n{MAIL}\n---\n답장에 표는 쓰지 마세요.", ["답장에 표는 쓰지 마세요"]),
        (f"표는 쓰지 마세요. 메일이에요:\n---\n{MAIL}\n---", ["표는 쓰지 마세요"]),
        ("제 메일이에요: kim@example.kr. 표는 쓰지 마세요.", ["표는 쓰지 마세요"]),
        (f"편지예요:\n{MAIL}\n김 과장 드림\n\n전화는 절대 안 받을 거예요.", ["전화는 절대 안 받을 거예요"]),
        (f"편지예요:\n{MAIL}\n\n이 편지에 답을 써 줘.\n표는 쓰지 마세요.", ["표는 쓰지 마세요"]),
        ("Here are my rules:\n- never use tables", ["never use tables"]),
        ("Here is the log:\n[12:01] never retry\n\nNever restart the worker.", ["Never restart the worker"]),
        (f"Here is the mail:\n{ENGLISH}\n\nNever answer before Monday.", ["Never answer before Monday"]),
        ("Hi!\nNever use tables.\nThanks", ["Never use tables"]),
        ("One thing: never use tables.", ["One thing: never use tables"]),
        ("'동승자 1명'이라고만 써 주세요", ["'동승자 1명'이라고만 써 주세요"]),
        ("Part one\n---\nNever use tables.", ["Never use tables"]),
    ],
)
def test_what_the_user_says_around_it_is(text: str, own: list[str]) -> None:
    assert words(text) == own
