"""A tab of a served page, by its websocket alone, and the requests by which Streamlit's browser half sends a file.

with opened_tab(address, cookies) as tab:
    tab.put(b"text").status_code
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

import httpx2
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

BOUNDARY: Final = "part"
XSRF: Final = "_streamlit_xsrf"
TAKEN: Final = 204


def form_of(data: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="f.txt"\r\n\r\n'
    return head.encode() + data + f"\r\n--{BOUNDARY}--\r\n".encode()


@dataclass(frozen=True)
class Tab:
    """An open tab, and who has it."""

    address: str
    id: str
    cookies: Mapping[str, str]

    def put(
        self, data: bytes, *, cookies: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        """Sends a file to the tab, as its visitor or with other cookies, and with changed headers."""
        return self.send(form_of(data), cookies=cookies, headers=headers)

    def send(
        self,
        body: bytes | Iterator[bytes],
        *,
        cookies: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx2.Response:
        token = generate_xsrf_token_string()
        said = {**(self.cookies if cookies is None else cookies), XSRF: token}
        sent = {
            "X-Xsrftoken": token,
            "Origin": self.address,
            "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in said.items()),
            **(headers or {}),
        }
        url = f"{self.address}/_stcore/upload_file/{self.id}/{uuid4()}"
        with httpx2.Client(trust_env=False) as client:
            return client.put(url, content=body, headers=sent)


@contextmanager
def opened_tab(address: str, cookies: Mapping[str, str]) -> Iterator[Tab]:
    """Opens the page's websocket as a browser with these cookies does."""
    token = generate_xsrf_token_string()
    said = "; ".join(f"{name}={value}" for name, value in {**cookies, XSRF: token}.items())
    with connect(
        f"{address.replace('http', 'ws', 1)}/_stcore/stream",
        origin=Origin(address),
        subprotocols=[Subprotocol("streamlit"), Subprotocol(token)],
        additional_headers={"Cookie": said},
        proxy=None,
        max_size=None,
        close_timeout=0.1,  # what the page sends isn't read, so its half of the end never comes
    ) as wire:
        wire.send(BackMsg(rerun_script=ClientState()).SerializeToString())
        while True:
            told = ForwardMsg.FromString(bytes(wire.recv(timeout=60, decode=False)))
            if told.WhichOneof("type") == "new_session":
                yield Tab(address, told.new_session.initialize.session_id, cookies)
                return
