from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from api.middleware import MetricsGuard, metrics_route
from graph.server.metrics import Metrics
from graph.server.settings import Settings

TOKEN = "canary-0123456789-abcdef"  # noqa: S105  # of this test alone
STREAMLITS = "/_stcore/metrics"
PATHS = ("/metrics", STREAMLITS)


def client_of(token: str | None = None, *, address: str = "127.0.0.1", base: str = "http://localhost") -> TestClient:
    settings = Settings(_env_file=None, metrics_token=token)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    routes = [
        metrics_route(Metrics().render),
        Route(STREAMLITS, lambda _: PlainTextResponse("cache_memory_bytes 1")),
        Route("/health", lambda _: PlainTextResponse("ok")),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(MetricsGuard, lambda: settings)])
    return TestClient(app, base_url=base, client=(address, 50_000))


def test_this_computer_reads_the_figures_without_a_token() -> None:
    for path, address in zip(cycle(PATHS), ("127.0.0.1", "127.9.9.9", "::1")):
        answer = client_of(address=address).get(path)
        assert answer.status_code == 200
        assert answer.text


def test_nobody_else_does() -> None:
    askers: list[tuple[str, str, Mapping[str, str]]] = [
        ("192.0.2.7", "http://localhost", {}),
        ("10.0.0.1", "http://localhost", {"X-Forwarded-For": "127.0.0.1"}),
        ("not-an-address", "http://localhost", {}),
        ("127.0.0.1", "http://chat.example.com", {}),
        ("127.0.0.1", "http://localhost", {"X-Forwarded-For": "192.0.2.7"}),
        ("127.0.0.1", "http://localhost", {"Forwarded": "for=192.0.2.7"}),
        ("127.0.0.1", "http://localhost", {"X-Real-IP": "192.0.2.7"}),
        ("127.0.0.1", "http://localhost", {"Via": "1.1 proxy"}),
    ]
    paths = [*PATHS, "/metrics/", "/_stcore/metrics/", "/base/_stcore/metrics"]
    pairs = [*zip(askers, cycle(paths)), *((askers[0], path) for path in paths)]
    for (address, base, headers), path in pairs:
        answer = client_of(address=address, base=base).get(path, headers=headers)
        assert (answer.status_code, answer.text) == (404, "Not Found"), (address, path, headers)


def test_with_a_token_in_the_settings_it_is_asked_of_everybody() -> None:
    for path, address in zip(PATHS, ("127.0.0.1", "192.0.2.7"), strict=True):
        client = client_of(TOKEN, address=address, base="http://chat.example.com")
        assert client.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        for sent in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, f"Bearer {TOKEN.upper()}"):
            answer = client.get(path, headers={"Authorization": sent})
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert "canary" not in answer.text
        assert client.get(f"{path}?token={TOKEN}").status_code == 401


def test_other_paths_pass_and_the_figures_are_prometheuss_text() -> None:
    assert client_of(TOKEN, address="192.0.2.7").get("/health").text == "ok"
    answer = client_of().get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=")
    assert answer.headers["cache-control"] == "no-store"
    assert "# TYPE turnfold_turns_total counter" in answer.text
