"""Quotes messages, facts and the user's instruction inside a prompt, in tags that quoted text can't imitate."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

BEFORE_CHARS: Final = 600
AFTER_CHARS: Final = 2_000
LANGUAGE_NAMES: Final[Mapping[str, str]] = {
    "ko": "Korean (한국어)",
    "en": "English",
    "ja": "Japanese (日本語)",
    "zh": "Chinese (中文)",
    "cyrillic": "the user's language, in Cyrillic script",
    "arabic": "the user's language, in Arabic script",
}
USERS_LANGUAGE: Final = "the language of the user's own messages"
_SPEAKERS: Final = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "previous summary"),
)
_OUR_TAG: Final = re.compile(r"<(?=(?:\s*/\s*)?(?:m|source|before|after|summary|facts|kept)\b)", re.IGNORECASE)

_FACTS: Final[Mapping[str, str]] = {
    "ko": "다음은 위에서 뽑은 사실이며 역시 자료입니다. 지금도 맞는 것은 요약에 넣으세요. 규칙과 금지는 뜻 그대로, 나머지는 글자 그대로 씁니다.",
    "en": "These facts were taken from the conversation above and are material, too. Put those that still hold into the summary: rules and prohibitions by their meaning, the rest exactly as written.",
}
_INSTRUCTION: Final[Mapping[str, str]] = {
    "ko": "이 요약에 대한 사용자의 요청입니다. 위의 규칙과 아래의 길이 안에서 따릅니다: “{instruction}”\n",
    "en": "This is what the user asks of this summary. Follow it within the rules above and the length below: “{instruction}”\n",
}
# For a source that names days by when they were said: the day of each turn.
_DAYS_RULE: Final[Mapping[str, str]] = {
    "ko": "날짜: {days}. 어제, 내일, 다음 주 월요일처럼 말한 날은 그 말을 한 턴의 날짜에서 세어 날짜와 요일로 씁니다: 11월 30일(월).\n",
    "en": "Dates: {days}. Write a day that was called yesterday, tomorrow or next Monday as a date with its weekday, counted from the date of its turn: 30 November (Mon).\n",
}
_TURNS: Final[Mapping[str, str]] = {"ko": "{turns}턴 {day}", "en": "turn {turns} {day}"}
# For a source with long results of tools.
RESULTS_RULE: Final[Mapping[str, str]] = {
    "ko": "도구 호출과 결과는 목록을 옮기지 말고, 무엇을 찾았거나 바꾸었고 그래서 무엇이 정해졌는지 씁니다. 뒤에 다시 쓸 만한 식별자와 경로는 글자 그대로 남깁니다.\n",
    "en": "Of tool calls and their results, write what was found or changed and what follows from it, not the listing. Ids and paths that a later step may need stay exactly as written.\n",
}
# Of the words between a source and the size of its summary, and of the names of languages.
FACTS_VERSION: Final = "facts-6"


def escape(text: str) -> str:
    """Escapes each `<` that opens one of the prompt's tags, so that a text can't end its quote or forge a speaker."""
    return _OUR_TAG.sub("&lt;", text)


def quote_messages(messages: Sequence[AnyMessage], turns: Sequence[int] = ()) -> str:
    """Renders each message as `<m turn="2" from="user">…</m>`, oldest first; a `SystemMessage` is a previous summary.

    A turn of 0 isn't shown; without `turns`, they are counted from 1.
    """
    numbers = turns or count_turns(messages)
    return "\n".join(_quote(message, turn) for message, turn in zip(messages, numbers, strict=True))


def quote_before(before: str) -> str:
    """Renders the end of the text just before the source, with a trailing newline; "" for an empty text."""
    text = before.strip()
    if len(text) > BEFORE_CHARS:
        text = "…" + text[1 - BEFORE_CHARS :]
    return f"<before>\n{escape(text)}\n</before>\n" if text else ""


def quote_after(texts: Sequence[str], most_chars: int = AFTER_CHARS) -> str:
    """Renders as much of what stands behind the source as has room, with a trailing newline; "" for nothing."""
    text = escape("\n".join(texts)).strip()
    if len(text) > most_chars:
        text = text[: most_chars - 1] + "…"
    return f"<after>\n{text}\n</after>\n" if text else ""


def list_facts(facts: Sequence[str], language: str = "ko") -> str:
    """Renders one fact a line, most important first, with instructions and a trailing newline; "" without facts."""
    if not facts:
        return ""
    lines = "\n".join(escape(" ".join(fact.split())) for fact in facts)
    return f"{_FACTS['ko' if language == 'ko' else 'en']}\n<facts>\n{lines}\n</facts>\n"


def list_kept(lines: Sequence[str]) -> str:
    """Renders what is kept of the user's words, one line each, with a trailing newline; "" without lines."""
    return (
        "".join(["<kept>\n", *(f"{escape(' '.join(line.split()))}\n" for line in lines), "</kept>\n"]) if lines else ""
    )


def list_days(days: Mapping[str, Sequence[int]], language: str = "ko") -> str:
    """Renders the turns of each day, with how relative days are written, in one line with a trailing newline."""
    name = "ko" if language == "ko" else "en"
    ranges = ((day, "-".join(dict.fromkeys((str(turns[0]), str(turns[-1]))))) for day, turns in days.items())
    told = ", ".join(_TURNS[name].format(turns=turns, day=day) for day, turns in ranges)
    return _DAYS_RULE[name].format(days=told) if told else ""


def quote_instruction(instruction: str, language: str = "ko") -> str:
    """Renders the user's instruction as one line with a trailing newline; "" for none."""
    if not instruction:
        return ""
    return _INSTRUCTION["ko" if language == "ko" else "en"].format(instruction=escape(" ".join(instruction.split())))


def count_turns(messages: Iterable[AnyMessage]) -> list[int]:
    """Returns the turn of each message, with turn 1 at the first user message; 0 for a previous summary."""
    turns: list[int] = []
    turn = 0
    for message in messages:
        turn += isinstance(message, HumanMessage)
        turns.append(0 if isinstance(message, SystemMessage) else max(1, turn))
    return turns


def name_language(language: str) -> str:
    """Returns the name of a language ("ko", "en", or the script of the user's own words) for an English prompt."""
    return LANGUAGE_NAMES.get(language, USERS_LANGUAGE)


def _quote(message: AnyMessage, turn: int) -> str:
    speaker = next((name for kind, name in _SPEAKERS if isinstance(message, kind)), message.type)
    calls = [f"{call['name']}({call['args']})" for call in message.tool_calls] if isinstance(message, AIMessage) else []
    parts = [message.text, *(f"(tool call: {call})" for call in calls)]
    text = escape("\n".join(part for part in parts if part))
    number = f'turn="{turn}" ' if turn else ""
    return f'<m {number}from="{speaker}">{text}</m>'
