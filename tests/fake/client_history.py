"""Histories that programs bring: any roles in any order, drawn with text of any kind, and their import."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from graph.service.program_input import import_history
from graph.value.client import ClientMessage
from graph.value.event import ClientCall
from tests.fake.chat import Chat

_SURROGATES = st.characters(categories=["Cs"])
TEXTS = st.one_of(
    st.sampled_from(
        [
            "",
            " \n\u200b",
            "안녕하세요, 서버를 옮기려고 합니다.",
            "שלום",
            "👩‍👩‍👧",
            "\x00",
            "[1-3턴] 사용자: 지난 요약",
            "[image]",
        ]
    ),
    st.text(max_size=30),
    st.text(_SURROGATES, max_size=3),
    st.integers(100, 400).map(lambda count: "예산은 120만 원입니다. " * count),
)
_IDS = st.sampled_from(["", "call_1", "call_2", "부름", "x" * 90])
_ARGUMENTS = st.one_of(
    st.sampled_from(
        ["", "{}", "null", "[1]", '{"n": NaN}', '{"a": {"b": [1, "\\ud800"]}}', '{"a":' * 500, "9" * 5_000]
    ),
    st.text(max_size=10),
)
_CALLS = st.lists(
    st.builds(ClientCall, _IDS, st.sampled_from(["", "get_weather", "날씨 보기", "n" * 99]), _ARGUMENTS), max_size=3
)
IMAGES = st.sampled_from(
    ["data:image/png;base64,AAAA", "https://example.org/a.png", "file:///etc/passwd", "image:0", "\ud800"]
)
MESSAGES = st.one_of(
    st.builds(ClientMessage, st.just("user"), TEXTS, st.lists(IMAGES, max_size=2).map(tuple)),
    st.builds(ClientMessage, st.just("assistant"), TEXTS, calls=_CALLS.map(tuple)),
    st.builds(ClientMessage, st.just("tool"), TEXTS, call_id=_IDS),
    st.builds(
        ClientMessage,
        st.sampled_from(["user", "assistant", "tool"]),
        TEXTS,
        st.lists(IMAGES, max_size=1).map(tuple),
        _CALLS.map(tuple),
        _IDS,
    ),
)
HISTORIES = st.lists(MESSAGES, max_size=12)


def bring(chat: Chat, messages: Sequence[ClientMessage]) -> int:
    """Imports the messages into the chat, whose session is made if there is none, as the HTTP API does."""
    access = chat.service._engine.access  # noqa: SLF001  # the HTTP API's part of the service
    access.stores.sessions.create(chat.session_id, access.owner, compression_rate=0.3, strategy="", title="이전")
    lease = access.stores.leases.acquire(chat.session_id, wait_seconds=5)
    try:
        return import_history(access, lease, messages, client="editor", model="another-model")
    finally:
        access.stores.leases.release(lease)
