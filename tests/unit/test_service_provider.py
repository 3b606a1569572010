from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def asks_for_opened(path: Path) -> bool:
    """Whether a module names the service that the server opened, which is no visitor's."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Attribute(value=ast.Name(id="service_provider"), attr="opened"):
                return True
            case ast.ImportFrom(module=str(module)) if module.endswith(".service_provider"):
                return True  # whatever it is called then
            case ast.alias(name="service_provider", asname=str()):
                return True
    return False


def test_only_what_is_of_no_visitor_asks_for_the_service_that_the_server_opened() -> None:
    paths = [ROOT / "app.py", *(ROOT / "component").rglob("*.py"), *(ROOT / "api").rglob("*.py")]
    assert {path.stem for path in paths if asks_for_opened(path)} == {
        "app",
        "page",
        "security",
    }
