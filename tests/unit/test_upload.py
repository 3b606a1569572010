from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager
from streamlit.web.server.starlette.starlette_app_utils import generate_xsrf_token_string
from streamlit.web.server.starlette.starlette_routes import create_upload_routes

PLACE = "/_stcore/upload_file/a-tab/a-file"
BOUNDARY = "part"
FILE = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\nx\r\n--{BOUNDARY}--\r\n'.encode()


class OpenTab:
    """A runtime in which every tab is open, as that of somebody who isn't signed in is."""

    def is_active_session(self, _: str) -> bool:
        return True


def in_pieces() -> Iterator[bytes]:
    yield FILE


@pytest.mark.parametrize("body", [FILE, in_pieces()], ids=["at-once", "in-pieces"])
def test_nobody_fills_the_servers_memory_with_files(
    body: bytes | Iterator[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
    config.get_config_options(force_reparse=True)
    kept = MemoryUploadedFileManager("/_stcore/upload_file")
    client = TestClient(Starlette(routes=create_upload_routes(cast("Any", OpenTab()), kept, "")))
    token = generate_xsrf_token_string()
    client.cookies.set("_streamlit_xsrf", token)
    headers = {"X-Xsrftoken": token, "Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    assert client.put(PLACE, content=body, headers=headers).status_code == 413
    assert kept.get_files("a-tab", ["a-file"]) == []
