"""An answer that is a stream of events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Final

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse
from starlette.types import Send

# A client that has vanished without a word is seen by nothing else.
STALLED_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends lines as they come; ends when the client leaves, or takes nothing for too long.

    Args:
        lines: The lines; closed at the end, whatever ends it.
        headers: Further headers.
        stalled_seconds: A client that takes nothing for that long has left.
    """

    def __init__(
        self, lines: AsyncGenerator[bytes], headers: Mapping[str, str], *, stalled_seconds: float = STALLED_SECONDS
    ) -> None:
        super().__init__(lines, headers={**_HEADERS, **headers})
        self._lines = lines
        self._stalled_seconds = stalled_seconds

    async def stream_response(self, send: Send) -> None:
        """Sends all of it.

        Raises:
            ClientDisconnect: The client took nothing for too long.
        """
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                with anyio.move_on_after(self._stalled_seconds) as stalled:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
                if stalled.cancelled_caught:
                    raise ClientDisconnect
        await send({"type": "http.response.body", "body": b"", "more_body": False})
