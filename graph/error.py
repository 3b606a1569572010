"""Every error that Turnfold raises on purpose, as one hierarchy.

* TurnfoldError
  x SettingsError
  x InputError
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
    "not_a_compaction",
    "not_an_export",
    "not_last",
    "nothing_to_compact",
    "over_window",
    "too_long",
]


class TurnfoldError(Exception):
    """Base of all errors that Turnfold raises on purpose.

    Attributes:
        code: Stable name of the failure; the page looks its sentence up by it, in the user's language.
        detail: Short extra words for the sentence (a number, a model's name). Never a key, never message text.
        advice: What whoever runs the server can do about it, "" if there's nothing to say.
    """

    code: ClassVar[str] = "internal"
    advice: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(f"{self.code}: {detail}" if detail else self.code)
        self.detail = detail


class SettingsError(TurnfoldError):
    """A setting has a value it can't take; `detail` names the variable and what it takes."""

    code = "settings"


class InputError(TurnfoldError):
    """The user's input can't be taken as it is; nothing was stored. `reason` says what is wrong with it."""

    code = "input"

    def __init__(self, reason: InputReason, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


class NotFoundError(TurnfoldError):
    """The named session, turn or record isn't there (or belongs to another owner)."""

    code = "not_found"


class BusyError(TurnfoldError):
    """The session has a turn in progress and the caller didn't ask to wait for it."""

    code = "busy"


class ServerBusyError(BusyError):
    """The server runs as many turns as it may; `detail` is how many. Nothing was stored."""

    code = "server_busy"


class TurnRateError(BusyError):
    """As many turns as allowed began within the last minute; `detail` is how long to wait. Nothing was stored."""

    code = "turn_rate"


class TurnStoppedSignal(TurnfoldError):  # noqa: N818 - a signal, no error: it only unwinds the run
    """The user pressed Stop: not a fault, but it ends the graph's run on its way out."""

    code = "stopped"


class StoreError(TurnfoldError):
    """Base of what can go wrong in keeping what was said."""

    code = "store"


class DatabaseError(StoreError):
    """The database refused a read or a write; the transaction was rolled back."""

    code = "database"


class NotADatabaseError(DatabaseError):
    """The file at the configured place is no database, or a damaged one."""

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
    """No room left on the disk; the transaction was rolled back."""

    code = "disk_full"
    advice = "Make room on the disk, or name another folder by TURNFOLD_DATA_DIR."


class LeaseLostError(StoreError):
    """This worker's lease of the session ran out and somebody else has taken it."""

    code = "lease_lost"


class ModelError(TurnfoldError):
    """Base of what can go wrong in a call of a model.

    Attributes:
        is_transient: Whether the same call may succeed if it's made again.
        retry_after_seconds: How long the provider asked to wait, or None.
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
    """429: too many requests for now."""

    code = "rate_limit"
    is_transient = True


class QuotaError(ModelError):
    """429 with `insufficient_quota`: the account has no credit left."""

    code = "quota"


class ContextLengthError(ModelError):
    """The input is longer than the model's context window."""

    code = "context_length"


class UnreachableError(ModelError):
    """No connection to the endpoint: refused, reset, or its name is unknown."""

    code = "unreachable"
    is_transient = True


class DeadlineError(ModelError):
    """The whole call, retries included, took longer than its deadline."""

    code = "deadline"


class CutStreamError(ModelError):
    """The stream ended without a finish reason, or in the middle of the answer."""

    code = "cut_stream"
    is_transient = True


class EmptyAnswerError(ModelError):
    """The model ended its answer properly but said nothing and called no tool."""

    code = "empty_answer"
    is_transient = True


class RefusedError(ModelError):
    """The model or its content filter refused to answer."""

    code = "refused"


class BadResponseError(ModelError):
    """What came back isn't what the protocol promises."""

    code = "bad_response"


class ToolChoiceError(BadResponseError):
    """400 that names `tool_choice`: the endpoint takes none. The call is made without it; the user never sees this."""


class ProviderError(ModelError):
    """5xx: the endpoint failed by itself."""

    code = "provider"
    is_transient = True


class ToolRoundsError(ModelError):
    """The model kept asking for tools after its last round and gave no answer."""

    code = "tool_rounds"


class ClosingError(TurnfoldError):
    """The server is ending and takes nothing more; what was acknowledged is kept."""

    code = "closing"


class InternalError(TurnfoldError):
    """A defect of ours, caught at the edge of a worker and logged there."""

    code = "internal"
