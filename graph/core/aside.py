"""Tells a front end's own requests, for a title or tags of a chat, from what its user says in that chat."""

from __future__ import annotations

import re
from typing import Final

from graph.client import ClientRequest

# The fixed words of known front ends. A user who quotes them has said something before, or puts words of his own first.
_TEMPLATES: Final = tuple(
    re.compile(pattern, re.DOTALL | re.IGNORECASE)
    for pattern in (
        r"\A\s*### Task:.*<chat_history>",  # Open WebUI
        r"\A\s*Provide a concise, 5-word-or-less title for the conversation\b.*\n\nConversation:\nUser: ",  # LibreChat
        r"\A\s*Please generate a concise, 5-word-or-less title for the conversation\b",  # LibreChat
        r"\A\s*Analyze this conversation and provide:.*5 words or less, no punctuation",  # LibreChat
        r"\A\s*Given the following.{0,40}please reply with a title for the chat that is 3-4 words",  # Continue
    )
)


def is_aside(request: ClientRequest, *, is_hinted: bool) -> bool:
    """Whether a request is answered without memory: it says so, or a front end asks for a title or tags of its chat.

    Whether the chat is known doesn't count: Open WebUI asks for its title before it sends the chat's first request.

    Args:
        request: The request.
        is_hinted: Whether it has the client's own id of a chat.
    """
    if request.is_plain or request.task.strip():
        return True
    roles = [message.role for message in request.messages]
    return is_hinted and roles == ["user"] and any(form.search(request.messages[0].text) for form in _TEMPLATES)
