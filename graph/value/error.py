"""The hierarchy of all errors that Turnfold raises on purpose, with their reasons.

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
      - OlderDatabaseError
      - DatabaseBusyError
      - DatabaseUnreachableError
      - DiskFullError
    + LeaseLostError
    + FileAccessError
    + ProjectError
      - ProjectBusyError
      - ProjectDamagedError
      - ProjectNewerError
  x AttachmentError
  x McpError
  x ModelError
    + AuthenticationError
    + AccessDeniedError
    + ModelMissingError
    + RateLimitError
    + QuotaError
    + ContextLengthError
    + UnreachableError
    + DeadlineError
      - SilenceError
    + CutStreamError
    + EmptyAnswerError
      - ThoughtLimitError
    + RefusedError
    + NoImagesError
    + RejectedError
      - ToolChoiceError
      - ToolsRefusedError
    + BadResponseError
    + ProviderError
    + ToolRoundsError
  x ClosingError
  x InternalError
"""

from __future__ import annotations

from typing import ClassVar, Literal

InputReason = Literal[
    "bad_context",
    "bad_image",
    "bad_preset",
    "bad_program_name",
    "bad_rate",
    "bad_strategy",
    "before_reset",
    "compact_failed",
    "compact_stopped",
    "context_not_kept",
    "empty",
    "import_too_large",
    "instructions_too_long",
    "message_too_long",
    "no_effect",
    "no_images",
    "no_reset",
    "not_a_compaction",
    "not_active",
    "not_an_export",
    "not_last",
    "not_shorter",
    "nothing_to_compact",
    "over_guessed_window",
    "over_window",
    "pin_budget",
    "project_full",
    "remake_failed",
    "reset_words",
    "rules_changed",
    "secret",
    "stands_verbatim",
    "token_name_taken",
    "too_long",
    "too_many_presets",
    "too_many_tokens",
    "unanswered_call",
    "unknown_call",
    "unknown_tool",
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

SignInReason = Literal["ended", "needed", "withdrawn"]


class TurnfoldError(Exception):
    """Base of all errors that Turnfold raises on purpose.

    `code` is stable: the page's sentences are keyed by it. `detail`, such as a number or a model's name, never holds a
    key or message text; `advice` is a remedy for the operator, or "".
    """

    code: ClassVar[str] = "internal"
    advice: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"{self.code}: {detail}" if detail else self.code)
        self.detail = detail


class SettingsError(TurnfoldError):
    """A setting has an invalid value; `detail` names the variable and the valid values."""

    code = "settings"


