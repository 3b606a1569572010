"""The product's own proxy configuration, run by a real nginx on loopback before servers of a test."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.fake.installed import installed
from tests.fake.port import free_port, wait_for_port
from tests.fake.served_app import ROOT

DEPLOY: Final = ROOT / "deploy"
# A server that is back is asked again after a second, so that tests needn't wait for long.
_SERVER: Final = "server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;\n"


@contextmanager
def proxied(folder: Path, ports: Sequence[int], *, listen: str = "plain.conf") -> Iterator[int]:
    """Runs nginx before the servers on these ports; yields its own port.

    Args:
        folder: Is made, for all that it writes.
        ports: Of the servers.
        listen: Which of the product's files says how it listens; with https its certificate is made here.
    """
    nginx = installed("nginx", required_by="REQUIRE_PROXY")
    port = free_port()
    folder.mkdir()
    shutil.copy(DEPLOY / "nginx.conf", folder)
    (folder / "servers.conf").write_text("".join(_SERVER.format(port=each) for each in ports))
    listening = (DEPLOY / listen).read_text().replace("8080", f"127.0.0.1:{port}").replace("/run/secrets", str(folder))
    (folder / "listen.conf").write_text(listening)
    if listen == "tls.conf":
        _make_certificate(folder)
    # Started by root its workers would be somebody else's, who can't write into a folder of the tests.
    more = "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"
    words = [nginx, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr", "-g", more]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
        try:
            wait_for_port(port, process, folder / "log")
            yield port
        finally:
            process.terminate()
            process.wait(timeout=30)


def _make_certificate(folder: Path) -> None:
    files = ["-keyout", str(folder / "tls_key"), "-out", str(folder / "tls_certificate")]
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", *files]
    subprocess.run(words, check=True, capture_output=True)
