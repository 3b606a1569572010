from __future__ import annotations

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from component.markdown import answer_markdown, growing_markdown, summary_markdown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("3~4일, 10~20명", r"3\~4일, 10\~20명"),
        ("예산 ~500달러 ~ 600달러", r"예산 \~500달러 \~ 600달러"),
        ("H~2~O", r"H\~2\~O"),
        ("- 3~4개\n- 5~6개", "- 3\\~4개\n- 5\\~6개"),
        ("| 3~4 | 5~6 |\n| --- | --- |\n| 7~8 | 9~10 |", "| 3\\~4 | 5\\~6 |\n| --- | --- |\n| 7\\~8 | 9\\~10 |"),
        ("`a` 3~4 `b` 5~6", r"`a` 3\~4 `b` 5\~6"),
        ("따옴표 ` 하나, 3~4와 5~6", r"따옴표 ` 하나, 3\~4와 5\~6"),
        ("- 가 ` 3~4\n- 나 ` 5~6", "- 가 ` 3\\~4\n- 나 ` 5\\~6"),
        ("가 ` 3~4\n\n나 ` 5~6", "가 ` 3\\~4\n\n나 ` 5\\~6"),
        (r"\`3~4\` 5~6", r"\`3\~4\` 5\~6"),
        ("값 ~~~ 3~4와 5~6", r"값 ~~~ 3\~4와 5\~6"),
        ("1. 하나\n\n    3~4일, 5~6명", "1. 하나\n\n    3\\~4일, 5\\~6명"),
        ("```\na~b\n```\n3~4, 5~6", "```\na~b\n```\n3\\~4, 5\\~6"),
        ("> 3~4일\n> 5~6일", "> 3\\~4일  \n> 5\\~6일"),
        (r"\\~3 ~4", r"\\\~3 \~4"),
        (r"\~~3~ ~4", r"\~\~3\~ \~4"),
        ("가격 $3~4, $5~6", r"가격 \$3\~4, \$5\~6"),
        ("https://a.kr/~b~ 3~4", r"https://a.kr/~b~ 3\~4"),
    ],
)
def test_range_keeps_its_tilde(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown


@pytest.mark.parametrize(
    "answer",
    [
        "~~지운 말~~",
        "~~3~~ 4",
        r"\~3, 4\~",
        "`a~b` `c~d`",
        "`` a~`b~ ``",
        "`끝이 \\`3",
        "```python\nx = ~a & ~b\n```",
        "~~~\nx = ~a & ~b\n~~~",
        "````\n```\na~b\n```\n````",
        "- 목록\n  ```\n  a~b\n  ```",
        "> ```\n> a~b ~c\n> ```",
        "아직 쓰는 중\n```\na~b ~c",
        "문단\n\n    a~b ~c\n\n    d~e",
        "$x~y$와 $z~w$",
        "$$\na~b\n\nc~d\n$$",
        "$$a~b$$",
        "https://example.com/~kim/a~b",
        "<https://example.com/~kim/~lee>",
    ],
)
def test_code_formula_address_and_struck_text_stay(answer: str) -> None:
    assert answer_markdown(answer) == answer


@example("->")
@example("- -- <=")
@given(st.text(alphabet="ab3~`$\\ \n<>=-.1#|"))
def test_nothing_but_backslashes_and_parted_symbols_is_added(answer: str) -> None:
    shown = re.sub(r":color\[([<>=~-])\]", r"\1", answer_markdown(answer))
    # A formula's white space means nothing, one that has a dollar sign has a longer mark, and an open one is code.
    bare, said = (re.sub(r"\$+|`{3,}", "$", re.sub(r"[\\\s]", "", text)) for text in (shown, answer))
    assert bare == said
    assert shown.count("\\") >= answer.count("\\")


@given(st.text(alphabet="a3~\\\n"))
def test_outside_code_no_tilde_stands_alone(answer: str) -> None:
    assume("~~~" not in answer)
    assert not re.search(r"(?<![~\\])~(?!~)", answer_markdown(answer))


def test_answer_full_of_open_marks_is_read_in_one_go() -> None:
    runs = " ".join("`" * length for length in range(1, 600))
    assert answer_markdown(f"{runs} 3~4") == f"{runs} 3\\~4"


def test_price_is_no_formula_and_code_stays() -> None:
    assert answer_markdown("$5 and $10") == r"\$5 and \$10"
    assert answer_markdown(r"\$5 and $x$") == r"\$5 and $x$"
    code = "`echo $1` and\n```sh\necho $1 ![x](y)\n```\nthen"
    assert answer_markdown(code) == code
    assert answer_markdown("open\n```\n$1 ![x](y)") == "open\n```\n$1 ![x](y)"
    # Three backticks within a line open nothing, so what follows is shown as Markdown.
    assert answer_markdown("open ```\n$1 ![x](y)") == "open ```  \n\\$1 [x](y)"


@pytest.mark.parametrize(
    "formula",
    [
        *(r"$1/0.92 \approx 1.087$", r"$0.05 \times 300 = 15$", r"$3 \cdot 10^8$", r"$6.02 \times 10^{23}$m"),
        *("$1{,}467{,}000$", r"$1{,}467{,}000 \times 0.05$", r"$1\,000\,000$", r"$\frac{1{,}000}{2}$", "$1, 2, 3$"),
        *(r"$9.8\ \mathrm{m/s^2}$", r"$50\,\text{km}$", r"$20 \text{ km}$", r"$90^\circ$", r"$100\%$", r"$3 \mu m$"),
        *(
            "$2xy + 3$",
            "$4ac$",
            r"$2\pi r$",
            r"$2 \log_2 8$",
            r"$7 \mid 21$",
            r"$5 \leq x \leq 10$",
            r"$0, 1, \ldots, 9$",
        ),
        *("$10 - 3$", "$0 < 1$", "$5!$", "$3:2$", "$2^{10} = 1024$", r"$12 \div 4 = 3$", r"$0.3 \pm 0.02$"),
        *(r"$300만 \times 0.05 = 15만$", r"$총액 = 300 \times 5$", r"$2 \begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}$"),
    ],
)
def test_a_formula_may_begin_with_a_number(formula: str) -> None:
    assert answer_markdown(f"값 {formula}은 $x$, {formula}") == f"값 {formula}은 $x$, {formula}"
    assert summary_markdown(formula) == formula


@pytest.mark.parametrize(
    "prices",
    [
        *("$5 and $10", "$1,467,000", "$1,467,000 및 $2,000", "US$3 per 1,000", "US$3 per 1,000 and US$5 per 1,000"),
        *("$5-$10", "$5/$10, $3", "$5k-$10k", "$5, -$10", "**$5**/**$6**", "($5)/($6)", "| $5 | $6 |", "$3.5M, $4B"),
        *("$1,000(≈₩1,400,000)/$0.5", "$1,200 (−$30)", "$100 → $120 (+$20)", "$5 × $3 = $15", "$3 = NT$90"),
        *(
            "5$와 10$",
            "$5에서 $10로",
            "1$=1,350원, 10$=13,500원",
            "It costs $5, so $10 for two",
            "$20/month, $200/year",
        ),
        *("$1/$2", "$1:$(cmd)", "$5 or 10$", "$5, `3 \\times 4`, 10$", "A$5 and C$6, US$7"),
    ],
)
def test_a_price_is_no_formula(prices: str) -> None:
    assert re.sub(r"`[^`]*`", "", answer_markdown(prices)).replace(r"\$", "").count("$") == 0
    assert answer_markdown(prices).replace(r"\$", "$") == prices


def test_a_price_in_a_formula_is_within_a_longer_mark() -> None:
    assert answer_markdown(r"$\$5 \times 3 = \$15$, \(\$5\)") == r"$$\$5 \times 3 = \$15$$, $$\$5$$"
    shown = r"\$5, $3 \times 4$, 10\$"
    assert answer_markdown(r"$5, \(3 \times 4\), 10$") == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (r"식 \( a^2 \)과 \[ b_1 \] 뒤", "식 $a^2$과 $$b_1$$ 뒤"),
        ("\\[\nx = a\n- b\n\\]\n뒤", "$$\nx = a\n- b\n$$\n\n뒤"),
        ("- \\[\n  x\n  \\]", "- $$x$$"),
        ("$2^n$과 $3x + 2$, $3$", "$2^n$과 $3x + 2$, $3$"),
        ("$5(USD) or 10$", r"\$5(USD) or 10\$"),
        ("100$~200$", r"100\$\~200\$"),
        ("$HOME/bin 은 5$ 이다", r"\$HOME/bin 은 5\$ 이다"),
        ("$a\nb$", "$a b$"),
        (r"아직 \( 쓰는", r"아직 \( 쓰는"),
        ("$5 >= 3, 값 5$", r"\$5 >:color[=] 3, 값 5\$"),
        ("10:30:45, 1:100:3 :smile: :red[말]", r"10:color[\:]30:45, 1:color[\:]100:3 :color[\:]smile: \:red[말]"),
        (":material/home:", r":material\/home:"),
        ("| a |\n|:--|\n| 2*3*4 |", "| a |\n|:--|\n| 2\\*3\\*4 |"),
        ("| a | b |\n|:---:|--:|\n| :+1: | x |", "| a | b |\n|:---:|--:|\n| :color[\\:]+1: | x |"),
        ("git checkout -- file", "git checkout -:color[-] file"),
    ],
)
def test_what_streamlit_would_change_is_shown_as_it_was_said(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("**마크다운(Markdown)**의 뜻", "**마크다운(Markdown)**:color[의] 뜻"),
        ('은**"책 5권"**처럼', ':color[은]**"책 5권"**:color[처럼]'),
        ("**`app.py`**를 `**(a)**b`", "**`app.py`**:color[를] `**(a)**b`"),
        ("***(둘)***은 **(하나)**, **셋**과", "***(둘)***:color[은] **(하나)**, **셋**과"),
        ("**(가)**나**(다)**라", "**(가)**:color[나]**(다)**:color[라]"),
        ("| **(가)**는 |", "| **(가)**:color[는] |"),
        ("** (가)**나, 2**(3)", "** (가)**나, 2**(3)"),
        ("*서울(Seoul)*에서", "*서울(Seoul)*:color[에서]"),
        ("~~취소(cancel)~~는", "~~취소(cancel)~~:color[는]"),
        ("~~**취소(x)**~~는", "~~**취소(x)**~~:color[는]"),
        ('은*"책"*처럼', ':color[은]*"책"*:color[처럼]'),
        ("**굵게 *기울임(it)*은**", "**굵게 *기울임(it)*:color[은]**"),
        ("__굵게__는 _서울_에서", "__굵게__:color[는] _서울_:color[에서]"),
        ("**[문서](https://a.kr/x)**를", "**[문서](https://a.kr/x)**:color[를]"),
        ("***[문서](https://a.kr/x_(y))***에서", "***[문서](https://a.kr/x_(y))***:color[에서]"),
        ("~~**[문서](https://a.kr)**~~를", "~~**[문서](https://a.kr)**~~:color[를]"),
        ("**https://a.kr/x**를", "**<https://a.kr/x>**:color[를]"),
        ("*https://a.kr/x*를", "*<https://a.kr/x>*:color[를]"),
        ("__init__은 _id_는 snake_이름 foo_바", "__init__은 _id_는 snake_이름 foo_바"),
        ("가격*(세금 별도)은 5*입니다", "가격*(세금 별도)은 5*입니다"),
        ("*참고) 가나다 (*주의)는", "*참고) 가나다 (*주의)는"),
    ],
)
def test_bold_text_in_brackets_may_stand_beside_a_korean_particle(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("https://a.kr/가나다?x=1입니다.", "<https://a.kr/가나다?x=1>입니다."),
        ("(https://b.kr)를", "(<https://b.kr>)를"),
        ('"https://a.kr/x"이라고 「https://b.kr」의', '"<https://a.kr/x>"이라고 「<https://b.kr>」의'),
        ("'https://a.kr'는 [https://b.kr]를", "'<https://a.kr>'는 [<https://b.kr>]를"),
        ("https://b.kr은, http://localhost:8501에서", "<https://b.kr>은, <http://localhost:8501>에서"),
        ("https://b.kr/까지 https://b.kr/x였는데", "<https://b.kr/>까지 <https://b.kr/x>였는데"),
        ("www.a.kr/x_y입니다", r"[www.a.kr/x\_y](<http://www.a.kr/x_y>)입니다"),
        ("https://en.wikipedia.org/wiki/A_(b)를", "<https://en.wikipedia.org/wiki/A_(b)>를"),
        ("https://ko.wikipedia.org/wiki/서울에서", "<https://ko.wikipedia.org/wiki/서울>에서"),
        ("https://한글.kr를 https://a.kr,그리고", "<https://한글.kr>를 <https://a.kr>,그리고"),
        ("| https://b.kr를|x |", "| <https://b.kr>를|x |"),
    ],
)
def test_a_bare_link_ends_before_what_follows_it(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown


@pytest.mark.parametrize(
    "answer",
    [
        "https://ko.wikipedia.org/wiki/서울 https://namu.wiki/w/C언어",
        "https://한국.한국 http://[::1]:80/ https://a.kr/a|b?c=d,e;f'g",
        "https://a.kr/x. (https://b.kr), https://c.kr!",
        "[https://a.kr](https://a.kr)를 <https://a.kr>를",
        '[문서](https://a.kr/가는)을 [a](https://a.kr "제목")는',
        "https://a.kr/의미 https://a.kr/v1로드 https://a.kr/AI의.html https://a.kr/?q=AI는&b=1",
    ],
)
def test_an_address_that_ends_at_a_blank_stays(answer: str) -> None:
    assert answer_markdown(answer) == answer


@given(st.text(alphabet='*가b(")., `\n~_'))
def test_bold_text_changes_no_character(answer: str) -> None:
    shown = re.sub(r":color\[([^\]]*)\]", r"\1", answer_markdown(answer)).replace("\\", "")
    assert "".join(shown.split()) == "".join(answer.split())


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (
            "1. 하나:\n   \\[\n   x =\n     2\n   \\]\n2. **둘**",
            "1. 하나:\n   $$\n   x =\n     2\n   $$\n\n2. **둘**",
        ),
        ("1. 하나\n   $$x = 1\n   y$$\n2. 둘", "1. 하나\n   $$\n   x = 1\n   y\n   $$\n2. 둘"),
        ("$$R=\\begin{p} \n1 & 2\n\\end{p}$$\n\n**뒤**", "$$\nR=\\begin{p}\n1 & 2\n\\end{p}\n$$\n\n**뒤**"),
        ("$$\nx = 1\ny = 2$$\n뒤", "$$\nx = 1\ny = 2\n$$\n뒤"),
        ("$$\nx\n$$ 여기서 x", "$$\nx\n$$\n 여기서 x"),
        ("- $$a\n  b$$\n- 뒤", "- $$\n  a\n  b\n  $$\n- 뒤"),
        ("> $$a\n> b$$\n> 뒤", "> $$\n> a\n> b\n> $$\n> 뒤"),
        ("$$5만 원\n\n뒤", "\\$\\$5만 원\n\n뒤"),
        ("- $$\n  x\n  $$\n- 뒤", "- $$\n  x\n  $$\n- 뒤"),
    ],
)
def test_a_formula_stays_in_its_list_and_ends_at_its_mark(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        ("안녕하세요.\n\n감사합니다.\n김민수 드림", "안녕하세요.\n\n감사합니다.  \n김민수 드림"),
        ("**1주차** 설계\n**2주차** `구현`\n**3주차**", "**1주차** 설계  \n**2주차** `구현`  \n**3주차**"),
        ("서울시 중구 \n세종대로 110\t\n04524", "서울시 중구  \n세종대로 110  \n04524"),
        ("> 가\n> 나\n>\n> 다", "> 가  \n> 나\n>  \n> 다"),
        ("일정\n10. 14. 배포\n10. 15. 점검", "일정  \n10. 14. 배포  \n10. 15. 점검"),
        ("1. **가**\n   나\n- 다\n- 라", "1. **가**  \n   나\n- 다\n- 라"),
        ("가  \n나\\\n다", "가  \n나\\\n다"),
        ("`가\n  나`, $a\nb$", "`가 나`, $a b$"),
        ("표:\n| a |\n|---|\n| b |\n뒤", "표:\n| a |\n|---|\n| b |  \n뒤"),
        (
            "가:\n```\nx\ny\n```\n$$\nx\ny\n$$\n\n    코드\n    z",
            "가:\n```\nx\ny\n```\n$$\nx\ny\n$$\n\n    코드\n    z",
        ),
    ],
)
def test_a_line_break_of_an_answer_is_one(answer: str, shown: str) -> None:
    assert answer_markdown(answer) == shown
    assert summary_markdown(answer) == shown