class InputError(TurnfoldError):
    """The user's input is refused and nothing was stored; `detail` defaults to `reason`."""

    code = "input"

    def __init__(self, reason: InputReason, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class PathError(TurnfoldError):
    """A file or folder of a project is refused and wasn't read; `detail` is the requested path."""

    code = "path"

    def __init__(self, reason: PathReason, path: str = "") -> None:
        # A file's name may be invalid text; an error's message must not be.
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
    """The user runs the maximum number of turns per user; `detail` gives the number. Nothing was stored."""

    code = "user_busy"


class TurnRateError(BusyError):
    """Too many turns started within the last minute; `detail` is the time to wait. Nothing was stored."""

    code = "turn_rate"

    def __init__(self, retry_after_seconds: int, detail: str = "") -> None:
        super().__init__(detail or f"{retry_after_seconds} s")
        self.retry_after_seconds = retry_after_seconds


class UserRateError(TurnRateError):
    """The user started the maximum number of turns per user within this minute; `detail` is the time to wait."""

    code = "user_rate"


class UserTokensError(TurnRateError):
    """The user's tokens of the day are used up; `detail` is the time to wait."""

    code = "user_tokens"


class TurnStoppedSignal(TurnfoldError):  # noqa: N818 - a signal, no error: it only unwinds the run
    """The turn is stopped, by the user or by the server's shutdown; ends the run of the graph."""

    code = "stopped"


class StoreError(TurnfoldError):
    code = "store"


class DatabaseError(StoreError):
    """A database operation failed; its transaction was rolled back."""

    code = "database"


class NotADatabaseError(DatabaseError):
    """The configured file is no database, or a damaged one."""

    code = "not_a_database"
    advice = "Move the file away, or put a backup in its place: make restore FROM=<file>."


class NewerDatabaseError(DatabaseError):
    """The file was written by a newer version of Turnfold."""

    code = "newer_database"
    advice = "Update Turnfold, or name another folder by TURNFOLD_DATA_DIR."


class OlderDatabaseError(DatabaseError):
    """The database was written by a version too old to be migrated."""

    code = "older_database"
    advice = (
        "Take its chats along: make export TO=<file> with the version that wrote it, then make import FROM=<file> with "
        "this one, into a new database."
    )


class DatabaseUnreachableError(DatabaseError):
    """The database server can't be reached or refuses the login; uncommitted changes are lost with the connection."""

    code = "database_unreachable"
    advice = "See that CHAT_DATABASE_URL is right and that the database's server runs."


class DatabaseBusyError(DatabaseError):
    """The write lock, or a free connection, wasn't available within the busy timeout."""

    code = "database_busy"
    advice = "End what holds the file, or wait until it's done."


class DiskFullError(DatabaseError):
    """The disk is full; the transaction was rolled back."""

    code = "disk_full"
    advice = "Make room on the disk, or name another folder by TURNFOLD_DATA_DIR."


class LeaseLostError(StoreError):
    """The lease of the session expired, and another worker has acquired the session."""

    code = "lease_lost"


class FileAccessError(StoreError):
    """A file of Turnfold's data folder can't be read, written or locked."""

    code = "file_access"
    advice = "See that the folder belongs to the user who runs the server, and that no other process holds the file."


class ProjectError(StoreError):
    """A project's memory can't be read or written; `detail` names the file and the reason. Nothing changed."""

    code = "project"

    def __init__(self, name: str = "", reason: str = "") -> None:
        super().__init__(f"{name}: {reason}" if reason else name)


class ProjectBusyError(ProjectError):
    """Another process held the lock of the project's memory too long; `detail` is the time waited."""

    code = "project_busy"


class ProjectDamagedError(ProjectError):
    """A file of the project's memory can't be parsed and stays unchanged; `detail` names the file and the position.

    `snapshot` is the newest one that can be restored, or "".
    """

    code = "project_damaged"

    def __init__(self, name: str = "", reason: str = "", *, snapshot: str = "") -> None:
        super().__init__(name, reason)
        self.snapshot = snapshot


class ProjectNewerError(ProjectError):
    """A file of the project's memory was written by a newer version of Turnfold; `detail` names it."""

    code = "project_newer"


class ClosingError(TurnfoldError):
    """The server is shutting down and accepts nothing more; committed messages are retained."""

    code = "closing"


class InternalError(TurnfoldError):
    """A defect in Turnfold, caught and logged at the edge of a worker."""

    code = "internal"


class ModelError(TurnfoldError):
    """Base of all errors of a model call; `is_transient` if a retry may succeed."""

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
    """No connection to the endpoint: refused, reset, or an unknown host; `detail` is its address, if known."""

    code = "unreachable"
    is_transient = True


class DeadlineError(ModelError):
    """The call with its retries took longer than its deadline; `detail` is the number of seconds."""

    code = "deadline"


class SilenceError(DeadlineError):
    """The endpoint showed no sign of life for the longest silence; `detail` is the number of seconds."""

    code = "silence"


class CutStreamError(ModelError):
    """The stream ended without a finish reason, or in the middle of the answer."""

    code = "cut_stream"
    is_transient = True


class EmptyAnswerError(ModelError):
    """The answer ended properly but has neither text nor a tool call."""

    code = "empty_answer"
    is_transient = True


class ThoughtLimitError(EmptyAnswerError):
    """The answer has thoughts alone, or ended at the length limit before its first word; another would end likewise."""

    code = "thought_limit"
    is_transient = False


class RefusedError(ModelError):
    """The model or its content filter refused to answer."""

    code = "refused"


class NoImagesError(ModelError):
    """The model takes no images, by what its server lists or answers; `detail` is the model's name or the answer."""

    code = "no_images"


class RejectedError(ModelError):
    """400, 413 or 422: the endpoint refuses this request, and would again; `detail` is its reason."""

    code = "rejected"


class ToolChoiceError(RejectedError):
    """400 naming `tool_choice`, which the endpoint doesn't support; the call is repeated without it."""


class ToolsRefusedError(RejectedError):
    """The endpoint or its model takes no tools; the call is repeated without them unless a program offered them."""

    code = "tools_refused"


class BadResponseError(ModelError):
    """The response violates the protocol."""

    code = "bad_response"


class ProviderError(ModelError):
    """5xx: the endpoint failed."""

    code = "provider"
    is_transient = True


class ToolRoundsError(ModelError):
    """The model still called tools after the last round and gave no answer."""

    code = "tool_rounds"


AttachmentReason = Literal[
    "bad_image",
    "busy",
    "damaged",
    "empty",
    "encrypted",
    "hwp",
    "kind",
    "lost",
    "no_text",
    "not_text",
    "old_office",
    "too_heavy",
    "too_large",
    "too_long",
    "too_many",
    "too_many_images",
    "too_many_pages",
    "too_many_pixels",
    "upload",
]


class AttachmentError(TurnfoldError):
    """A file is refused and nothing of it was stored; `detail` is the file's name, `figure` its size, if told."""

    code: ClassVar[str] = "attachment"

    def __init__(self, reason: AttachmentReason, name: str = "", *, figure: int = 0) -> None:
        super().__init__(name)
        self.reason = reason
        self.figure = figure


class McpError(TurnfoldError):
    """A server of tools can't be used; `detail` is its name and the reason, without secrets."""

    code: ClassVar[str] = "mcp"

    def __init__(self, server: str, reason: str = "") -> None:
        super().__init__(f"{server}: {reason}" if reason else server)
        self.server = server
        self.reason = reason
