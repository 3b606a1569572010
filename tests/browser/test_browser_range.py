from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

# What the model writes beside what a person must read.
PARAGRAPHS = (
    ("기간은 3~4일, 인원은 10~20명입니다.", "기간은 3~4일, 인원은 10~20명입니다."),
    ("예산 ~500달러 ~ 600달러", "예산 ~500달러 ~ 600달러"),
    ("물은 H~2~O, 따옴표 ` 하나와 5~6개", "물은 H~2~O, 따옴표 ` 하나와 5~6개"),
    (r"벌써 피한 \~7, 8\~ 그리고 9~10", "벌써 피한 ~7, 8~ 그리고 9~10"),
    ("`a~b`와 `c~d`, 그 사이 1~2와 3~4", "a~b와 c~d, 그 사이 1~2와 3~4"),
    ("값 ~~~ 1~2와 3~4", "값 ~~~ 1~2와 3~4"),
    ("가격 $3~4, $5~6", "가격 $3~4, $5~6"),
    ("주소 http://127.0.0.1/~kim/a~b 에서 1~2", "주소 http://127.0.0.1/~kim/a~b 에서 1~2"),
    ("사이 ``` 세 개와 1~2, 3~4", "사이 ``` 세 개와 1~2, 3~4"),
)
QUESTION = "범위를 여러 가지로 적어 주세요."
ANSWER = "\n\n".join(
    [
        *(written for written, _ in PARAGRAPHS),
        "- 첫째 ` 1~2\n- 둘째 ` 3~4\n\n    딸린 문단 5~6, 7~8",
        "| 개수 | 기간 |\n| --- | --- |\n| 1~2 | 3~4 |",
        "```python\nx = ~a & ~b\n```",
        "    y = ~c & ~d",
        "식 $a~b$ 뒤 1~2, 3~4 ~~지운 말~~",
    ]
)


def test_ranges_read_as_they_were_written(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    fake_openai.script(text(ANSWER), to=QUESTION)
    visitor.open()
    visitor.ask(QUESTION)
    answer = visitor.turn(1).get_by_test_id("stChatMessage").last
    paragraphs = answer.get_by_test_id("stMarkdownContainer").first.locator("> p")
    expect(paragraphs).to_have_count(len(PARAGRAPHS) + 1)
    for number, (_, shown) in enumerate(PARAGRAPHS):
        expect(paragraphs.nth(number)).to_have_text(shown)
    expect(answer.locator("li p")).to_have_text(["첫째 ` 1~2", "둘째 ` 3~4", "딸린 문단 5~6, 7~8"])
    expect(answer.locator("td")).to_have_text(["1~2", "3~4"])
    expect(answer.locator("pre")).to_have_text(["x = ~a & ~b", "y = ~c & ~d"])
    expect(answer.locator(".katex annotation")).to_have_text("a~b")
    expect(answer.locator("del")).to_have_text(["지운 말"])
