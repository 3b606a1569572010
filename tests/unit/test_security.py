from __future__ import annotations

from collections.abc import Mapping

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from component.security import SecurityHeaders
from graph.settings import Settings

BEHIND_HTTPS = {"turnfold_origin": "https://chat.example.com", "turnfold_hosts": "chat.example.com"}


def cookies_of(address: str, settings: Mapping[str, object]) -> list[str]:
    def answer(_: Request) -> Response:
        response = Response()
        response.set_cookie("user", "kim; secure=no", httponly=True, samesite="lax")
        response.set_cookie("ours", "1", secure=True)
        response.delete_cookie("old")
        return response

    read = Settings(_env_file=None, **settings)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    app = Starlette(routes=[Route("/", answer)], middleware=[Middleware(SecurityHeaders, lambda: read)])
    return TestClient(app, base_url=address).get("/").headers.get_list("set-cookie")


@pytest.mark.parametrize(
    ("address", "settings"), [("http://chat.example.com", BEHIND_HTTPS), ("https://localhost", {})]
)
def test_cookies_of_https_are_for_https_alone(address: str, settings: Mapping[str, object]) -> None:
    cookies = cookies_of(address, settings)
    assert [cookie.partition("=")[0] for cookie in cookies] == ["user", "ours", "old"]
    assert [cookie.lower().count("; secure") for cookie in cookies] == [1, 1, 1]
    assert "HttpOnly" in cookies[0]


def test_cookies_of_this_computer_alone_stay_as_they_are() -> None:
    assert ["Secure" in cookie for cookie in cookies_of("http://localhost:8501", {})] == [False, True, False]
