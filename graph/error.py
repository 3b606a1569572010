"""The hierarchy of all errors that Turnfold raises on purpose; those of model calls stand in `graph.model_error`.

* TurnfoldError
  x SettingsError
  x InputError
  x PathError
  x NotFoundError
  x SignInError
  x BusyError
    + ServerBusyError
      - UserBusyError
    + TurnRateError
      - UserRateError
      - UserTokensError
  x TurnStoppedSignal
  x StoreError
    + DatabaseError
      - NotADatabaseError
      - NewerDatabaseError
      - DatabaseBusyError
      - DatabaseUnreachableError
      - DiskFullError
    + LeaseLostError
    + FileAccessError
    + ProjectError
      - ProjectBusyError
      - ProjectDamagedError
      - ProjectNewerError
  x ModelError
    + AuthenticationError
    + AccessDeniedError
    + ModelMissingError
    + RateLimitError
    + QuotaError
    + ContextLengthError
    + UnreachableError
    + DeadlineError
    + CutStreamError
    + EmptyAnswerError
    + RefusedError
    + BadResponseError
      - ToolChoiceError
    + ProviderError
    + ToolRoundsError
  x ClosingError
  x InternalError
"""

from __future__ import annotations

from typing import ClassVar

from graph.error_reason import InputReason, PathReason, SignInReason


class TurnfoldError(Exception):
    """Base of all errors that Turnfold raises on purpose.

    Attributes:
        code: Stable name of the failure; the page looks up its sentence by it, in the user's language.
        detail: A short addition to the sentence, such as a number or a model's name. Never a key or message text.
        advice: What the operator of the server can do about it, or "".
    """

    code: ClassVar[str] = "internal"
    advice: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"{self.code}: {detail}" if detail else self.code)
        self.detail = detail


class SettingsError(TurnfoldError):
    """A setting has an invalid value; `detail` names the variable and what it takes."""

    code = "settings"


class InputError(TurnfoldError):
    """The user's input is refused and nothing was stored; `detail` is the `reason` if there is nothing to add."""

    code = "input"

    def __init__(self, reason: InputReason, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class PathError(TurnfoldError):
    """A file or folder of a project is refused and wasn't read; `detail` is its path, as it was asked for."""

    code = "path"

    def __init__(self, reason: PathReason, path: str = "") -> None:
        # The name of a file may be no text; what is told of it is.
        super().__init__(path.encode(errors="replace").decode() or reason)
        self.reason = reason


class NotFoundError(TurnfoldError):
    """The session, turn or record doesn't exist or belongs to another owner."""

    code = "not_found"


class SignInError(TurnfoldError):
    """Nobody is signed in, the sign-in has ended, or this owner's access was withdrawn. Nothing was read or stored."""

    code = "sign_in"

    def __init__(self, reason: SignInReason) -> None:
        super().__init__()
        self.reason = reason


class BusyError(TurnfoldError):
    """A turn of the session is in progress, and the caller didn't ask to wait for it."""

    code = "busy"


class ServerBusyError(BusyError):
    """The server runs its maximum number of turns, given in `detail`; nothing was stored."""

    code = "server_busy"


class UserBusyError(ServerBusyError):
    """As many turns of this user run as one user may have at once; `detail` is how many of all. Nothing was stored."""

    code = "user_busy"


class TurnRateError(BusyError):
    """Too many turns began within the last minute; `detail` is how long to wait. Nothing was stored."""

    code = "turn_rate"

    def __init__(self, retry_after_seconds: int, detail: str = "") -> None:
        super().__init__(detail or f"{retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class UserRateError(TurnRateError):
    """This user has begun as many turns within this minute as one user may; `detail` is how long to wait."""

    code = "user_rate"


class UserTokensError(TurnRateError):
    """This user's tokens of this day are used up; `detail` is how long to wait."""

    code = "user_tokens"


class TurnStoppedSignal(TurnfoldError):  # noqa: N818 - a signal, no error: it only unwinds the run
    """The turn is stopped by the user or because the server closes; ends the run of the graph."""

    code = "stopped"


class StoreError(TurnfoldError):
    """Base of all storage errors."""

    code = "store"


class DatabaseError(StoreError):
    """A database operation failed; its transaction was rolled back."""

    code = "database"


class NotADatabaseError(DatabaseError):
    """The configured file is no database or a damaged one."""

    code = "not_a_database"
    advice = "Move the file away, or put a backup in its place: make restore FROM=<file>."


class NewerDatabaseError(DatabaseError):
    """The file was written by a newer version of Turnfold."""

    code = "newer_database"
    advice = "Update Turnfold, or name another folder by TURNFOLD_DATA_DIR."


class DatabaseUnreachableError(DatabaseError):
    """The database's server can't be reached, or lets nobody in; what wasn't committed is lost with the connection."""

    code = "database_unreachable"
    advice = "See that CHAT_DATABASE_URL is right and that the database's server runs."


class DatabaseBusyError(DatabaseError):
    """Others kept what is needed for longer than the busy timeout: the write lock, or every connection."""

    code = "database_busy"
    advice = "End what holds the file, or wait until it's done."


class DiskFullError(DatabaseError):
    """The disk is full; the transaction was rolled back."""

    code = "disk_full"
    advice = "Make room on the disk, or name another folder by TURNFOLD_DATA_DIR."


class LeaseLostError(StoreError):
    """Another worker has acquired the session since this one's lease of it ran out."""

    code = "lease_lost"


class FileAccessError(StoreError):
    """A file that Turnfold keeps beside the database can't be read, written or locked."""

    code = "file_access"
    advice = "See that the folder belongs to the user who runs the server, and that no other process holds the file."


class ProjectError(StoreError):
    """The files of a project's memory can't be read or written; `detail` says which and why. Nothing changed."""

    code = "project"

    def __init__(self, name: str = "", reason: str = "") -> None:
        super().__init__(f"{name}: {reason}" if reason else name)


class ProjectBusyError(ProjectError):
    """Another process held the lock of the project's memory for too long; `detail` is how long was waited."""

    code = "project_busy"


class ProjectDamagedError(ProjectError):
    """A file of the project's memory can't be understood and stays as it is; `detail` names the file and the place.

    Attributes:
        snapshot: The name of the newest snapshot that can be restored, or "".
    """

    code = "project_damaged"

    def __init__(self, name: str = "", reason: str = "", *, snapshot: str = "") -> None:
        super().__init__(name, reason)
        self.snapshot = snapshot


class ProjectNewerError(ProjectError):
    """A file of the project's memory was written by a newer version of Turnfold; `detail` names it."""

    code = "project_newer"


class ClosingError(TurnfoldError):
    """The server is shutting down and accepts nothing more; committed messages are kept."""

    code = "closing"


class InternalError(TurnfoldError):
    """A defect in Turnfold, caught and logged at the edge of a worker."""

    code = "internal"
