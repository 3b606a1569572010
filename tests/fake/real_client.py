"""Chats of the clients that people use: each keeps its messages and sends all of them with every question."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import openai
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from tests.fake.served_door import TOKEN


class Told(NamedTuple):
    """An answer and what its headers say; `calls` are (id, name, arguments)."""

    text: str
    session_id: str
    turn: int
    matched: str
    calls: tuple[tuple[str, str, Any], ...] = ()


class OpenAIChat:
    """A chat of the openai client, which reads streams.

    Attributes:
        messages: All that it has, and all that it sends.
        headers: What each request has beside the token.
        fields: What each request's body has beside the messages; the default model unless one is named.
    """

    def __init__(self, url: str, *, token: str = TOKEN, retries: int = 2, seconds: float = 60.0) -> None:
        self.client = openai.OpenAI(base_url=url, api_key=token, max_retries=retries, timeout=seconds)
        self.messages: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.fields: Mapping[str, Any] = {}

    def ask(self, words: str) -> Told:
        """Sends the chat with a question, and keeps both."""
        self.messages.append({"role": "user", "content": words})
        return self.send()

    def answer(self, results: Mapping[str, str]) -> Told:
        """Sends the chat with the results of tools, by the ids of their calls."""
        self.keep(results)
        return self.send()

    def keep(self, results: Mapping[str, str]) -> None:
        """Keeps the results of tools, which are sent with what comes next."""
        self.messages += [
            {"role": "tool", "tool_call_id": call_id, "content": said} for call_id, said in results.items()
        ]

    def send(self) -> Told:
        """Sends the chat, and keeps the answer."""
        raw = self.client.chat.completions.with_raw_response.create(
            messages=self.messages,
            stream=True,
            extra_headers=dict(self.headers),
            **{"model": "turnfold", **self.fields},
        )
        said, calls = "", dict[int, list[str]]()
        for chunk in raw.parse():
            for choice in chunk.choices:
                said += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    assert part.function is not None
                    call = calls.setdefault(part.index, ["", "", ""])
                    for place, piece in enumerate((part.id, part.function.name, part.function.arguments)):
                        call[place] += piece or ""
        message: dict[str, Any] = {"role": "assistant", "content": said}
        if calls:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in calls.values()
            ]
        self.messages.append(message)
        told = tuple((call_id, name, json.loads(arguments)) for call_id, name, arguments in calls.values())
        return _told(said, raw.headers, told)


class LangChainChat:
    """A chat of LangChain's client, which waits for whole answers; its attributes are those of `OpenAIChat`."""

    def __init__(self, url: str, *, token: str = TOKEN, retries: int = 2, seconds: float = 60.0) -> None:
        self._connect: Callable[..., ChatOpenAI] = lambda **more: ChatOpenAI(
            base_url=url,
            api_key=SecretStr(token),
            model="turnfold",
            max_retries=retries,
            timeout=seconds,
            include_response_headers=True,
            **more,
        )
        self.messages: list[Any] = []
        self.headers: Mapping[str, str] = {}
        self.fields: Mapping[str, Any] = {}

    def ask(self, words: str) -> Told:
        """Sends the chat with a question, and keeps both."""
        self.messages.append(HumanMessage(words))
        return self.send()

    def answer(self, results: Mapping[str, str]) -> Told:
        """Sends the chat with the results of tools, by the ids of their calls."""
        self.keep(results)
        return self.send()

    def keep(self, results: Mapping[str, str]) -> None:
        """Keeps the results of tools, which are sent with what comes next."""
        self.messages += [ToolMessage(said, tool_call_id=call_id) for call_id, said in results.items()]

    def send(self) -> Told:
        """Sends the chat, and keeps the answer."""
        message = self._connect(default_headers=dict(self.headers)).invoke(self.messages, **self.fields)
        assert isinstance(message, AIMessage)
        self.messages.append(message)
        calls = tuple((str(call["id"]), call["name"], call["args"]) for call in message.tool_calls)
        return _told(str(message.content), message.response_metadata["headers"], calls)


RealChat = OpenAIChat | LangChainChat
REAL_CHATS: Final[Sequence[type[RealChat]]] = (OpenAIChat, LangChainChat)


def _told(said: str, headers: Mapping[str, str], calls: tuple[tuple[str, str, Any], ...]) -> Told:
    session_id, turn = headers.get("x-turnfold-session", ""), int(headers.get("x-turnfold-turn", "0"))
    return Told(said, session_id, turn, headers["x-turnfold-matched"], calls)
