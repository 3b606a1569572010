"""Tells a summary from a copy of its source and from an answer to the chat."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_COPIED_CHARS: Final = 200
_OUR_TAG: Final = re.compile(r"</?(?:m|source)\b[^<>]*+>|\[(?:user|assistant|tool)\]", re.IGNORECASE)
_SPACE: Final = re.compile(r"\s+")

_TURN_MARK: Final = re.compile(r"\(\d+(?:-\d+)?턴\)|\(turns? \d+(?:-\d+)?\)", re.IGNORECASE)
_OPENING: Final = re.compile(
    r"\A\W*(?:네[,.! ]|예[,.! ]|넵|물론|좋습니다|알겠습니다|안녕하세요|반갑습니다|감사합니다|죄송|좋은 질문"
    r"|yes[,.!]|sure|of course|certainly|absolutely|great|good question|hi\b|hello|thanks|thank you"
    r"|i['’]m sorry|sorry)",
    re.IGNORECASE,
)
_CLOSING: Final = re.compile(
    r"보내세요|도와드리|도와드릴|말씀해\s?주세요|알려\s?주세요|물어\s?보세요|문의해|궁금한\s?점"
    r"|수\s?없습니다|드릴까요|되시길|바랍니다"
    r"|let me know|happy to help|hope (?:this|that) helps|feel free|anything else|have a (?:great|nice|good)"
    r"|i can['’]?(?:t|not)\b|would you like|shall i|good luck|you['’]re welcome",
    re.IGNORECASE,
)
_TAIL_CHARS: Final = 100


def is_copy(draft: str, said: Iterable[str]) -> bool:
    """Whether a draft begins with a copy of its source: its first 200 characters stand there, white space aside.

    Shorter drafts are none: a good summary may be one sentence of its source.

    Args:
        draft: The draft. Tags and speakers that it copied along don't hide a copy.
        said: The texts of the messages that it was made from.
    """
    copied = _OUR_TAG.sub("", draft).strip()[:_COPIED_CHARS]
    return len(copied) == _COPIED_CHARS and _squeeze(copied) in _squeeze("".join(said))


def _squeeze(text: str) -> str:
    return _SPACE.sub("", _OUR_TAG.sub("", text))


def is_answer(draft: str) -> bool:
    """Whether a draft answers the chat, or refuses to, where a summary was asked for.

    Taken for one only if three signs meet: it opens as an answer does ("네, …", "Sure, …", "죄송하지만 …"), it ends as
    one does ("… 좋은 하루 보내세요!", "Let me know …", a refusal), and it has no turn mark, which is asked for.
    """
    text = draft.strip()
    return bool(_OPENING.match(text) and _CLOSING.search(text[-_TAIL_CHARS:]) and not _TURN_MARK.search(text))
