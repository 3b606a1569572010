"""Command line of the operator: backup, restore, export, import, migrate; owners and their access.

python -m graph.admin backup [FILE] | restore FILE | export FILE | import FILE [--keep-owners] | migrate FILE [URL]
python -m graph.admin owner SUBJECT | withdraw OWNER | readmit OWNER | withdrawn
"""

from __future__ import annotations

import argparse
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from graph.admin.backup import back_up, migrate, restore
from graph.server.identity import owner_of
from graph.server.log import set_up_logging
from graph.server.settings import Settings, load_settings
from graph.store.database import utc_now
from graph.store.owner import OwnerStore
from graph.store.stores import open_database
from graph.store.transfer import export_lines, import_lines
from graph.value.error import SettingsError, TurnfoldError

_PRIVATE_FOLDER: Final = 0o700
_PRIVATE_FILE: Final = 0o600


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit code: 0 on success, 1 after a message on standard error."""
    parser = argparse.ArgumentParser(prog="python -m graph.admin", description="What the operator does.")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("backup", help="copy the database while it runs").add_argument("file", nargs="?", type=Path)
    commands.add_parser("restore", help="put a backup in the database's place").add_argument("file", type=Path)
    commands.add_parser("export", help="write all sessions as JSON Lines").add_argument("file", type=Path)
    reading = commands.add_parser("import", help="read an export: its sessions become TURNFOLD_OWNER's")
    reading.add_argument("file", type=Path)
    reading.add_argument("--keep-owners", action="store_true", help="each session stays its owner's")
    moving = commands.add_parser("migrate", help="move a SQLite file into an empty Postgres")
    moving.add_argument("file", type=Path)
    moving.add_argument("url", nargs="?", help="where to; CHAT_DATABASE_URL if it's left out")
    commands.add_parser("owner", help="name the owner that a user of the identity provider is").add_argument("subject")
    commands.add_parser("withdraw", help="let an owner in no more").add_argument("owner")
    commands.add_parser("readmit", help="let a withdrawn owner in again").add_argument("owner")
    commands.add_parser("withdrawn", help="list the withdrawn owners")
    wanted = parser.parse_args(arguments)
    try:
        settings = load_settings()
        set_up_logging(settings.turnfold_log_level)
        done = _COMMANDS[wanted.command](settings, wanted)
    except TurnfoldError as error:
        sys.stderr.write(f"Not done: {error} {error.advice}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"Not done: {error.filename}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{done}\n")
    return 0


def _back_up(settings: Settings, wanted: Namespace) -> str:
    file: Path | None = wanted.file
    _check_is_file(settings)
    target = file or settings.turnfold_data_dir / "backup" / f"turnfold-{utc_now():%Y%m%dT%H%M%SZ}.db"
    target.parent.mkdir(parents=True, exist_ok=True, mode=_PRIVATE_FOLDER)
    back_up(settings.database_path, target, busy_timeout_seconds=settings.busy_timeout_seconds)
    return str(target)


def _restore(settings: Settings, wanted: Namespace) -> str:
    file: Path = wanted.file
    _check_is_file(settings)
    retained = restore(file, settings.database_path, now=utc_now(), busy_timeout_seconds=settings.busy_timeout_seconds)
    return f"{settings.database_path} is {file} now" + (f"; what was there is {retained}" if retained else "")


def _export(settings: Settings, wanted: Namespace) -> str:
    file: Path = wanted.file
    file.touch(mode=_PRIVATE_FILE)
    count = 0
    with closing(open_database(settings)) as database, file.open("w", encoding="utf-8") as lines:
        for line in export_lines(database):
            lines.write(f"{line}\n")
            count += 1
    return f"{count} lines in {file}"


def _import(settings: Settings, wanted: Namespace) -> str:
    file: Path = wanted.file
    with closing(open_database(settings)) as database, file.open(encoding="utf-8") as lines:
        owner = None if wanted.keep_owners else settings.turnfold_owner
        done = import_lines(database, lines, owner=owner)
    return f"{done.session_count} sessions imported, {done.skipped_count} were there already"


def _migrate(settings: Settings, wanted: Namespace) -> str:
    if wanted.url:
        settings = load_settings(chat_database_url=wanted.url)
    if settings.chat_database_url is None:
        msg = "CHAT_DATABASE_URL: says where to migrate to, if no URL follows the file"
        raise SettingsError(msg)
    with closing(open_database(settings)) as target:
        done = migrate(wanted.file, target, busy_timeout_seconds=settings.busy_timeout_seconds)
    counts = [f"{name}: {count}" for name, count in done.row_counts.items()]
    replaced = [f"characters that Postgres can't store were replaced by U+FFFD in {row}" for row in done.replaced]
    total = f"{sum(done.row_counts.values())} rows moved and compared, {len(done.replaced)} with replaced characters"
    return "\n".join([*counts, *replaced, total])


def _check_is_file(settings: Settings) -> None:
    if settings.chat_database_url is not None:
        msg = "CHAT_DATABASE_URL: a Postgres is backed up by pg_dump and restored by pg_restore, not by this command"
        raise SettingsError(msg)


def _owner(settings: Settings, wanted: Namespace) -> str:
    if settings.oidc_issuer is None:
        msg = "OIDC_ISSUER: a user's owner is made of the provider's address and its id of the user"
        raise SettingsError(msg)
    return owner_of(settings.oidc_issuer, wanted.subject)


def _withdraw(settings: Settings, wanted: Namespace) -> str:
    with _owners(settings) as owners:
        owners.withdraw(wanted.owner)
    return f"{wanted.owner} is let in no more; what they have is kept"


def _readmit(settings: Settings, wanted: Namespace) -> str:
    with _owners(settings) as owners:
        was_withdrawn = owners.readmit(wanted.owner)
    return f"{wanted.owner} is let in again" if was_withdrawn else f"{wanted.owner} wasn't withdrawn"


def _list_withdrawn(settings: Settings, _: Namespace) -> str:
    with _owners(settings) as owners:
        rows = owners.withdrawn()
    return "\n".join(f"{row.owner} since {row.withdrawn_at:%Y-%m-%dT%H:%M:%SZ}" for row in rows) or "nobody"


@contextmanager
def _owners(settings: Settings) -> Iterator[OwnerStore]:
    with closing(open_database(settings)) as database:
        yield OwnerStore(database, clock=utc_now)


_COMMANDS: Final[dict[str, Callable[[Settings, Namespace], str]]] = {
    "backup": _back_up,
    "restore": _restore,
    "export": _export,
    "import": _import,
    "migrate": _migrate,
    "owner": _owner,
    "withdraw": _withdraw,
    "readmit": _readmit,
    "withdrawn": _list_withdrawn,
}

if __name__ == "__main__":
    sys.exit(main())
