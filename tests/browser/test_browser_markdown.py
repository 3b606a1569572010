from __future__ import annotations

from itertools import cycle, product

import pytest
from playwright.sync_api import expect

from tests.browser.visitor import Visitor
from tests.fake.openai_reply import text
from tests.fake.openai_server import FakeOpenAI

# What a model writes, and what a reader must see; a formula is shown as ⟦its source⟧.
PIECES = (
    *((said, said) for said in ("3~4일", "10~20명", "50~60%", "H~2~O", "~500달러", "약 ~3kg")),
    *((said, said) for said in ("$5", "5$", "100$~200$", "US$1,000", "$HOME/bin", "₩3,000", "$5(USD)", "€5")),
    *((said, said) for said in ("--force", "--", "->", "<->", ">=", "<=", "~=", "2*3*4", "(a)*(b)")),
    *((said, said) for said in ("10:30:45", "1:100:3", ":smile:", ":+1:", ":red[말]", "::이름", "a:b[c]", "키: 값")),
    *(
        (said, said)
        for said in (":material/home:", "/usr/~kim/a_b.py", "snake_case_name", r"C:\Users\kim", "@kim", "R&D")
    ),
    *((said, said) for said in ("<b>굵게</b>", "a < b", "<script>x</script>", "مرحبا", "שלום", "https://a.kr/~b~")),
    ("![그림](https://example.com/x.png)", "그림"),
    ("[말](https://example.com)", "말"),
    ("~~지운 말~~", "지운 말"),
    ("**굵게**", "굵게"),
    ("`a~b $x$ :smile:`", "a~b $x$ :smile:"),
    (r"\$5", "$5"),
    ("$2^n$", "⟦2^n⟧"),
    ("$3x + 2$", "⟦3x + 2⟧"),
    (r"$3 \cdot 10^8$", r"⟦3 \cdot 10^8⟧"),
    (r"$\$5 \times 3$", r"⟦\$5 \times 3⟧"),
    (r"\(a_1\)", "⟦a_1⟧"),
    (r"\[x = y\]", "⟦x = y⟧"),
    (r"$\text{속도} = 3$", r"⟦\text{속도} = 3⟧"),
)
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
WORDS = ("그리고", "값은", "then", "이고,", "or", "약")

# Reads a paragraph as it is seen, each formula by the source that KaTeX keeps beside it.
READ = """
    turn => [...turn.querySelectorAll("[data-testid='stMarkdownContainer'] > p")].map(paragraph => {
        const copy = paragraph.cloneNode(true);
        for (const formula of copy.querySelectorAll(".katex")) {
            formula.replaceWith("⟦" + formula.querySelector("annotation").textContent + "⟧");
        }
        return copy.textContent.split(/\\s+/).join(" ").trim();
    })
"""


def paragraphs() -> list[tuple[str, str]]:
    """Returns each piece behind each other one, with words around them."""
    between = cycle(WORDS)
    made = []
    for (said, shown), (next_said, next_shown) in product(PIECES, PIECES):
        word = next(between)
        made.append((f"문단 {said} {word} {next_said} 끝", f"문단 {shown} {word} {next_shown} 끝"))
    return made


