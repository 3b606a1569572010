"""The message after a rejected draft: names the fault and asks for a correction of the draft in view."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Final

from prompt.summary.quote import escape, name_language

# Replaces an empty draft: providers refuse an empty message.
EMPTY_DRAFT: Final = "…"

_KOREAN: Final[Mapping[str, str]] = {
    "empty": "답이 비어 있습니다. 규칙대로 요약을 쓰세요. 공백 포함 ${aim}자쯤, 많아도 ${most}자입니다.",
    "language": "같은 내용을 한국어로 옮기세요. 이름, 숫자, 코드는 그대로 둡니다. 요약만 씁니다.",
    "copy": "그것은 요약이 아니라 대화를 옮겨 적은 것입니다. 규칙대로 많아도 ${most}자의 요약만 쓰세요.",
    "answer": "그것은 요약이 아니라 대화에 대한 답입니다. 답하지 말고 규칙대로 많아도 ${most}자의 요약만 쓰세요.",
    "markup": "요청의 태그(<m>, <source>, <facts>)를 옮겨 적었습니다. 태그 없이 규칙대로 많아도 ${most}자의 요약만 쓰세요.",
    "repetition": "같은 말을 되풀이했습니다. 되풀이하지 말고 규칙대로 많아도 ${most}자의 요약만 쓰세요.",
    "cut": "글이 길이 한도에서 끊겼습니다. 더 짧게, 많아도 ${most}자로, 끝까지 다시 쓰세요. 규칙, 금지, 결정, 마지막 질문은 남깁니다. 요약만 씁니다.",
    "long": "방금 요약은 ${chars}자로 ${over}자 깁니다. 새로 쓰지 말고 위 요약에서 덜어 내어 ${most}자 이하로 줄이세요. 덜 중요한 세부, 제안과 추정, 끝난 일 순으로 뺍니다. 규칙, 금지, 결정, 마지막 질문은 남기고, 남는 제안과 추정의 표시도 지우지 않습니다. 요약만 씁니다.",
    "short": "방금 요약은 ${chars}자입니다. ${aim}자까지 쓸 수 있습니다. 빠진 규칙, 결정, 이름, 숫자를 넣어 다시 쓰세요. 요약만 씁니다.",
    "lacking": "방금 요약에는 사용자가 말한 것 여럿이 빠졌습니다. 나머지는 그대로 두고, 아래에서 지금도 맞는 것을 그 턴에 넣어(규칙은 뜻만) 많아도 ${most}자로 다시 쓰세요. 요약만 씁니다.",
    "invented": "방금 요약에는 대화에 없는 것이나 사용자의 말과 반대인 것이 있습니다. 나머지는 그대로 두고, 아래 것만 대화에 있는 대로 고치거나, 대화에 없으면 빼서 많아도 ${most}자로 다시 쓰세요. 요약만 씁니다.",
    "missing": "빠진 것: ${missing}.",
    "added": "대화에 없는 것: ${invented}.",
}
_ENGLISH: Final[Mapping[str, str]] = {
    "empty": "The answer is empty. Write the summary by the rules: about $aim characters, $most at most.",
    "language": "Say the same in $language. Leave names, numbers and code as they are. Write only the summary.",
    "copy": "That is not a summary but a copy of the conversation. Follow the rules: only the summary, $most characters at most.",
    "answer": "That is not a summary but an answer to the conversation. Don't answer it. Follow the rules: only the summary, $most characters at most.",
    "markup": "That contains tags of the request (<m>, <source>, <facts>). Follow the rules: only the summary, without tags, $most characters at most.",
    "repetition": "That says the same thing over and over. Follow the rules: only the summary, without repetition, $most characters at most.",
    "cut": "The text broke off at its length limit. Write it again to the end, but shorter: $most characters at most. Keep rules, prohibitions, decisions and the question at the end. Write only the summary.",
    "long": "That summary has $chars characters, $over too many. Don't write a new one: cut the text above to $most characters at most. Cut minor details first, then suggestions and guesses, then what is over and done with. Keep rules, prohibitions, decisions and the question at the end, and any mark of a suggestion or guess that stays. Write only the summary.",
    "short": "That summary has $chars characters; it may have $aim. Write it again with the rules, decisions, names and numbers that it lacks. Write only the summary.",
    "lacking": "That summary lacks much of what the user said. Leave the rest as it is and add what still holds of the following to its turn, as written: $most characters at most. Write only the summary.",
    "invented": "That summary says something that the conversation doesn't, or the opposite of it. Leave the rest as it is; correct the following by the conversation, or leave it out if it isn't there: $most characters at most. Write only the summary.",
    "missing": "Missing: $missing.",
    "added": "Not in the conversation: $invented.",
}


def get_prompt(
    kind: str,
    *,
    chars: int,
    aim: int,
    most: int,
    language: str = "ko",
    missing: Sequence[str] = (),
    invented: Sequence[str] = (),
) -> str:
    """Renders the request to correct a draft of `chars` characters."""
    texts = _KOREAN if language == "ko" else _ENGLISH
    given = {
        "chars": chars,
        "over": max(0, chars - most),
        "aim": aim,
        "most": most,
        "language": name_language(language),
        "missing": ", ".join(escape(name) for name in missing),
        "invented": ", ".join(escape(name) for name in invented),
    }
    chosen = [texts[kind], *([texts["missing"]] if missing else []), *([texts["added"]] if invented else [])]
    return " ".join(Template(text).substitute(given) for text in chosen)
