"""Counts what the server drew for a page, by what it sent."""

from __future__ import annotations

from playwright.sync_api import Page, WebSocket
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg


class Runs:
    """What came over the page's connection since it was made or cleared.

    Attributes:
        whole_count: How many times the whole page was drawn.
        paths: Where each drawing stands in the page's tree.
    """

    def __init__(self, page: Page) -> None:
        self.clear()
        page.on("websocket", self._listen)

    def clear(self) -> None:
        self.whole_count = 0
        self.paths: list[tuple[int, ...]] = []

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._note)

    def _note(self, data: str | bytes) -> None:
        message = ForwardMsg()
        message.ParseFromString(data if isinstance(data, bytes) else data.encode())
        if message.WhichOneof("type") == "new_session":
            self.whole_count += not message.metadata.run.fragment_ids
        elif message.metadata.delta_path:
            self.paths.append(tuple(message.metadata.delta_path))
