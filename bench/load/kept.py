"""Reads all chats back, to count what isn't there, or not as its user saw it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import httpx2

from bench.load.chat import HeldChat

Turns = Sequence[tuple[str, str]]


async def count_lost(chats: Iterable[HeldChat], port: int) -> int:
    """Returns how many turns `lost_of` finds in all chats.

    Args:
        chats: What the users know.
        port: The server that is asked; any has them all.
    """
    lost = 0
    async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for chat in chats:
            sessions: list[Turns] = []
            for session_id in chat.session_ids:
                answer = await client.get(
                    f"/sessions/{session_id}/turns?last=1000", headers={"Authorization": f"Bearer {chat.token}"}
                )
                answer.raise_for_status()
                sessions.append([(turn["user_text"], turn["answer_text"]) for turn in answer.json()["turns"]])
            lost += lost_of(chat, sessions)
    return lost


def lost_of(chat: HeldChat, sessions: Sequence[Turns]) -> int:
    """Returns how many turns are missing, other than they were shown, doubled, or there without having been asked for.

    A turn that failed may be there or not, and a chat that goes on without it is a branch: so turns aren't compared by
    their places, and only a chat without an error has to be one session.

    Args:
        chat: What its user knows.
        sessions: The questions and answers of each of its sessions, as they are stored.
    """
    kept = [turn for turns in sessions for turn in turns]
    missing = sum(
        not any(asked == question and text.endswith(ending) for question, text in kept) for asked, ending in chat.said
    )
    branches = sessions if chat.errors else [kept]
    doubled = sum(len(turns) - len({question for question, _ in turns}) for turns in branches)
    strange = sum(not question.startswith(f"{chat.name}t") for question, _ in kept)
    return missing + doubled + strange
