"""What the terminal says of the HTTP API of a server that has started."""

from __future__ import annotations

from io import BytesIO, TextIOWrapper

from graph.server.settings import Settings
from graph.server.start import say, welcome

CANARY = "canary-0123456789-abcdef"


def api_line(made: tuple[int, int], **values: object) -> str:
    settings = Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    said = welcome(settings, "http://localhost:8501", "", made)
    assert "canary" not in said
    (line,) = (line for line in said.splitlines() if line.split()[:1] == ["API"])
    return line.split(maxsplit=1)[1]


def test_the_api_is_named_with_its_tokens_and_whose_they_are() -> None:
    tokens = {"chat_api_token": CANARY, "chat_api_tokens": f"편집기:kim:{CANARY}1", "chat_api_personal": "편집기"}
    url = "http://localhost:8501/v1. Tokens: "
    assert api_line((0, 0), **tokens) == f"{url}api (shared), 편집기 (personal)"
    assert api_line((2, 0)) == f"{url}2 made on the page (personal)"
    assert api_line((2, 1), chat_api_token=CANARY) == (
        f"{url}api (shared), 2 made on the page (personal), 1 made on the page (shared)"
    )


def test_the_model_is_named_with_the_port_and_without_the_password_of_its_address() -> None:
    settings = Settings(_env_file=None, openai_base_url="http://kim:canary@127.0.0.1:9301/v1", openai_api_key="key")  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values
    said = welcome(settings, "http://localhost:8501", "gpt-4.1-mini", (0, 0))
    assert "gpt-4.1-mini at 127.0.0.1:9301. For another one" in said
    assert "canary" not in said


def test_without_a_token_it_says_how_to_make_one() -> None:
    assert api_line((0, 0)) == 'off until there is a token: CHAT_API_TOKEN in .env, or "API access" on the page'


def test_a_terminal_that_lacks_letters_of_a_name_is_told_the_rest() -> None:
    for encoding, told in (("ascii", b"\\ud3b8 (shared)\n"), ("utf-8", "편 (shared)\n".encode())):
        written = BytesIO()
        stream = TextIOWrapper(written, encoding=encoding, newline="\n")
        say("편 (shared)", stream)
        assert written.getvalue() == told
