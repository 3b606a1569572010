"""Recognises what a client asks beside its chats: a title, tags, follow-up questions, a commit message."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from graph.value.client import ClientRequest

# What makes a generator is its form, in any client: it says at once what is to be made, of a chat or a diff, how short
# and plain that must be, and mostly quotes. People ask for titles and commit messages, too, but don't forbid as much.
_FRONT_CHARS: Final = 400
_NEAR_CHARS: Final = 25
_DEMAND_CHARS: Final = 2_500
_SYSTEM_CHARS: Final = 6_000
_FEW: Final = 2
_SEVERAL: Final = 3

_MAKE: Final = r"\b(?:generat|creat|writ|provid|giv|suggest|mak|summari[sz]|extract|repl[yi]|return|rephras)\w{0,4}\b"
_ASKS: Final = re.compile(
    rf"(?is){_MAKE}.{{0,80}}?\b(?:titles?|topics?|tags|names?|follow[- ]?ups?|search quer(?:y|ies)|enhanced version)\b"
    r"|\b(?:title|topic|tag)s?[- ]generat|\b(?:naming an?|name th(?:is|e)) (?:\w+ )?(?:conv|chat|sess|thread)"
    r"|(?:제목|주제|태그|후속 질문).{0,30}?(?:생성|만들|만드|작성|지어|지으|짓|뽑|추천|제안|요약)"
    r"|(?:生成|总结|總結|概括|返回|命名|提取).{0,40}?(?:标题|標題|主题|主題|标签|名称)|タイトル.{0,20}?(?:生成|作成)"
)
_TITLE: Final = re.compile(r"(?i)title|naming|name th|제목|标题|標題|タイトル")
_ASKS_COMMIT: Final = re.compile(
    rf"(?is){_MAKE}.{{0,120}}?\bcommit messages?\b|\bcommit message generat|커밋 ?메시지.{{0,30}}?(?:생성|작성|만들|써)"
    r"|(?:生成|编写|撰写).{0,40}?提交(?:信息|消息)"
)
_OF_CHAT: Final = re.compile(
    r"(?i)\b(?:conversations?|chats?|threads?|sessions?|dialogue|transcript|title[- ]generat\w+|this prompt)\b|这句话"
    r"|\b(?:first|user(?:'s)?|this|the|following) (?:user )?(?:message|question)|대화|채팅|세션|对话|對話|会话|聊天"
)
_OF_ELSE: Final = re.compile(
    r"(?i)\b(?:article|video|youtube|blog|post|essay|stor(?:y|ie)|novel|book|film|movie|song|podcast|paper|e-?mail|seo"
    r"|product|ticket|report|slide|poem|recipe)s?\b|기사|영상|유튜브|블로그|논문|소설|에세이|보고서|상품|文章|视频"
)
# Duties of a system message towards people.
_TALKS: Final = re.compile(
    r"(?i)(?<!not )(?<!never )(?<!n't )\b(?:answer|assist|teach|tutor|explain|solve|translate|discuss)(?:s|ing)?\b"
    r"|\b(?:each|every|all) (?:of your )?(?:answer|reply|response|replies)|\b(?:answer|response):|답하|답해|답변하|대답"
)
# A generator's first words; people begin otherwise, or speak of themselves.
_BEGINS: Final = re.compile(
    rf"(?i)[\s#*]*(?:(?:task|your (?:task|job)(?: is to)?)\b[:\s]*)?(?:please\s+)?(?:{_MAKE}|you(?:'re| are| will)\b"
    r"|based on\b|given\b|analy[sz]e\b|name th|read\b|as an?\b|(?:\w+ )?(?:\w+ )?commit message generator"
    r"|다음|아래|위|대화|이 대화|사용자|주어진|당신은|너는|请|你|使用|根据|以下|以上)"
)
_PERSON: Final = re.compile(r"(?i)\b(?:i|i'[a-z]{1,2}|my|me|hi)\b|\b(?:내|제|나의|내가|제가|우리) |我的|我想|帮我")
_MARKS: Final = {
    "only": re.compile(
        r"(?i)\b(?:only|just|except)\b[^.\n]{0,60}?\b(?:title|topic|name|tags|message|json|fields|prompt|quer|question)"
        r"|\b(?:title|name|message)(?: text)? (?:only|itself)\b|entire text you return|(?:title|name is|question):\s?\Z"
        r"|(?:제목|주제|태그|이름|메시지|질문)만|출력은|(?:只|直接)[^。\n]{0,8}?(?:返回|输出|回复)"
    ),
    "nothing else": re.compile(
        r"(?i)\bnothing else|\bno (?:other|additional|extra|explan|preamble|comment|conversation)|\bskip preamble"
        r"|\bwithout (?:any |additional )?(?:explan|preamble|comment|lead-in|additional)"
        r"|\b(?:not|n't|never) (?:explain|include)|설명.{0,5}?(?:없|하지|금지)|不要解释|不需要其他|不要多余"
    ),
    "short": re.compile(
        r"(?i)\d[- ]?(?:words?|char)|\b(?:two|three|four|five|six|ten) words?\b|\bwords? or less|-word-or-less"
        r"|\b(?:one|single)[- ]line|\d\s?(?:글?자|단어)|[\d四五十]\s?个?[字词]"
    ),
    "plain": re.compile(
        r"(?i)\b(?:no|not|n't|without|omit\w{0,4}|avoid|remove|never)\b[^.\n]{0,99}?(?:quot|punctuat|markdown|backtick)"
        r"|따옴표|문장 ?부호|标点|引号"
    ),
}
_QUOTE: Final = re.compile(
    r"(?im)<(?:chat_history|chat|conversation|history|messages?|transcript|session|content|user|input|query)>"
    r"|^[#*\[|> ]{0,5}(?:user(?: message)?|human|assistant|ai|(?:conversation|chat)(?: history)?|message|question"
    r"|사용자(?: 메시지)?|어시스턴트|대화|메시지|질문|用户|对话)[\]* ]{0,3}(?:[:：]|\]$)"
    r"|\bhere(?:'s| is) the (?:conversation|message)"
)
_DIFF: Final = re.compile(r"(?m)^(?:diff --git |@@ -\d|--- a/|\+\+\+ b/|```diff)|<diff>")
# Open WebUI's, whatever they ask for.
_TASK: Final = re.compile(
    r"(?s)\s*(?:### Task:.*<chat_history>"
    r"|Your task is to reflect the speaker's likely facial expression through a fitting emoji)"
)
_SUGGESTION: Final = re.compile(r"\s*\[SUGGESTION MODE:")  # Qwen Code's, behind all of the chat


class _Demand(NamedTuple):
    """What a text asks for at its beginning, and the kinds of restrictions that it makes."""

    is_for_chat: bool = False
    is_for_commit: bool = False
    marks: frozenset[str] = frozenset()


def is_side_request(request: ClientRequest) -> bool:
    """Returns True if a request is answered without memory: on request, or if it is a client's own, by its form.

    Regardless of whether the chat is known: Open WebUI requests a title before the chat's first request.
    """
    last = request.messages[-1].text if request.messages else ""
    if request.is_plain or request.task.strip() or _SUGGESTION.match(last):
        return True
    if request.options.tools or request.previous or any(message.role != "user" for message in request.messages):
        return False
    asked = "\n\n".join(message.text for message in request.messages)
    by_user = _demand_of_user(asked)
    return _is_by_system(request.options.system or "", by_user, asked) or _is_by_user(by_user, asked)


def _is_by_system(system: str, by_user: _Demand, asked: str) -> bool:
    is_chat = len(system) > _SYSTEM_CHARS or _TALKS.search(system[:_FRONT_CHARS])
    demand = _Demand() if is_chat else _demand_of(system)
    both = demand.marks | by_user.marks
    if demand.is_for_commit:
        return _DIFF.search(asked) is not None and (len(demand.marks) >= _FEW or len(both) >= _SEVERAL)
    count = len(both) + (_QUOTE.search(asked) is not None) if by_user.is_for_chat else len(demand.marks)
    return demand.is_for_chat and count >= _FEW


def _is_by_user(demand: _Demand, asked: str) -> bool:
    if _TASK.match(asked):
        return True
    if demand.is_for_commit:
        return _DIFF.search(asked) is not None and len(demand.marks) >= _SEVERAL
    return demand.is_for_chat and "\n" in asked and len(demand.marks) >= (_FEW if _QUOTE.search(asked) else _SEVERAL)


def _demand_of_user(asked: str) -> _Demand:
    quote, last = _QUOTE.search(asked) or _DIFF.search(asked), asked[-_FRONT_CHARS:].rpartition("\n\n")[2]
    own = asked[: min(quote.start() if quote else _DEMAND_CHARS, _DEMAND_CHARS)].strip() or last
    is_person = not _BEGINS.match(own) or _PERSON.search(own.partition("\n\n")[0])
    return _Demand() if is_person else _demand_of(f"{own}\n{last}")


def _demand_of(text: str) -> _Demand:
    front = text[:_FRONT_CHARS]
    asks, is_for_commit = _ASKS.search(front), _ASKS_COMMIT.search(front) is not None
    marks = frozenset(name for name, mark in _MARKS.items() if mark.search(text))
    if is_for_commit or asks is None or _OF_ELSE.search(front[: asks.end() + _NEAR_CHARS]):
        return _Demand(is_for_commit=is_for_commit, marks=marks)
    is_strict = "only" in marks or _TITLE.search(asks[0]) is not None
    return _Demand(is_for_chat=is_strict and _OF_CHAT.search(text) is not None, marks=marks)
