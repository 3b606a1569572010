"""All settings with names, bounds and defaults; read when the service is opened, never at import."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated, Final, Literal, Self, TypeVar
from urllib.parse import urlsplit

from pydantic import BeforeValidator, Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from graph.core.cost import PriceList, read_prices
from graph.core.model_options import ModelOptions, read_options
from graph.server.identity import (
    LONGEST_SIGN_IN_HOURS,
    OWNER_CHARS,
    ApiToken,
    check_issuer,
    check_origin,
    check_token,
    host_of,
    is_in_own_network,
    is_loopback,
    read_list,
    read_tokens,
    refuse,
)
from graph.strategy.base import Limits
from graph.value.error import SettingsError
from graph.value.view import FoldWhen

Rate = Annotated[float, Field(ge=0.1, le=0.5)]
Seconds = Annotated[float, Field(gt=0, le=3600)]
LongSeconds = Annotated[float, Field(gt=0, le=86_400)]
_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_-]+(\.[a-z0-9_-]+)*)(:\d{1,5})?", re.ASCII)
_POSTGRES: Final = re.compile(r"postgresql(\+psycopg)?://(?=[^/?#]*/[^/?#])", re.ASCII)
# Of the pools of other programs, as providers of Postgres show their URLs; Turnfold's own works behind any pool.
_OF_OTHER_POOLS: Final = re.compile(
    r"(?<=[?&])(?:pgbouncer|connection_limit|pool_timeout|pool_size|max_overflow|prepareThreshold|supa|workaround"
    r"|(?:prepared_)?statement_cache_size)(?:=[^&#]*)?(?:&|\Z)",
    re.ASCII,
)
_UNKNOWN_PARAMETER: Final = re.compile(r'URI query parameter: "([\w.-]{1,40})"', re.ASCII)
_PORT: Final = re.compile(r":\d+$")
_TOOL_PATTERN: Final = re.compile(r"!?[^:!]+:.+")
_ALL: Final = "all"
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/*]+", re.ASCII)


def _read_by(read: Callable[[str], object]) -> BeforeValidator:
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


_T = TypeVar("_T")
_Listed = Annotated[_T, NoDecode, _read_by(read_list)]
_Token = Annotated[SecretStr, _read_by(lambda text: check_token(text.strip()))]


class Settings(BaseSettings):
    """The settings of one server, each from the environment variable of the field's name in capitals.

    The environment takes precedence over `.env` in the working folder. An empty value counts as unset.
    """

    model_config = SettingsConfigDict(
        env_file=".env",
        env_file_encoding="utf-8",
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
    )

    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    chat_model: str | None = None
    chat_summary_model: str | None = None
    model_window_tokens: Annotated[int, Field(ge=1_000, le=10_000_000)] | None = None
    model_silence_seconds: Seconds = 120
    model_deadline_seconds: LongSeconds | None = None
    model_slots: Annotated[int, Field(ge=1, le=1000)] | None = None
    model_attempts: Annotated[int, Field(ge=1, le=10)] = 3
    model_prices: Annotated[PriceList | None, NoDecode, _read_by(read_prices)] = None
    model_options: Annotated[ModelOptions | None, NoDecode, _read_by(read_options)] = None

    embedding_model: str | None = None
    embedding_base_url: str | None = None
    embedding_api_key: SecretStr | None = None

    turnfold_data_dir: Path = Path("data")
    chat_database_url: SecretStr | None = None
    turnfold_owner: Annotated[str, Field(min_length=1, max_length=OWNER_CHARS)] = "local"
    turnfold_language: Literal["auto", "ko", "en"] = "auto"
    turnfold_log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "WARNING"

    compression_rate: Rate = 0.3
    context_strategy: Literal["interval", "rolling", "compaction", "window"] = "interval"
    fold_when: FoldWhen = Limits.fold_when
    app_context_enabled: bool = True
    app_context_threshold: Annotated[int, Field(ge=100, le=10_000_000)] = Limits.app_context_threshold
    app_context_recent_messages: Annotated[int, Field(ge=0, le=1_000)] = Limits.app_context_recent_messages
    rolling_sends_unsummarised: bool = Limits.rolling_sends_unsummarised
    max_context_tokens: Annotated[int, Field(ge=1_000, le=10_000_000)] = Limits.max_context_tokens
    compaction_threshold: Annotated[float, Field(ge=0.1, le=1)] = Limits.compaction_threshold
    preserve_recent_messages: Annotated[int, Field(ge=1, le=1_000)] = Limits.preserve_recent_messages
    enable_auto_compaction: bool = Limits.enable_auto_compaction
    window_turns: Annotated[int, Field(ge=0, le=1_000)] = Limits.window_turns
    records_budget_tokens: Annotated[int, Field(ge=500, le=1_000_000)] = Limits.records_budget_tokens
    merged_tokens: Annotated[int, Field(ge=100, le=100_000)] = Limits.merged_tokens
    merged_together: Annotated[int, Field(ge=2, le=100)] = Limits.merged_together
    newest_records: Annotated[int, Field(ge=0, le=1_000)] = Limits.newest_records
    guard_share: Annotated[float, Field(ge=0.1, le=0.95)] = 0.75
    fold_wait_seconds: Annotated[float, Field(ge=0, le=10)] = 10
    fold_deadline_seconds: LongSeconds | None = None
    fold_in_place: Literal["auto", "always", "never"] = "auto"
    tool_rounds: Annotated[int, Field(ge=1, le=50)] = 8
    tool_result_chars: Annotated[int, Field(ge=200, le=1_000_000)] = 10_000
    tool_deadline_seconds: Seconds = 30
    message_chars: Annotated[int, Field(ge=1, le=10_000_000)] = 200_000
    auto_titles: bool = True

    mcp_servers: Path | None = None
    mcp_allow: _Listed[tuple[str, ...]] = ()

    project_roots: _Listed[tuple[Path, ...]] = ()
    context_volatile: Literal["merge", "request"] = "merge"

    turnfold_hosts: _Listed[tuple[str, ...]] = ()
    chat_api_token: _Token | None = None
    chat_api_tokens: Annotated[tuple[ApiToken, ...], NoDecode, _read_by(read_tokens)] = ()
    chat_api_personal: _Listed[tuple[str, ...]] = ()
    chat_api_origins: _Listed[tuple[str, ...]] = ()
    metrics_token: _Token | None = None

    oidc_issuer: Annotated[str, _read_by(lambda url: check_issuer(url.strip()))] | None = None
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    turnfold_origin: Annotated[str, _read_by(lambda url: check_origin(url.strip()))] | None = None
    sign_in_hours: Annotated[float, Field(gt=0, le=LONGEST_SIGN_IN_HOURS)] = 12
    open_without_sign_in: bool = False

    concurrent_turns: Annotated[int, Field(ge=1, le=1000)] = 16
    turns_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] = 600

    user_concurrent_turns: Annotated[int, Field(ge=1, le=1000)] | None = None
    user_turns_per_minute: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    user_tokens_per_day: Annotated[int, Field(ge=1, le=10**12)] | None = None

    busy_timeout_seconds: Seconds = 30
    lease_seconds: Seconds = 20
    heartbeat_seconds: Seconds = 5

    @field_validator("openai_base_url", "embedding_base_url")
    @classmethod
    def _is_http(cls, value: str | None) -> str | None:
        if value is not None and not value.startswith(("http://", "https://")):
            refuse("takes a URL that begins with http:// or https://")
        return value

    @field_validator("openai_api_key", "embedding_api_key")
    @classmethod
    def _is_one_line(cls, value: SecretStr | None) -> SecretStr | None:
        key = value.get_secret_value().strip() if value is not None else ""
        if not (key.isascii() and key.isprintable()):
            refuse("takes one line of Latin letters, digits and signs")
        return SecretStr(key) if key else None

    @field_validator("chat_database_url")
    @classmethod
    def _is_of_postgres(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        url = value.get_secret_value().strip()
        if (scheme := _POSTGRES.match(url)) is None:
            refuse("takes postgresql://user:password@host:port/database")
        url = _OF_OTHER_POOLS.sub("", f"postgresql://{url[scheme.end() :]}").rstrip("?&")
        from psycopg import Error, conninfo  # noqa: PLC0415  # slow, and most have no such URL

        try:
            conninfo.conninfo_to_dict(url)
        except Error as error:  # its other messages may quote the password
            named = _UNKNOWN_PARAMETER.search(str(error))
            msg = f"has the parameter {named[1]}, which Postgres doesn't know" if named else "can't be read as a URL"
            raise ValueError(msg) from None
        return SecretStr(url)

    @field_validator("mcp_allow")
    @classmethod
    def _are_patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not all(map(_TOOL_PATTERN.fullmatch, value)):
            refuse("takes patterns with commas between them, such as files:read_*,!git:*")
        return value

    @field_validator("turnfold_hosts")
    @classmethod
    def _are_hosts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        hosts = tuple(host.lower() for host in value)
        if not all(map(_HOST.fullmatch, hosts)):
            refuse("takes names or addresses with commas between them, such as chat.example.com or 192.0.2.7:8501")
        return hosts

    @field_validator("chat_api_origins")
    @classmethod
    def _are_origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        origins = tuple(origin.lower().rstrip("/") for origin in value)
        if not all(map(_ORIGIN.fullmatch, origins)):
            refuse("takes origins with commas between them, such as https://chat.example.com")
        return origins

    @field_validator("project_roots")
    @classmethod
    def _are_absolute(cls, value: tuple[Path, ...]) -> tuple[Path, ...]:
        # Existence is checked on use: a disk may be mounted later.
        if relative := [str(path) for path in value if not path.is_absolute()]:
            refuse(f"takes absolute paths with commas between them, not {relative[0]!r}")
        return value

    @model_validator(mode="after")
    def _lease_outlasts_a_missed_heartbeat(self) -> Self:
        if self.lease_seconds < 2 * self.heartbeat_seconds:
            refuse(
                f"LEASE_SECONDS ({self.lease_seconds:g}) must be at least twice HEARTBEAT_SECONDS "
                f"({self.heartbeat_seconds:g}), or a turn loses its session while it runs"
            )
        return self

    @model_validator(mode="after")
    def _programs_differ(self) -> Self:
        for kind, values in (
            ("names", [token.name for token in self.api_tokens]),
            ("tokens", [token.token for token in self.api_tokens]),
        ):
            if len(set(values)) < len(values):
                refuse(f"CHAT_API_TOKENS takes {kind} that differ from each other, and from that of CHAT_API_TOKEN")
        return self

    @model_validator(mode="after")
    def _personal_tokens_exist(self) -> Self:
        names = [token.name for token in self.api_tokens]
        for number, name in enumerate(self.chat_api_personal, start=1):
            if name not in (_ALL, *names):
                # Without the entry itself, which may be a token in the wrong place.
                known = ", ".join(names) or "there are none"
                refuse(f"CHAT_API_PERSONAL takes {_ALL}, or names of tokens ({known}); not its entry {number}")
        return self

    @model_validator(mode="after")
    def _sign_in_is_whole(self) -> Self:
        of_provider = (self.oidc_issuer, self.oidc_client_id, self.oidc_client_secret)
        if any(of_provider) and not all((*of_provider, self.turnfold_origin)):
            refuse(
                "OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and TURNFOLD_ORIGIN are needed all four for a sign-in"
            )
        host = host_of(self.turnfold_origin or "")
        name = _PORT.sub("", host)
        if host and not (is_loopback(name) or {host, name} & {*self.turnfold_hosts}):
            refuse(f"TURNFOLD_HOSTS must name {name}, the host of TURNFOLD_ORIGIN, or nobody is answered there")
        return self

    @model_validator(mode="after")
    def _embeddings_have_an_endpoint(self) -> Self:
        endpoints = (self.openai_api_key, self.openai_base_url, self.embedding_api_key, self.embedding_base_url)
        if self.embedding_model is not None and not any(endpoints):
            refuse(
                "EMBEDDING_MODEL needs an endpoint: EMBEDDING_BASE_URL or EMBEDDING_API_KEY, or the chat's "
                "OPENAI_BASE_URL or OPENAI_API_KEY"
            )
        return self

    @property
    def has_sign_in(self) -> bool:
        return self.oidc_issuer is not None

    def memory_owner(self, owner: str) -> str:
        """Returns the owner of the project memory used by an owner's sessions; "" for the server's memory.

        Without a sign-in, and for `TURNFOLD_OWNER`, the server's: notes from before a sign-in existed stay theirs.
        """
        return owner if self.has_sign_in and owner != self.turnfold_owner else ""

    @property
    def is_https(self) -> bool:
        return (self.turnfold_origin or "").startswith("https:")

    @property
    def api_tokens(self) -> tuple[ApiToken, ...]:
        """The tokens of all programs with access; none if the HTTP API is off."""
        single = () if self.chat_api_token is None else (ApiToken("api", self.turnfold_owner, self.chat_api_token),)
        tokens, personal = (*single, *self.chat_api_tokens), {*self.chat_api_personal}
        return tuple(replace(token, is_personal=bool(personal & {_ALL, token.name})) for token in tokens)

    @property
    def owner_turns(self) -> int:
        """Maximum of running turns per owner: by default all for a single owner, half if there may be others."""
        if self.user_concurrent_turns is not None:
            return min(self.user_concurrent_turns, self.concurrent_turns)
        has_others = self.has_sign_in or any(token.owner != self.turnfold_owner for token in self.api_tokens)
        return (self.concurrent_turns + 1) // 2 if has_others else self.concurrent_turns

    @property
    def is_offline(self) -> bool:
        """True without an endpoint: the embedded offline model answers."""
        return self.openai_api_key is None and self.openai_base_url is None

    @property
    def has_one_slot(self) -> bool:
        """Whether the endpoint is taken to answer one request at a time, as long as it doesn't tell.

        Default: true for a server in the own network, as most local servers have one slot.
        """
        if self.model_slots is not None:
            return self.model_slots == 1
        return bool(self.openai_base_url) and is_in_own_network(urlsplit(self.openai_base_url or "").hostname or "")

    @property
    def limits(self) -> Limits:
        names = {field.name for field in fields(Limits)} & set(type(self).model_fields)
        return Limits(**{name: getattr(self, name) for name in names})

    @property
    def database_path(self) -> Path:
        return self.turnfold_data_dir / "turnfold.db"

    @property
    def checkpoint_path(self) -> Path:
        """SQLite file of LangGraph's checkpoints, which can always be rebuilt from the database."""
        return self.turnfold_data_dir / "checkpoint.db"


def load_settings(**given: str) -> Settings:
    """Reads the environment and `.env`; `given` takes precedence. `SettingsError` names invalid variables."""
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic reads the texts
    except ValidationError as error:
        raise SettingsError("; ".join(map(_sentence, error.errors(include_input=False)))) from None


def _sentence(item: ErrorDetails) -> str:
    """Formats the message for one variable; a message about several variables contains their names."""
    message = item["msg"].removeprefix("Value error, ")
    return f"{str(item['loc'][0]).upper()}: {message}" if item["loc"] else message
