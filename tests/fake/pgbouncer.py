"""A real PgBouncer in transaction mode before a database, on a free port of loopback.

with pooled("postgresql://postgres@127.0.0.1:5432/turnfold") as url: ...     # the same database, through it
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from tests.fake.installed import installed
from tests.fake.port import free_port, wait_for_port

# It refuses to run as root.
_ACCOUNT: Final = "nobody"


@contextmanager
def pooled(url: str, *, server_connections: int = 20) -> Iterator[str]:
    """Yields the URL of a database through PgBouncer, which ends with the block.

    Skips the test where there is none; fails it if REQUIRE_POSTGRES is set.

    Args:
        url: That of the database itself, with host, port and user.
        server_connections: How many connections it opens to the database at most.
    """
    program = installed("pgbouncer", required_by="REQUIRE_POSTGRES")
    direct, port = urlsplit(url), free_port()
    with TemporaryDirectory(prefix="turnfold-pgbouncer-") as folder:
        settings = _settings(Path(folder), url, port, server_connections)
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([program, str(settings)], stdout=log, stderr=log)
        try:
            wait_for_port(port, process, Path(folder) / "log")
            account = direct.netloc.rpartition("@")[0]
            yield urlunsplit(direct._replace(netloc=f"{account}@127.0.0.1:{port}"))
        finally:
            process.kill()
            process.wait()


def _settings(folder: Path, url: str, port: int, server_connections: int) -> Path:
    direct = urlsplit(url)
    accounts, settings = folder / "accounts", folder / "pgbouncer.ini"
    accounts.write_text(f'"{direct.username}" "{direct.password or ""}"\n', encoding="utf-8")
    settings.write_text(
        f"""
[databases]
* = host={direct.hostname} port={direct.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {accounts}
pool_mode = transaction
default_pool_size = {server_connections}
max_client_conn = 400
""",
        encoding="utf-8",
    )
    if os.geteuid() == 0:
        with settings.open("a", encoding="utf-8") as file:
            file.write(f"user = {_ACCOUNT}\n")
        account = pwd.getpwnam(_ACCOUNT)
        for path in (folder, accounts, settings):
            os.chown(path, account.pw_uid, account.pw_gid)
    return settings
