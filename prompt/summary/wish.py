"""The user's instruction for a regenerated summary, one line of the request before the size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prompt.summary.quote import escape

_LINE: Final[Mapping[str, str]] = {
    "ko": "이 요약에 대한 사용자의 요청입니다. 위의 규칙과 아래의 길이 안에서 따릅니다: “{wish}”\n",
    "en": "This is what the user asks of this summary. Follow it within the rules above and the size below: “{wish}”\n",
}


def quote_wish(wish: str, language: str = "ko") -> str:
    """Renders an instruction as one line with a trailing newline; "" for none.

    Args:
        wish: The user's words.
        language: "ko" for a Korean line around them, else English.
    """
    if not wish:
        return ""
    return _LINE["ko" if language == "ko" else "en"].format(wish=escape(" ".join(wish.split())))
