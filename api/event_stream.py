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
_STALLED_SECONDS: Final = 60.0
_HEADERS: Final = {"Content-Type": "text/event-stream", "Cache-Control": "no-cache", "X-Accel-Buffering": "no"}


class EventStream(StreamingResponse):
    """Sends lines as they come; ends when the client leaves, or takes nothing for a minute.

    Args:
        lines: The lines; closed at the end, whatever ends it.
        headers: Further headers.
    """

    def __init__(self, lines: AsyncGenerator[bytes], headers: Mapping[str, str]) -> None:
        super().__init__(lines, headers={**_HEADERS, **headers})
        self._lines = lines

    async def stream_response(self, send: Send) -> None:
        """Sends all of it."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._lines) as lines:
            async for line in lines:
                with anyio.move_on_after(_STALLED_SECONDS) as stalled:
                    await send({"type": "http.response.body", "body": line, "more_body": True})
                if stalled.cancelled_caught:
                    raise ClientDisconnect
        await send({"type": "http.response.body", "body": b"", "more_body": False})
