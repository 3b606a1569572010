"""Runs the numbered migrations. Slow to import: Alembic comes with it."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from graph.error import NewerDatabaseError

_FOLDER = Path(__file__).parent / "migration"


def make_config() -> Config:
    """Alembic's settings without a file: where the migrations are."""
    config = Config()
    config.set_main_option("script_location", str(_FOLDER).replace("%", "%%"))
    return config


def upgrade(connection: Connection, revision: str | None, path: Path) -> None:
    """Runs the migrations that are missing, all in the caller's transaction.

    Args:
        connection: In a write transaction.
        revision: The revision in the file, None for a new file.
        path: The file, for the error's words.

    Raises:
        NewerDatabaseError: The revision isn't one of ours.
    """
    config = make_config()
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if revision is not None and revision not in known:
        detail = f"{path} ({revision})"
        raise NewerDatabaseError(detail)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
