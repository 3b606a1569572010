"""Reads all chats back, to count what isn't there, or not as its user saw it."""

from __future__ import annotations

from collections.abc import Iterable

import httpx2

from bench.load.chat import HeldChat


async def count_lost(chats: Iterable[HeldChat], port: int) -> int:
    """Returns how many turns are missing, other than they were shown, or there without having been asked for.

    Args:
        chats: What the users know.
        port: The server that is asked; any has them all.
    """
    lost = 0
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for chat in chats:
            kept: list[tuple[str, str]] = []
            for session_id in chat.session_ids:
                answer = await client.get(
                    f"/sessions/{session_id}/turns?last=1000", headers={"Authorization": f"Bearer {chat.token}"}
                )
                answer.raise_for_status()
                kept += [(turn["user_text"], turn["answer_text"]) for turn in answer.json()["turns"]]
            lost += abs(len(kept) - len(chat.said)) + sum(
                question != asked or not text.endswith(ending)
                for (question, text), (asked, ending) in zip(kept, chat.said, strict=False)
            )
    return lost
