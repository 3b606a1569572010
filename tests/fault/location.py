"""Where the data of a run are: files in its folder, or a database of Postgres that a file there names."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

_URL: Final = "database_url"
_FILES: Final = ("turnfold.db", "checkpoint.db")


def put_elsewhere(folder: Path, url: str) -> Path:
    """Has the data of a folder be in a database, and returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _URL).write_text(url, encoding="utf-8")
    return folder


def url_of(folder: Path) -> str | None:
    """Returns the database of a folder, None if its data are files."""
    file = folder / _URL
    return file.read_text(encoding="utf-8") if file.exists() else None


def damaged_files(folder: Path) -> list[str]:
    """Returns the names of the files that SQLite finds damaged; Postgres sees to its own."""
    return [name for name in _FILES if url_of(folder) is None and _is_damaged(folder / name)]


def _is_damaged(file: Path) -> bool:
    with closing(sqlite3.connect(file)) as connection:
        return bool(connection.execute("PRAGMA integrity_check").fetchone() != ("ok",))
