"""The settings of a server with a sign-in, for tests in which nobody signs in."""

from __future__ import annotations

from typing import Any, Final

PROVIDER: Final[dict[str, Any]] = {
    "oidc_issuer": "https://id.example.com",
    "oidc_client_id": "turnfold",
    "oidc_client_secret": "secret-of-the-client",
    "turnfold_origin": "https://chat.example.com",
    "turnfold_hosts": ("chat.example.com",),
}
