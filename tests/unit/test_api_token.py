from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graph.server.identity import ApiToken
from graph.server.settings import Settings, load_settings
from graph.value.error import SettingsError

CANARY = "canary-0123456789-abcdef"


def settings_of(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[call-arg, arg-type]  # the base class's own argument; pydantic checks the values


def told(tokens: tuple[ApiToken, ...]) -> list[tuple[str, str, str, frozenset[str] | None]]:
    return [(token.name, token.owner, token.token.get_secret_value(), token.tools) for token in tokens]


def test_the_door_is_off_until_a_token_is_set_and_one_token_is_that_of_the_servers_owner() -> None:
    assert settings_of().api_tokens == ()
    assert told(settings_of(turnfold_owner="kim", chat_api_token=CANARY).api_tokens) == [("api", "kim", CANARY, None)]


def test_a_named_token_has_an_owner_and_may_have_tools() -> None:
    lists: list[tuple[str, frozenset[str] | None]] = [
        (f"editor:kim:{CANARY}", None),
        (f" editor : kim : {CANARY} ,", None),
        (f"editor:kim:{CANARY}:", frozenset()),
        (f"\neditor:kim:{CANARY}:recall + current_time\n", frozenset({"recall", "current_time"})),
    ]
    for listed, tools in lists:
        assert told(settings_of(chat_api_tokens=listed).api_tokens) == [("editor", "kim", CANARY, tools)]


def test_several_tokens_stand_beside_the_single_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHAT_API_TOKEN", CANARY)
    monkeypatch.setenv("CHAT_API_TOKENS", f"편집기:김민수:{CANARY}1,script:kim:{CANARY}2")
    names = [(token.name, token.owner) for token in load_settings().api_tokens]
    assert names == [("api", "local"), ("편집기", "김민수"), ("script", "kim")]


def test_a_token_that_cannot_be_taken_ends_the_start_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = [CANARY, f"editor:{CANARY}", f":kim:{CANARY}", f"editor::{CANARY}", f"edi\u202etor:kim:{CANARY}"]
    lists += ["editor:kim:canary-tooshort", f"editor:kim:{CANARY}:recall:more"]
    lists += [f"a:kim:{CANARY},a:kim:{CANARY}x", f"a:kim:{CANARY},b:kim:{CANARY}"]
    wrong = [("CHAT_API_TOKENS", listed) for listed in lists]
    singles = ("canary-tooshort", "canary 0123456789 abcdef", "canary-0123456789-äöü")
    wrong += [("CHAT_API_TOKEN", token) for token in singles]
    for name, value in wrong:
        with monkeypatch.context() as environment:
            environment.setenv(name, value)
            with pytest.raises(SettingsError, match=name) as caught:
                load_settings()
            assert "canary" not in str(caught.value)
    # The single one takes part in the comparison.
    with pytest.raises(ValidationError, match="CHAT_API_TOKENS") as twice:
        settings_of(chat_api_token=CANARY, chat_api_tokens=f"b:kim:{CANARY}")
    assert "canary" not in str(twice.value)


def test_tokens_are_shared_but_for_those_that_are_named_as_one_persons() -> None:
    listed = f"편집기:kim:{CANARY}1,script:lee:{CANARY}2"
    for personal, names in (
        ("", set()),
        ("api", {"api"}),
        (" script,\n편집기 ,", {"script", "편집기"}),
        ("all", {"api", "편집기", "script"}),
    ):
        settings = settings_of(chat_api_token=CANARY, chat_api_tokens=listed, chat_api_personal=personal)
        assert {token.name for token in settings.api_tokens if token.is_personal} == names
    assert settings_of(chat_api_personal="all").api_tokens == ()


def test_a_name_that_no_token_has_ends_the_start_without_being_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for tokens, named, said in (
        (f"editor:kim:{CANARY}1", f"editor,{CANARY}1", r"names of tokens \(editor\); not its entry 2"),
        (f"editor:kim:{CANARY}1", "api", r"\(editor\); not its entry 1"),  # there is no CHAT_API_TOKEN
        (f"editor:kim:{CANARY}1", "Editor", r"not its entry 1"),
        ("", "canary", r"\(there are none\); not its entry 1"),
    ):
        monkeypatch.setenv("CHAT_API_TOKENS", tokens)
        monkeypatch.setenv("CHAT_API_PERSONAL", named)
        with pytest.raises(SettingsError, match=f"CHAT_API_PERSONAL takes all, or .*{said}") as caught:
            load_settings()
        assert "canary" not in str(caught.value)


def test_no_setting_prints_a_token() -> None:
    settings = settings_of(chat_api_token=CANARY, chat_api_tokens=f"b:kim:{CANARY}x")
    assert CANARY not in f"{settings!r} {settings} {settings.api_tokens!r}"


PIECES = [":", ":", ",", "\n", " ", "+", "kim", "한", "\u202e", "\x00", CANARY, CANARY + "x"]


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_a_list_is_read_as_it_is_written_or_refused_without_being_shown(listed: str) -> None:
    entries = [entry for line in listed.split("\n") for entry in line.split(",") if entry.strip()]
    try:
        tokens = told(settings_of(chat_api_tokens=listed).api_tokens)
    except ValidationError as error:
        assert "canary" not in str(error)  # noqa: PT017  # most lists are refused, some are taken
    else:
        assert [entry.split(":")[2].strip() for entry in entries] == [token for _, _, token, _ in tokens]


def test_hosts_are_names_or_addresses() -> None:
    value = " Chat.Example.com:8443 , 192.0.2.7,[2001:db8::7]:8501,"
    hosts = ("chat.example.com:8443", "192.0.2.7", "[2001:db8::7]:8501")
    assert settings_of(turnfold_hosts=value).turnfold_hosts == hosts
    for wrong in ("*", "https://chat.example.com", "chat.example.com/", "*.example.com", "a..b", "한국"):
        with pytest.raises(ValidationError, match="takes names or addresses"):
            settings_of(turnfold_hosts=wrong)


def test_origins_are_kept_without_the_slash_behind_them() -> None:
    settings = settings_of(chat_api_origins="https://Chat.example.com/,app://notes.example")
    assert settings.chat_api_origins == ("https://chat.example.com", "app://notes.example")
    for wrong in ("*", "null", "chat.example.com", "https://chat.example.com/path", "https://*.example.com"):
        with pytest.raises(ValidationError, match="takes origins"):
            settings_of(chat_api_origins=wrong)
