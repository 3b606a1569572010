"""Default answers of the scripted server, for requests that no test has scripted."""

from __future__ import annotations

import re
from typing import Any, Final, Literal

from prompt.summary import title_generator
from prompt.summary.in_place_generator import BEGINNING
from tests.fake.openai_reply import Body, Reply, text

Kind = Literal["chat", "summary", "title"]

_SOURCE: Final = re.compile(r"<source>\n(.*)\n</source>", re.DOTALL)
_FACTS: Final = re.compile(r"<facts>\n(.*)\n</facts>", re.DOTALL)
_TARGET: Final = re.compile(r"(\d+)(?:자| characters)")
_MESSAGE: Final = re.compile(r"<m (?:turn=\"(\d+)\" )?from=\"[^\"]+\">(.*?)</m>", re.DOTALL)
_BEGINNINGS: Final = tuple(BEGINNING.values())
_TITLE_RULES: Final = tuple(rules.template.partition("\n")[0] for rules in title_generator.RULES.values())
_TITLE_BEGINNINGS: Final = tuple(parts.template.partition("]")[0] for parts in title_generator.INSTRUCTION.values())
_TURNS: Final = re.compile(r"(?:turns? )?(\d+)(?:-\d+)?턴?")
_OPENING: Final = re.compile(r"[«“](.*?)…?[»”]")
_HANGUL: Final = re.compile(r"[가-힣]")


def kind_of(body: Body) -> Kind:
    """A summary is asked for by a user message with a source, after one system line at most, or behind a draft.

    Or behind the chat itself. A title has rules of its own.
    """
    if _words(body["messages"][0]).startswith(_TITLE_RULES) or asked_in(body).startswith(_TITLE_BEGINNINGS):
        return "title"
    if instruction_at(body) is not None:
        return "summary"
    roles = [message["role"] for message in body["messages"]]
    asked = roles[1:] if roles[0] == "system" else roles
    is_request = asked in (["user"], ["user", "assistant", "user"])
    return "summary" if is_request and _SOURCE.search(_words(_request_in(body))) else "chat"


def instruction_at(body: Body) -> int | None:
    """Where the messages hold the instruction of a request in place, as the last one or before a draft; else None."""
    indexes = range(len(body["messages"]))[-1:-4:-2]
    return next((index for index in indexes if _words(body["messages"][index]).startswith(_BEGINNINGS)), None)


def _request_in(body: Body) -> Body:
    return next(message for message in body["messages"] if message["role"] == "user")


def asked_in(body: Body) -> str:
    """The words of the last user message."""
    return next((_words(message) for message in reversed(body["messages"]) if message["role"] == "user"), "")


def answer_body(body: Body, *, pause_seconds: float = 0.0) -> Reply:
    """Answers a summary with a text of the asked length, a chat with a few sentences, a title with a title."""
    match kind_of(body):
        case "chat":
            answer = _chat(body)
        case "title":
            answer = _title(body)
        case "summary":
            answer = _summarise(_asked_summary(body))
    sent = sum(len(_words(message)) for message in body["messages"]) // 3
    usage = {"prompt_tokens": sent, "completion_tokens": len(answer) // 3, "total_tokens": sent + len(answer) // 3}
    return text(answer, usage=usage, pause_seconds=pause_seconds)


def _asked_summary(body: Body) -> str:
    """The request for a summary with its source; of one in place, the part of the chat that it names, so quoted."""
    index = instruction_at(body)
    if index is None:
        return _words(_request_in(body))
    asked = _words(body["messages"][index])
    turns, opening = _TURNS.search(asked), _OPENING.search(asked)
    turn = int(turns.group(1)) - 1 if turns else 0
    begin = opening.group(1) if opening else ""
    quoted: list[str] = []
    for message in body["messages"][1:index]:
        words = _words(message)
        if quoted or begin in " ".join(words.split()):
            turn += message["role"] == "user"
            quoted.append(f'<m turn="{turn}" from="{message["role"]}">{words}</m>')
    listed = _FACTS.search(asked)
    size = asked.splitlines()[-1]
    return "<source>\n{}\n</source>\n{}\n{}".format("\n".join(quoted), listed.group() if listed else "", size)


def _words(message: Body) -> str:
    content: Any = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(block.get("text", "") for block in content)


def _summarise(prompt: str) -> str:
    """The words of the source up to the asked length, each turn behind its mark, then the facts that are asked for."""
    found = _SOURCE.search(prompt)
    source = found.group(1) if found else prompt
    asked = prompt[found.end() :] if found else ""
    listed = _FACTS.search(asked)
    target = _TARGET.search(asked[listed.end() :] if listed else asked)
    is_korean = bool(_HANGUL.search(source))
    parts, last = [_MESSAGE.sub("", source)], ""
    for turn, words in _MESSAGE.findall(source):
        mark = (f"({turn}턴)" if is_korean else f"(turn {turn})") if turn and turn != last else ""
        parts += [mark, words]
        last = turn
    source = " ".join(" ".join(parts).split())
    chars = int(target.group(1)) if target else len(source) // 3
    facts = listed.group(1).splitlines() if listed else []
    words = _cut(source, chars - len(", ".join(facts)))
    return " ".join(filter(None, [words, ", ".join(fact for fact in facts if fact not in words)]))


def _cut(source: str, chars: int) -> str:
    cut = source[:chars]
    return cut if len(source) <= chars or chars < 2 else cut.rsplit(" ", 1)[0] if " " in cut[chars // 2 :] else cut


def _title(body: Body) -> str:
    parts = _words(body["messages"][0]) + asked_in(body)
    return "시험용 제목" if _HANGUL.search(parts) else "Title of the test"


def _chat(body: Body) -> str:
    question = " ".join(asked_in(body).split())[:120]
    if _HANGUL.search(question):
        return (
            f"질문하신 내용은 다음과 같습니다: {question} 이 답은 시험용 서버가 정해진 규칙으로 만든 것입니다. "
            "실제 모델이라면 여기에서 조건을 하나씩 따져 보고 근거와 함께 결론을 말했을 것입니다. "
            "요약이 줄일 것이 있도록 문장을 몇 개 더 붙입니다. 더 궁금한 점이 있으면 이어서 물어보세요."
        )
    return (
        f"You asked this: {question} This answer was made by the scripted test server from a fixed rule. "
        "A real model would now weigh the conditions one by one and give its conclusion with reasons. "
        "A few more sentences follow so that a summary has something to leave out. Ask on if anything is unclear."
    )
