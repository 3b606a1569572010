"""The product's own proxy configuration, run by a real nginx on loopback before servers of a test."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.fake.installed import installed
from tests.fake.port import free_port, wait_for_port
from tests.fake.served_app import ROOT

DEPLOY: Final = ROOT / "deploy"
# A server that is back is asked again after a second, so that tests needn't wait for long.
_SERVER: Final = "server 127.0.0.1:{port} max_fails=1 fail_timeout=1s;\n"


@contextmanager
def proxied(
    folder: Path, ports: Sequence[int], *, listen: str = "plain.conf", changes: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Runs nginx before the servers on these ports; yields its own port.

    Args:
        folder: Is made, for all that it writes.
        ports: Of the servers.
        listen: Which of the product's files says how it listens; with https its certificate is made here.
        changes: What stands in the configuration in place of what, for limits that a test can't reach.
    """
    nginx = installed("nginx", required_by="REQUIRE_PROXY")
    port = free_port()
    folder.mkdir()
    configuration = (DEPLOY / "nginx.conf").read_text()
    for before, after in (changes or {}).items():
        assert configuration.count(before) == 1
        configuration = configuration.replace(before, after)
    (folder / "nginx.conf").write_text(configuration)
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
            while not (folder / "nginx.pid").is_file():  # it listens before it writes that
                assert process.poll() is None
                time.sleep(0.01)
            yield port
        finally:
            process.terminate()
            process.wait(timeout=30)


def held_bytes(folder: Path) -> int:
    """What its processes hold in files that have no name any more, as those of bodies and answers."""
    started = int((folder / "nginx.pid").read_text())
    workers = Path(f"/proc/{started}/task/{started}/children").read_text().split()
    held = 0
    for process in (started, *workers):
        for file in Path(f"/proc/{process}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                held += file.stat().st_blocks * 512 if str(file.readlink()).endswith("(deleted)") else 0
    return held


def _make_certificate(folder: Path) -> None:
    files = ["-keyout", str(folder / "tls_key"), "-out", str(folder / "tls_certificate")]
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", *files]
    subprocess.run(words, check=True, capture_output=True)