@pytest.mark.parametrize(
    ("growing", "shown"),
    [
        ("가\n```mermaid\ngraph TD\nA-->", "가\n```\ngraph TD\nA-->"),
        ("- ~~~~ mermaid title\n  graph", "- ```\n  graph"),
        ("$$\nx = \\frac{1}\n$", "```\nx = \\frac{1}\n$"),
        ("> $$\n> x", "> ```\n> x"),
        ("$$x = \\frac{1}", "```\nx = \\frac{1}"),
        ("- $$x\n  y", "- ```\n  x\n  y"),
        ("```mermaids\nx", "```mermaids\nx"),
        ("```mermaid\ngraph\n```\n가", "```mermaid\ngraph\n```\n가"),
        ("$$\nx\n$$\n가", "$$\nx\n$$\n가"),
    ],
)
def test_an_open_diagram_or_formula_is_code(growing: str, shown: str) -> None:
    assert answer_markdown(growing) == shown


@pytest.mark.parametrize(
    ("growing", "shown"),
    [
        *(
            (f"가\n{mark}", "가\n")
            for mark in ("3.", "3. ", "3. **", "- ", "##", "## ", "> ", "> - **", "``", "```mer", "$$")
        ),
        ("값은 **", "값은"),
        ("값은 **굵", "값은 **굵**"),
        ("- **굵은 ", "- **굵은**"),
        ("값은 **굵게*", "값은 **굵게**"),
        ("값은 **굵게**", "값은 **굵게**"),
        ("`x ** 2`와 `y **", "`x ** 2`와 `y **"),
        ("```\n3. **", "```\n3. **"),
        ("표\n| 가 | 나", "표\n"),
        ("표\n| 가 | 나 |\n|--", "표\n"),
        ("| 가 |\n|---|\n| 1", "| 가 |\n|---|\n| 1"),
        ("2026년 3", "2026년 3"),
        ("", ""),
    ],
)
def test_a_growing_text_shows_no_bare_marks(growing: str, shown: str) -> None:
    assert growing_markdown(growing) == shown


