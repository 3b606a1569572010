"""The list of facts that a summary must retain; between the source and the size in the request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from prompt.summary.quote import escape

PROMPT_VERSION: Final = "facts-2"

_INTRODUCTION: Final[Mapping[str, str]] = {
    "ko": "다음은 위에서 뽑은 것이며 역시 자료입니다. 그중 지금도 맞는 것을 자리가 있는 대로 앞의 것부터 요약에 넣습니다. 규칙과 금지는 뜻 그대로, 나머지는 글자 그대로.",
    "en": "This was taken from the source above and is material, too. Put what still holds of it into the summary, the first first, as far as there is room: rules and prohibitions by their meaning, the rest letter for letter.",
}


def list_facts(facts: Sequence[str], language: str = "ko") -> str:
    """Renders one fact a line, with instructions and a trailing newline; "" without facts.

    Args:
        facts: The facts in their original wording, most important first.
        language: "ko" for Korean instructions, else English.
    """
    if not facts:
        return ""
    lines = "\n".join(escape(" ".join(fact.split())) for fact in facts)
    return f"{_INTRODUCTION['ko' if language == 'ko' else 'en']}\n<facts>\n{lines}\n</facts>\n"
