"""The page's texts on programs and their tokens, with English defaults; `word_program_ko` has the Korean."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ProgramWords:
    """Texts in one language. Names in braces are placeholders that the caller fills in."""

    choose: str = "Programs"
    title: str = "Programs that work with your chats"
    note: str = "A program sends its own token as the API key. It then sees your chats and can go on with them."
    address: str = "Its base URL is `{address}`."
    unused: str = "Made on {made} · not used yet"
    used: str = "Made on {made} · last used on {used}"
    without_tools: str = "without tools"
    some_tools: str = "tools: {tools}"
    withdraw: str = "Withdraw"
    withdraw_question: str = "“{name}” won't be let in any more, from its next request on. Its chats stay here."
    new: str = "New program"
    name: str = "Name"
    tools: str = "May use the server's tools"
    make: str = "Make a token"
    made: str = "The token of “{name}”. Copy it now: it can't be shown again."
    copy: str = "Copy the token"
