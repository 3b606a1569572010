from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph.fold.clean import clean_draft

TEXT = "(1턴) 서버는 10월 14일에 옮김. 담당은 김민수. (2턴) 예산은 320만 원. 야간 작업은 절대 안 됨."
LINES = f"{TEXT}\n- 경로: /srv/data\n- 남은 일: 복제"


AROUND = [
    "<think>\nThe user wants a summary.\n</think>\n\n{}",
    "<think>생각</think><think>또 생각</think>{}",
    "<thinking>hm</thinking>{}",
    "The user wants\na summary.\n</think>\n{}",
    "```\n{}\n```",
    "```markdown\n{}\n```",
    "~~~text\n{}\n~~~",
    "요약:\n{}",
    "요약: {}",
    "**요약:**\n{}",
    "**Summary:** {}",
    "## 요약\n\n{}",
    "# Summary of turns 1-3\n{}",
    "# Summary of our turns 1 - 3 so far\n{}",
    "다음은 대화의 요약입니다:\n{}",
    "물론입니다! 다음은 요청하신 대화의 요약입니다.\n\n{}",
    "Here is a concise summary of the conversation:\n{}",
    "Sure! Here's the summary:\n\n{}",
    "{}\n\n(총 612자)",
    "{} (총 612자)",
    "{}\n(612 characters)",
    "{} (공백 포함 70자)",
    "{}\n(글자 수: 1,024자)",
    "{} [about 60 characters]",
    "<think>음</think>\n```\n**요약:**\n{}\n```",
    "다음은 요약입니다:\n```\n{}\n(총 70자)\n```",
    "<thought>decoy 7777</thought>\n{}",
    "<seed:think>음</seed:think>{}<seed:eos>",
    "{}<|im_end|>",
    "{}\n\n도움이 더 필요하시면 말씀해 주세요!",
    "{}\n\n추가로 수정할 부분이 있으면 언제든지 알려 주세요.",
    "{}\n\nLet me know if you need anything else!",
    "{}\n\nWould you like me to expand on any part?",
    "{}\nI hope this helps!\nFeel free to ask for changes.",
]
INSIDE = [
    "(1턴) 사용자가 `<think>` 태그를 지우는 법을 물음. </think> 뒤의 글만 남기기로 함.",
    "(1턴) 모델이 <think>생각</think>을 내보냄.",
    "(1턴) 지금 코드:\n```python\nprint(1)\n```\n(2턴) 실행함.",
    "```python\nprint(1)\n```\n(1턴) 이 코드를 씀.\n```sh\nmake\n```",
    "사용자가 바라는 요약 형식:\n- 세 문장\n- 표 없이",
    "(1턴) 사용자가 부탁한 요약: 세 문장으로.\n(2턴) 그대로 함.",
    "The summary of the incident must have three parts:\n- cause\n- effect",
    "1. **Task Overview**\n   - 계산기\n\n2. **Work Completed**\n   - calculator.py",
    "(1턴) 제목은 짧게, 아이디는 영문으로 정했고 본문은 길어도 됨. 비밀번호는 반드시 길게 (20자)",
    "(1턴) 안내문의 끝에 '도움이 더 필요하시면 말씀해 주세요!'를 넣기로 함.",
    "(1턴) 값은 정함. (2턴) 필요하시면 말씀해 주세요!",
    '{"port": 9090, "host": "a"}',
    "[1] 첫째 [2] 둘째",
    "(1턴) 보고서는 200자로 쓰기로 함 (12월 3일까지)",
    f"(1턴) 이 수를 외우기로 함 ({'7' * 5_000}자)",
]


def wraps(text: str) -> list[object]:
    lines = text.split("\n")
    return [
        {"summary": text},
        {"요약": text},
        {"result": text, "length": 3},
        {"anything": text},
        {"summary": lines},
        lines,
    ]


def test_an_offer_in_the_last_line_goes() -> None:
    assert clean_draft(f"{TEXT} 더 궁금한 점이 있으면 물어보세요.") == TEXT


@pytest.mark.parametrize("text", [TEXT, LINES])
def test_a_summary_in_json_is_taken_out(text: str) -> None:
    for wrapped in wraps(text):
        for around in ("{}", "```json\n{}\n```", "```json {}```", "<think>음</think>{}", "Here is the summary:\n{}"):
            said = around.replace("{}", json.dumps(wrapped, ensure_ascii=False))
            assert clean_draft(said) == text
    assert clean_draft('{"summary": "' + LINES + '"}') == LINES  # with line breaks as they are


@pytest.mark.parametrize("text", [TEXT, LINES])
def test_what_stands_around_a_summary_goes(text: str) -> None:
    assert [around for around in AROUND if clean_draft(around.format(text)) != text] == []


def test_reasoning_alone_leaves_nothing_and_the_same_words_inside_a_summary_stay() -> None:
    assert {clean_draft(text) for text in ("<think>The user wants", "<think></think>", "", "  \n")} == {""}
    assert [text for text in INSIDE if clean_draft(text) != text] == []


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "```", "요약:", "(총 9자)", "\n", "가 나", "**", "#", "(9자)", ": "])
    ).map("".join)
)
def test_cleaning_ends_and_cleans_all_there_is(text: str) -> None:
    cleaned = clean_draft(text)
    assert clean_draft(cleaned) == cleaned
    assert len(cleaned) <= len(text)
