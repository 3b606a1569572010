"""Runs the migrations. Slow to import, because of Alembic."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from graph.value.error import NewerDatabaseError, OlderDatabaseError

_FOLDER = Path(__file__).parent / "migration"


def make_config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def upgrade(connection: Connection, revision: str | None, name: str) -> None:
    """Runs the missing migrations, all in the caller's transaction.

    Raises:
        NewerDatabaseError: The revision is newer than all known ones.
        OlderDatabaseError: The revision is older than the first.
    """
    config = make_config()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        detail = f"{name} ({revision})"
        raise OlderDatabaseError(detail) if revision < min(known) else NewerDatabaseError(detail)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