def test_a_break_is_drawn_in_a_table_alone() -> None:
    drawn = "| a | b |\n|---|---|\n| 1:color[ ]{foreground=transparent}2 | `<br>` |"
    assert answer_markdown("| a | b |\n|---|---|\n| 1<br/>2 | `<br>` |") == drawn
    assert summary_markdown("| a | b |\n|---|---|\n| 1<BR>2 | `<br>` |") == drawn
    assert answer_markdown("1<br>2") == "1<br>2"


def test_image_becomes_a_link() -> None:
    assert answer_markdown("![a](http://x/y.png) ![b][ref]") == "[a](http://x/y.png) [b][ref]"


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("[말](https://a.kr/x_y)", r"\[말](https:color[\:]//a.kr/x\_y)"),
        ("![그림](http://b/c.png) ![x][r]", r"\[그림](http:color[\:]//b/c.png) \[x]\[r]"),
        ("www.a.kr, kim@a.kr", r"www:color[\.]a.kr, kim:color[@]a.kr"),
        ("<https://a.kr> <kim@a.kr>", r"\<https:color[\:]//a.kr> \<kim:color[@]a.kr>"),
        ("https://a.kr/http://www.b.kr", r"https:color[\:]//a.kr/http:color[\:]//www:color[\.]b.kr"),
        ("[r]: https://a.kr", r"\[r]: https:color[\:]//a.kr"),
        (":red[말] :smile:", r"\:red\[말] :color[\:]smile:"),
        (r":color[말](https://a.kr)", r"\:color\[말](https:color[\:]//a.kr)"),
        ("`[a](b)` 3~4", r"`[a](b)` 3\~4"),
        ("```\n[a](https://b)\n```", "```\n[a](https://b)\n```"),
        ("(1턴) 가\n(2턴) 나\n\n다", "(1턴) 가  \n(2턴) 나\n\n다"),
        ("1. **Task Overview**\n   - 가\n   - 나", "1. **Task Overview**\n   - 가\n   - 나"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ],
)
def test_a_summary_keeps_its_text_and_addresses_but_no_links(summary: str, shown: str) -> None:
    assert summary_markdown(summary) == shown


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("(58턴) **돈** 3~4\n(60턴) 없음", "[58턴](#turn-58-58) **돈** 3\\~4\n\n[60턴](#turn-60-60) 없음"),
        ("(59턴) 가 (58턴)에서\n질문: 몇 시?", "[59턴](#turn-59-59) 가 (58턴)에서  \n질문: 몇 시?"),
        (" (turns 58-59) budget (turn 60) port", "[turns 58-59](#turn-58-59) budget\n\n[turn 60](#turn-60-60) port"),
        ("(58턴)\n- 가\n- 나\n(60턴) 다", "[58턴](#turn-58-58)\n- 가\n- 나\n\n[60턴](#turn-60-60) 다"),
        (
            "(58턴) 가\n```\n(59턴) 나\n```\n(60턴) 다",
            "[58턴](#turn-58-58) 가\n```\n(59턴) 나\n```\n\n[60턴](#turn-60-60) 다",
        ),
        ("(58턴) 가 (58턴) 나 (61턴) 다", "[58턴](#turn-58-58) 가 (58턴) 나 (61턴) 다"),
        ("요약: (58턴) 가 (59턴) 나", "요약: (58턴) 가 (59턴) 나"),
        ("- (58턴) 가\n- (59턴) 나", "- (58턴) 가\n- (59턴) 나"),
        ("(58) 가 (59) 나", "(58) 가 (59) 나"),
        ("(57턴) 가 (58턴) 나", "(57턴) 가 (58턴) 나"),
    ],
)
def test_a_summary_has_a_paragraph_a_turn(summary: str, shown: str) -> None:
    assert summary_markdown(summary, (58, 59, 60)) == shown


@given(st.lists(st.sampled_from(["(1턴)", "(2턴)", "(turns 1-2)", "**가**", "(나)", "`", "\n", " "])).map("".join))
def test_a_summary_in_paragraphs_loses_nothing(summary: str) -> None:
    shown = re.sub(r"\[([^]]*)\]\(#turn-[\d-]*\)", r"(\1)", summary_markdown(summary, (1, 2)))
    said = summary_markdown(summary)
    assert re.sub(r"[\\\s]", "", shown) == re.sub(r"[\\\s]", "", said)


@example("http://")  # no address yet
@given(st.text(alphabet="ab:/.@[]()<>!w\\h tp\n"))
def test_no_bracket_of_a_summary_begins_a_link(summary: str) -> None:
    shown = re.sub(r"\\.", "", summary_markdown(summary).replace(r":color[\:]", "").replace(":color[@]", ""))
    assert "[" not in re.sub(r":color\[(?=\]|\.)", "", shown)
    assert "<" not in shown
    assert not re.search(r"(https?://|www\.)[^\s<>]", shown)
