"""The hierarchy of all errors that Turnfold raises on purpose.

* TurnfoldError
  x SettingsError
  x InputError
  x PathError
  x NotFoundError
  x BusyError
    + ServerBusyError
    + TurnRateError
  x TurnStoppedSignal
  x StoreError
    + DatabaseError
      - NotADatabaseError
      - NewerDatabaseError
      - DatabaseBusyError
      - DiskFullError
    + LeaseLostError
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

from typing import ClassVar, Literal

InputReason = Literal[
    "bad_rate",
    "bad_strategy",
    "compact_failed",
    "compact_stopped",
    "empty",
    "no_effect",
    "no_reset",
    "not_a_compaction",
    "not_an_export",
    "not_last",
    "nothing_to_compact",
    "over_window",
    "project_full",
    "secret",
    "too_long",
]

PathReason = Literal[
    "binary",
    "not_a_folder",
    "not_allowed",
    "not_regular",
    "outside",
    "symlink_outside",
    "too_large",
    "too_slow",
    "unreadable",
    "vanished",
]


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
        super().__init__(path or reason)
        self.reason = reason


class NotFoundError(TurnfoldError):
    """The session, turn or record doesn't exist or belongs to another owner."""

    code = "not_found"


class BusyError(TurnfoldError):
    """A turn of the session is in progress, and the caller didn't ask to wait for it."""

    code = "busy"


class ServerBusyError(BusyError):
    """The server runs its maximum number of turns, given in `detail`; nothing was stored."""

    code = "server_busy"


class TurnRateError(BusyError):
    """Too many turns began within the last minute; `detail` is how long to wait. Nothing was stored."""

    code = "turn_rate"


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


class DatabaseBusyError(DatabaseError):
    """Another process held the write lock for longer than the busy timeout."""

    code = "database_busy"
    advice = "End what holds the file, or wait until it's done."


class DiskFullError(DatabaseError):
    """The disk is full; the transaction was rolled back."""

    code = "disk_full"
    advice = "Make room on the disk, or name another folder by TURNFOLD_DATA_DIR."


class LeaseLostError(StoreError):
    """This worker's lease of the session expired and another worker acquired it."""

    code = "lease_lost"


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


class ModelError(TurnfoldError):
    """Base of all errors of a model call.

    Attributes:
        is_transient: Whether a retry may succeed.
        retry_after_seconds: How long the provider asks to wait before a retry, or None.
    """

    code = "model"
    is_transient: ClassVar[bool] = False

    def __init__(self, detail: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(detail)
        self.retry_after_seconds = retry_after_seconds


class AuthenticationError(ModelError):
    """401: the key is missing or wrong."""

    code = "authentication"


class AccessDeniedError(ModelError):
    """403: the key may not use this model."""

    code = "access_denied"


class ModelMissingError(ModelError):
    """404: the endpoint has no such model."""

    code = "model_missing"


class RateLimitError(ModelError):
    """429: too many requests at the moment."""

    code = "rate_limit"
    is_transient = True


class QuotaError(ModelError):
    """429 with `insufficient_quota`: the account has no credit left."""

    code = "quota"


class ContextLengthError(ModelError):
    """The input is longer than the model's context window."""

    code = "context_length"


class UnreachableError(ModelError):
    """No connection to the endpoint: refused, reset, or an unknown host."""

    code = "unreachable"
    is_transient = True


class DeadlineError(ModelError):
    """The call with its retries took longer than its deadline."""

    code = "deadline"


class CutStreamError(ModelError):
    """The stream ended without a finish reason, or in the middle of the answer."""

    code = "cut_stream"
    is_transient = True


class EmptyAnswerError(ModelError):
    """The answer ended properly but has neither text nor a tool call."""

    code = "empty_answer"
    is_transient = True


class RefusedError(ModelError):
    """The model or its content filter refused to answer."""

    code = "refused"


class BadResponseError(ModelError):
    """The response violates the protocol."""

    code = "bad_response"


class ToolChoiceError(BadResponseError):
    """400 that names `tool_choice`: the endpoint doesn't support it. The call is repeated without it."""


class ProviderError(ModelError):
    """5xx: the endpoint failed."""

    code = "provider"
    is_transient = True


class ToolRoundsError(ModelError):
    """The model kept calling tools after its last round and gave no answer."""

    code = "tool_rounds"


class ClosingError(TurnfoldError):
    """The server is shutting down and accepts nothing more; committed messages are kept."""

    code = "closing"


class InternalError(TurnfoldError):
    """A defect in Turnfold, caught and logged at the edge of a worker."""

    code = "internal"