@pytest.mark.slow
def test_what_is_shown_is_what_was_said(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "여러 표기를 섞은 글을 써 주세요."
    made = paragraphs()
    fake_openai.script(text("\n\n".join(said for said, _ in made)), to=asked)
    visitor.open()
    visitor.ask(asked)
    visitor.page.wait_for_function("() => document.querySelectorAll('.katex').length > 100")
    shown = visitor.turn(1).get_by_test_id("stChatMessage").last.evaluate(READ)
    assert [pair for pair in zip(shown, (expected for _, expected in made), strict=True) if pair[0] != pair[1]] == []


def test_blocks_are_shown_as_they_were_said(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "표와 코드와 수식을 보여 주세요."
    answer = (
        "| 기간 | 값 |\n|:--|--:|\n| 3~4일, 5~6일 | $5~$6 |\n\n"
        "```python\nx = ~a & ~b  # $5 :smile:\n```\n\n"
        "\\[\nE = mc^2\n- b\n\\]\n\n"
        "- 1~2개\n- 3~4개\n\n"
        "각주[^1]입니다.\n\n[^1]: 7~8쪽\n\n"
        "> 9~10일, 11~12일\n> 13일\n\n"
        "1. **금요일**\n   발표\n\n"
        "이름 | 수\n--- | ---\n가 | 1\n\n"
        "감사합니다.\n`김민수` 드림\n10. 14. 서울\n"
    )
    fake_openai.script(text(answer), to=asked)
    visitor.open()
    visitor.ask(asked)
    shown = visitor.turn(1).get_by_test_id("stChatMessage").last
    shown.locator(".katex-display").wait_for()
    shown.locator("pre code").wait_for()
    seen = " ".join(shown.inner_text().split())
    for said in ("3~4일, 5~6일", "$5~$6", "x = ~a & ~b # $5 :smile:", "1~2개", "3~4개", "7~8쪽", "9~10일, 11~12일"):
        assert said in seen
    lines = [text.split("\n") for text in shown.locator("p, li").all_inner_texts()]
    for written in (["감사합니다.", "김민수 드림", "10. 14. 서울"], ["9~10일, 11~12일", "13일"], ["금요일", "발표"]):
        assert written in lines
    assert shown.locator("table").last.locator("td").all_inner_texts() == ["가", "1"]
    assert shown.locator(".katex-display annotation").text_content() == "E = mc^2\n- b"
    assert shown.locator("del, .katex-error, img").count() == 0


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
    sizes = "formula => [formula, formula.parentElement].map(part => parseFloat(getComputedStyle(part).fontSize))"
    formula, words = answer.locator(".katex").evaluate(sizes)
    assert formula == pytest.approx(words, rel=0.06)
    expect(answer.locator("del")).to_have_text(["지운 말"])


# What is written, what is drawn by which element, and the addresses of its links.
MARKED: tuple[tuple[str, str, str, list[str]], ...] = (
    ("**[문서](https://a.kr/x)**를 보세요.", "strong", "문서", ["https://a.kr/x"]),
    ("~~**[글](https://a.kr/x_(y))**~~로", "del > strong", "글", ["https://a.kr/x_(y)"]),
    ("***https://a.kr/x***은", "em > strong", "https://a.kr/x", ["https://a.kr/x"]),
    ("*서울(Seoul)*에서", "em", "서울(Seoul)", []),
    ("~~취소(cancel)~~는", "del", "취소(cancel)", []),
    ("(https://b.kr)를", "a", "https://b.kr", ["https://b.kr"]),
    ("https://a.kr/x?a=1입니다.", "a", "https://a.kr/x?a=1", ["https://a.kr/x?a=1"]),
    ("www.a.kr/x_y에서", "a", "www.a.kr/x_y", ["http://www.a.kr/x_y"]),
)


def test_marks_and_links_end_before_korean_particles(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "강조와 링크를 조사 앞에 써 주세요."
    fake_openai.script(text("\n\n".join(written for written, *_ in MARKED)), to=asked)
    visitor.open()
    visitor.ask(asked)
    answer = visitor.turn(1).get_by_test_id("stChatMessage").last
    paragraphs = answer.get_by_test_id("stMarkdownContainer").first.locator("> p")
    expect(paragraphs).to_have_count(len(MARKED))
    for number, (_, element, shown, links) in enumerate(MARKED):
        expect(paragraphs.nth(number).locator(element)).to_have_text(shown)
        hrefs = "links => links.map(link => link.getAttribute('href'))"
        assert paragraphs.nth(number).locator("a").evaluate_all(hrefs) == links
        assert "*" not in paragraphs.nth(number).inner_text()


GROWING = (
    "흐름은 이렇습니다.\n\n```mermaid\nflowchart LR\n    A[접수] --> B{검토}\n"
    "    B -->|승인| C[배포]\n    B -->|반려| A\n```\n\n"
    "1. 일정\n\n   ```mermaid\n   gantt\n       dateFormat YYYY-MM-DD\n       section 준비\n"
    "       설계 :a1, 2026-10-01, 5d\n       구현 :after a1, 7d\n   ```\n\n"
    "| 항목 | 값 |\n|---|---:|\n| 환율 | $0.92$ |\n| 합계 | $1/0.92 \\approx 1.087$ |\n\n"
    "값 $\\frac{3 \\cdot 10^8}{\\sqrt{2}}$ 그리고\n\n$$\nE = \\frac{m_0 c^2}{\\sqrt{1 - \\frac{v^2}{c^2}}}\n$$\n\n"
    "\\[\n\\begin{aligned}\na &= b + c \\\\\nd &= \\left( e + f \\right)\n\\end{aligned}\n\\]\n\n"
    "$$S = \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}$$\n\n"
    "```python\ndef f(x):\n    return x ** 2  # $5 **굵게**\n```\n\n**끝**입니다."
)
# Notes what is red, says that something is wrong, or is a mark of Markdown, in each frame of the answer.
NOTE_FLASHES = """() => {
    window.flashes = new Set();
    const isMark = (part, text) => !part.closest("pre, .katex") && /^(#+|\\d+[.)]|\\*\\*.*|\\|.*)$/m.test(text.trim());
    const isRed = (part) => {
        const [r, g, b] = getComputedStyle(part).color.match(/[\\d.]+/g).map(Number);
        return r > 140 && r > 1.8 * g && r > 1.8 * b && !part.closest(".token, [hidden]");
    };
    const note = () => {
        for (const answer of document.querySelectorAll("[class*='st-key-turn_'] [data-testid='stChatMessage']")) {
            const texts = document.createTreeWalker(answer, NodeFilter.SHOW_TEXT);
            while (texts.nextNode()) {
                const { data, parentElement } = texts.currentNode;
                const isWrong = isRed(parentElement) || isMark(parentElement, data) || /error/i.test(data);
                if (data.trim() && isWrong) window.flashes.add(data);
            }
        }
        requestAnimationFrame(note);
    };
    note();
}"""


def test_no_error_or_mark_flashes_while_an_answer_grows(visitor: Visitor, fake_openai: FakeOpenAI) -> None:
    asked = "그림과 표와 수식과 코드를 천천히 보여 주세요."
    pieces = [GROWING[start : start + 8] for start in range(0, len(GROWING), 8)]
    fake_openai.script(text(*pieces, pause_seconds=0.06), to=asked)
    visitor.open()
    visitor.page.evaluate(NOTE_FLASHES)
    visitor.ask(asked)
    answer = visitor.turn(1).get_by_test_id("stChatMessage").last
    expect(answer.locator("[data-testid='stMermaidChart'] img")).to_have_count(2)
    expect(answer.locator(".katex-display")).to_have_count(2)
    assert visitor.page.evaluate("[...flashes]") == []
    visitor.expect_no_complaint()
