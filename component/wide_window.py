"""Has the page's websockets compress by more of what was sent before: each run's start repeats the theme."""

from __future__ import annotations

from uvicorn.protocols.websockets import websockets_sansio_impl
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory


class _WideWindow(ServerPerMessageDeflateFactory):
    """Compresses by what was sent up to 32 KB before, not 4 KB."""

    def __init__(self, **_: object) -> None:
        super().__init__(server_max_window_bits=15, client_max_window_bits=12, compress_settings={"memLevel": 5})


def widen() -> None:
    """Makes it so for all websockets of this server from now on."""
    # Neither Streamlit nor uvicorn has a setting for it.
    vars(websockets_sansio_impl)["ServerPerMessageDeflateFactory"] = _WideWindow
