"""Leaves out of a user's message what others wrote: letters, logs and documents that he pasted or quotes."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

_RULE: Final = re.compile(r"[^\S\n]{0,8}(?:-{3,80}|={3,80}|_{3,80}|\*{3,80}|~{3,80}|[—–─━]{2,80})[^\S\n]{0,8}")
# From here on a mail program quotes.
_FORWARDED: Final = re.compile(
    r"\s{0,8}-{2,20}\s?(?:original message|forwarded message|원본\s?(?:메시지|메일)|전달된\s?(?:메시지|메일))"
    r"|(?:보낸\s?사람|발신(?:인|자)?|받는\s?사람|From|Sent|To|Subject)\s?:\s\S|On\s[^\n]{5,80}\swrote:\s*$",
    re.IGNORECASE,
)
_LETTER_LIST: Final = (
    r"(?:이?메일|편지|서신|문자|카톡|쪽지|공지|기사|답장|회신|답변서|메시지|보고서|회의록|계약서|약관|문서|전문|원문|안내문|공문|통지서|통보|후기|댓글|글|내용"
    r"|대화|게시물|안내|설명서|지침서|판결문|고지서)"
)
_LOG_LIST: Final = r"(?:로그|출력|오류|에러|코드|스크립트|결과|설정|쿼리|스택|트레이스)"
_IS: Final = (
    r"(?:\s?(?:전문|원문|내용|본문))?(?:이에요|예요|입니다|이야|야|임|인데요?|이래요"
    r"|은\s?다음과\s?같[가-힣]{1,4}|이\s?왔(?:어요|습니다)|을\s?(?:붙여요|붙입니다|옮겨요|첨부해요|첨부합니다))?"
)
_LETTER: Final = (
    r"(?:e-?mails?|letter|messages?|text|note|article|thread|reply|answer|contract|clause|post|notice|ticket|report|minutes|chat|document|memo"
    r"|review|announcement|policy|terms|transcript|comment|newsletter|statement|paragraph|excerpt|passage|conversation|description|prompt)"
)
_LOG: Final = (
    r"(?:logs?|traces?|traceback|stack(?:\s?trace)?|output|errors?|config|code|script|diff|dump|results?|query|listing)"
)
# What the user himself has to say: "다음은 제 규칙입니다:".
_OWN: Final = re.compile(
    r"규칙|조건|요구|요청|부탁|질문|원칙|선호|할\s?일|제약|기준|결정|계획|의견"
    r"|(?i:\b(?:requirements?|rules?|constraints?|conditions?|preferences?|wishes|questions?|instructions?|to-?dos?|tasks?|plans?|decisions?"
    r"|notes?\sof\smine|thoughts?)\b)"
)
_FROM_OTHERS: Final = re.compile(
    r"(?:이|가|에서|께서)\s?(?:보낸|온|쓴|준|작성한)|받은|온\s|(?i:\b(?:from|by|sent|wrote|pasted|forwarded)\b)"
)
_INTRODUCES: Final = re.compile(
    rf"(?:(?<![가-힣])(?:[가-힣]{{0,6}}?)(?P<letter>{_LETTER_LIST})|(?P<log>{_LOG_LIST})){_IS}\s?[:：](?=\s|$)"
    r"|(?<![가-힣])(?:다음|아래)[은는이]?\s[^:：\n]{0,60}(?:입니다|이에요|예요|이야|임|같아요|같습니다)\s?[:：](?=\s|$)"
    r"|(?:라고|다고)\s(?:왔|썼|적|보냈|답했)[가-힣]{1,5}\s?[:：](?=\s|$)"
    r"|(?i:\b(?:pasted|copied|forwarded|quoted)\b[^:\n]{0,40}(?::|\bbelow[.:]?|$)(?=\s|$)"
    rf"|\bhere(?:['’]s|\sis|\sare|\scomes?)\s[^:\n]{{0,60}}?\b(?:(?:{_LETTER})|(?P<logs>{_LOG}))\b[^:\n]{{0,60}}:(?=\s|$)"
    rf"|^(?:the|their|his|her|this|my|our)?\s?(?:\w+['’]?s?\s){{0,3}}(?:{_LETTER}|(?P<logs2>{_LOG}))(?:\s(?:says|reads|said|below|is|from\s[^:\n]{{1,40}}))?\s?:(?=\s|$)"
    r"|\b(?:wrote|writes|replied|answered|sent|said|says)(?:\s(?:this|me|us|back|to\s\w+|the\sfollowing)){0,3}\s?:(?=\s|$))"
)
_GREETING: Final = re.compile(
    r"\s{0,4}(?:안녕하세요|안녕하십니까|존경하는|[가-힣]{2,10}\s?(?:님께|귀하|고객님)|(?i:dear|to\swhom|good\s(?:morning|afternoon|evening)|hello|hi)\b)"
)
_ADDRESSED: Final = re.compile(
    r"고객님|귀하|님께|회원님|(?i:^\s{0,4}(?:dear|to\swhom)\b|^\s{0,4}(?:hi|hello)\s[A-Z][a-z]+,)"
)
_SIGNED: Final = re.compile(
    r"\s{0,4}(?:[^\n]{0,40}\s(?:드림|올림|배상)\.?|(?i:(?:kind|best|warm)?\s?regards|sincerely|yours(?:\s\w+)?|best(?:\swishes)?|cheers|thanks|thank\syou))[,.!]?\s{0,4}"
)
_SENTENCE: Final = re.compile(r"[.!?。？]|[요다줘]\s*$")
_LOGS: Final = ("log", "logs", "logs2")
_NAME_CHARS: Final = 40
_INLINE_CHARS: Final = 30
_ASKS: Final = re.compile(
    r"[?？]\s*$|(?:이|위|저|해당)\s(?:메일|편지|글|문자|로그|내용|기사|문서)[가-힣]{0,3}\s[^\n]{0,40}(?:줘|주세요|죠|할게요)"
    r"|(?i:\b(?:reply|answer|respond)\sto\s(?:this|them|him|her|it)\b|\b(?:what|how)\s(?:do|should|can)\sI\b|\b(?:this|that|the)\s(?:mail|e-?mail|letter|log|text)\sabove\b)"
)
# Each stops at the next opening mark, so that many of them take no time.
_QUOTED: Final = re.compile(
    r"[\"“]\s?(?:안녕하세요|안녕하십니까|(?i:dear|hello|hi)\b)[^\"“”]{0,4000}[\"”]"
    r"|[\"“'‘](?=[^\s\"“”'‘’]{1,40}\s)[^\n\"“”'‘’]{10,400}[\"”'’]\s?(?:이?라고|라며|라는)\s"
    r"(?!써|쓰|적어|불러|표기|부르|답|말해\s?(?:주|줘)|해\s?(?:주|줘))"
    r"|(?i:\b(?:said|says|wrote|writes|reads|told\s(?:me|us)|replied|states)\b[^\"“\n]{0,20})[\"“][^\n\"“”]{10,600}[\"”]"
)


def without_pasted(text: str) -> str:
    """Returns a message without what is pasted between rules of dashes, behind an introduction, or as a signed letter.

    A passage behind "the mail:" reaches to its signature, or to the paragraph that asks about it; one behind "the log:"
    to the next empty line. Words in quotation marks that somebody else is said to have said are left out as well.
    """
    return "\n".join(_own(_QUOTED.sub(" ", text).split("\n")))


def _own(lines: Sequence[str]) -> Iterator[str]:
    index, count = 0, len(lines)
    signed = [at for at, line in enumerate(lines) if _SIGNED.fullmatch(line)]
    while index < count:
        line = lines[index]
        if _FORWARDED.match(line):
            return
        if _RULE.fullmatch(line):
            index = 1 + next((at for at in range(index + 1, count) if _RULE.fullmatch(lines[at])), index)
            continue
        own, is_log = _before_passage(line)
        # Only behind an introduction: for each of many empty lines it would cost their square.
        begin = index if own is None else _next_written(lines, index + 1)
        is_inline = own is not None and own != line.rstrip()
        if own is not None and (is_inline or (begin < count and not _RULE.fullmatch(lines[begin]))):
            yield own
            first = index if is_inline else begin
            index = _end_of_letter(lines, signed, first) or _end_of_passage(lines, first, is_log=is_log)
        elif _GREETING.match(line) and (index or _ADDRESSED.search(line)):
            end = _end_of_letter(lines, signed, index)
            if not end:
                yield line
            index = end or index + 1
        else:
            yield line
            index += 1


def _before_passage(line: str) -> tuple[str | None, bool]:
    """Returns what a line says before a passage, None if it introduces none; and whether the passage is a log."""
    found = _INTRODUCES.search(line)
    if found is None or (_OWN.search(line[: found.end()]) and not _FROM_OTHERS.search(line[: found.end()])):
        return None, False
    behind = line[found.end() :].strip()
    own = line[: found.end()] if behind else line.rstrip()
    return (own if not behind or len(behind) >= _INLINE_CHARS else None), any(found[name] for name in _LOGS)


def _end_of_passage(lines: Sequence[str], begin: int, *, is_log: bool) -> int:
    """Returns the line of the paragraph behind a passage."""
    at = _next_empty(lines, begin)
    while (start := _next_written(lines, at)) < len(lines):
        at = _next_empty(lines, start)
        if is_log or _ASKS.search(lines[start]) or _ASKS.search(lines[at - 1]):
            return start
    return len(lines)


def _end_of_letter(lines: Sequence[str], signed: Sequence[int], begin: int) -> int:
    """Returns the line behind a letter's signature and the name below it; 0 without one."""
    place = bisect_right(signed, begin)
    if place == len(signed):
        return 0
    end = signed[place] + 1
    name = _next_written(lines, end)
    is_name = name <= end + 1 and name < len(lines) and len(lines[name]) <= _NAME_CHARS
    return name + 1 if is_name and not _SENTENCE.search(lines[name]) else end


def _next_written(lines: Sequence[str], begin: int) -> int:
    return next((at for at in range(begin, len(lines)) if lines[at].strip()), len(lines))


def _next_empty(lines: Sequence[str], begin: int) -> int:
    return next((at for at in range(begin, len(lines)) if not lines[at].strip()), len(lines))
