"""The service of the page's user, who is identified by Streamlit's sign-in; configures the sign-in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import streamlit as st
from streamlit import auth_util, config
from streamlit.runtime.secrets import secrets_singleton
from streamlit.web.server.starlette import starlette_websocket
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME
from websockets import http11

from graph.server.identity import Identity, identity_of, is_loopback
from graph.server.settings import Settings
from graph.value.error import ClosingError, SettingsError, SignInError, TurnfoldError

if TYPE_CHECKING:
    from graph.service import ChatService

_SECRET_BYTES: Final = 32
COOKIE_BYTES: Final = 32_768
# Without the e-mail address, which isn't needed.
_SCOPE: Final = "openid profile"


def visitor(settings: Settings) -> Identity | None:
    """Returns the user signed in to this tab's page; None if the server has no sign-in. Raises `SignInError`.

    Doesn't check that the sign-in is still valid: `ChatService.for_owner` does.
    """
    if settings.oidc_issuer is None:
        return None
    identity = identity_from(st.user, settings) if st.user.get("is_logged_in") is True else None
    if identity is None:
        raise SignInError("needed")
    return identity


def identity_from(claims: Mapping[str, object], settings: Settings) -> Identity | None:
    """Returns the identity in verified claims; None if they don't contain one."""
    issuer = settings.oidc_issuer
    return None if issuer is None else identity_of(claims, issuer=issuer, hours=settings.sign_in_hours)


def claims_in(cookies: Mapping[str, str], origin: str) -> dict[str, Any]:
    """Returns the claims of a sign-in cookie; empty if this server didn't sign it for this origin."""
    cookie = starlette_websocket._get_signed_cookie_with_chunks(dict(cookies), USER_COOKIE_NAME)  # noqa: SLF001  # has no public name
    try:
        return starlette_websocket._parse_decoded_user_cookie(cookie, origin) if cookie else {}  # noqa: SLF001  # nor has this
    except ValueError:  # the origin isn't a URL, such as "https://["
        return {}


def prepare(settings: Settings) -> None:
    """Configures Streamlit's sign-in before the first page is drawn.

    Raises `SettingsError` if strangers could get access: through a reachable address, or with a forged cookie or
    header.
    """
    if settings.oidc_client_secret is None:
        _check_address(is_open=settings.open_without_sign_in)
        return
    if not auth_util.is_authlib_installed():
        msg = "OIDC_ISSUER: signing in needs the package Authlib: pip install 'streamlit[auth]'"
        raise SettingsError(msg)
    if config.get_option("server.trustedUserHeaders") not in ({}, "{}", "", None):
        msg = "STREAMLIT_SERVER_TRUSTED_USER_HEADERS can't be used with OIDC_ISSUER: a visitor could say who he is"
        raise SettingsError(msg)
    # Streamlit signs the redirect to the provider with this secret, in preference to any other.
    is_set = config.is_manually_set("server.cookieSecret")
    secret = config.get_option("server.cookieSecret") if is_set else ""
    if len(secret.encode()) < _SECRET_BYTES:
        msg = (
            f"STREAMLIT_SERVER_COOKIE_SECRET takes at least {_SECRET_BYTES} bytes, the same on all servers: with it "
            "anybody could sign in as anybody. Make one with: openssl rand -hex 32"
        )
        raise SettingsError(msg)
    # Streamlit's sign-in cookies contain the provider's tokens; over 8 KiB they would lock the user out of the page.
    http11.MAX_LINE_LENGTH = COOKIE_BYTES
    secrets_singleton.merge_programmatic_secrets(
        {
            "auth": {
                "redirect_uri": f"{settings.turnfold_origin}/oauth2callback",
                "cookie_secret": secret,
                "client_id": settings.oidc_client_id or "",
                "client_secret": settings.oidc_client_secret.get_secret_value(),
                "server_metadata_url": f"{(settings.oidc_issuer or '').rstrip('/')}/.well-known/openid-configuration",
                "client_kwargs": {"scope": _SCOPE, "prompt": "select_account"},
            }
        }
    )


def _check_address(*, is_open: bool) -> None:
    address = config.get_option("server.address")
    if is_open or (address and is_loopback(address)):
        return
    msg = (
        f"STREAMLIT_SERVER_ADDRESS ({address or 'all addresses'}) is one that others reach, and whoever reaches this "
        "server without a sign-in sees all chats. Set OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and "
        "TURNFOLD_ORIGIN; or OPEN_WITHOUT_SIGN_IN=true, if something in front of it asks who comes"
    )
    raise SettingsError(msg)


class _Provided:
    service: ChatService | None = None


def provide(service: ChatService | None) -> None:
    """Sets the server's service; None removes it at shutdown."""
    _Provided.service = service


def current() -> ChatService:
    """Returns the service of this tab's user; call it again in each run and each callback.

    Raises:
        SignInError: Nobody is signed in, or the sign-in has ended.
        ClosingError: The server is shutting down.
    """
    service = opened()
    identity = visitor(service.settings)
    return service if identity is None else service.for_owner(identity.owner, sign_in=identity.sign_in)


def is_signed_out() -> bool:
    try:
        current()
    except SignInError:
        return True
    except TurnfoldError:  # the page shows the error
        return False
    return False


def opened() -> ChatService:
    """Returns the server's service, which belongs to no user. Raises `ClosingError` if the server is shutting down."""
    if _Provided.service is None:
        raise ClosingError
    return _Provided.service
