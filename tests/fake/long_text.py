"""Texts of 200,000 characters that take a careless program long, by name."""

from __future__ import annotations

import base64
import random
from typing import Final

CHARS: Final = 200_000
_PROSE: Final = (
    "서버 이전은 10월 3일에 하기로 했고 담당자는 김민수입니다. 예산은 320만 원이며 절대 다른 날로 옮기지 마세요. "
    "The migration of api-server-2 starts at 09:30 on 2027-01-17, and Ann Smith pays $1,200 for it. "
)
_UNITS: Final = {
    "prose": _PROSE,
    "prose lines": _PROSE + "\n",
    "quotation marks": "“",
    "corner brackets": "「",
    "straight quotes": '"a ',
    "single quotes": "'a b ",
    "newlines": "\n",
    "lines of a word": "a\n",
    "Windows lines": "가\r\n",
    "spaces": " ",
    "tabs behind a digit": "1\t",
    "numbers": "293,",
    "other numbers": "17.5 GB, ",
    "digits": "7",
    "tags": "< ",
    "our tags": '<m turn="1"><source>',
    "thoughts": "<think>",
    "brackets": "(",
    "square brackets": "[",
    "JSON": '[{"a":',
    "JSON rows": '{"name": "a", "n": 1},\n',
    "backticks": "` ",
    "fences": "```\n",
    "dollars": "$a",
    "bars": "|",
    "table": "| a | 1 |\n",
    "addresses": "https://a.example/b?c=1 ",
    "paths": "/a",
    "mail addresses": "a@b.example ",
    "jamo": "\u1100",
    "Hangul": "가",
    "words": "가나 ",
    "names": "Ann Smith ",
    "list": "a, b and c, ",
    "bullets": "- a\n",
    "quoted lines": "> ",
    "emphasis": "**a ",
    "stars": "*",
    "underscores": "_a",
    "dots": ".",
    "sentences": "a. ",
    "questions": "왜? ",
    "wishes": "하지 마",
    "rules": "앞으로 항상 ",
    "invisible": "\u200b",
    "emoji": "😀",
    "Han": "漢字。",
    "secrets": "token=aB3dE6gH9jK2mN5p ",
    "camel": "camelCaseWord",
}
# The same with another number each time.
_DIFFERENT: Final = {
    "different words": "w{} ",
    "different lines": "{}\n",
    "different rows": "{},x\n",
    "different sentences": "항목은 {}원입니다. ",
    "different quotations": '"이름 {}" ',
    "different wishes": "항목 {} 값은 쓰지 마세요. ",
    "different rules": "Always use item{} please. ",
    "different names": "Mr Abc{} said, ",
    "different keys": "password: {}aB3dE6gH9 ",
}


def long_texts(chars: int = CHARS) -> dict[str, str]:
    """Returns the texts; each begins and ends with a letter, so that nothing of it is stripped."""
    texts = {name: unit * (chars // len(unit)) for name, unit in _UNITS.items()}
    drawn = random.Random(7)  # noqa: S311  # the same text each time, and no secret
    texts["base64"] = base64.b64encode(drawn.randbytes(chars * 3 // 4)).decode()
    for name, unit in _DIFFERENT.items():
        texts[name] = "".join(unit.format(drawn.randrange(10**6)) for _ in range(chars // len(unit)))
    return {name: f"a{text[: chars - 4]}b" for name, text in texts.items()}
