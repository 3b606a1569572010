from __future__ import annotations

import hashlib
import hmac
import shutil
import subprocess
from base64 import b64decode
from typing import Final

import psycopg
import pytest

from tests.fake.postgres import PostgresServer
from tests.fake.served_app import ROOT

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
# The server of the tests has a role of the name that the container's has.
ROLE: Final = "role_of_the_container"
PASSWORD: Final = "a'b\\c \"d 한$1"  # noqa: S105  # lets nobody in


@pytest.fixture(scope="module")
def made(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> PostgresServer:
    """A server on which the container's statements have run, by psql as there."""
    psql = shutil.which("psql")
    assert psql is not None, "there is no psql beside this Postgres"
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "pgpassword").write_text(f"{PASSWORD}\n", encoding="utf-8")
    statements = (ROOT / "deploy/database.sql").read_text().replace("turnfold", ROLE)
    words = [psql, "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--dbname", postgres.url("postgres")]
    environment = {"PATH": "/usr/bin:/bin", "SECRETS": str(secrets), "PGCLIENTENCODING": "UTF8"}
    subprocess.run(words, input=statements, text=True, encoding="utf-8", env=environment, check=True)
    return postgres


def as_role(server: PostgresServer, database: str = ROLE) -> psycopg.Connection:
    return psycopg.connect(server.url(database), user=ROLE)


def test_the_role_has_its_limits_makes_tables_and_no_roles_and_nobody_else_gets_in(made: PostgresServer) -> None:
    with as_role(made) as connection:
        limits = ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
        shown = [connection.execute(f"SHOW {limit}").fetchone() for limit in limits]
        assert shown == [("30s",), ("5s",), ("30s",)]
        connection.execute("CREATE TABLE anything (one integer)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE ROLE another")
    made.execute("CREATE ROLE stranger LOGIN")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(made.url(ROLE), user="stranger")


def test_the_password_is_that_of_the_secret(made: PostgresServer) -> None:
    retained = dict(made.execute("SELECT rolname, rolpassword FROM pg_authid"))
    _, salted, keys = retained[ROLE].split("$")
    rounds, salt = salted.split(":")
    key = hashlib.pbkdf2_hmac("sha256", PASSWORD.encode(), b64decode(salt), int(rounds))
    stored = hashlib.sha256(hmac.digest(key, b"Client Key", "sha256")).digest()
    assert b64decode(keys.split(":")[0]) == stored
