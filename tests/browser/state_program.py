"""The states of a program: its token, the chat that it goes on with, and its end."""

from __future__ import annotations

import httpx2
from openai import OpenAI
from playwright.sync_api import Locator, expect

from tests.browser.stage import Stage
from tests.fake.chat import question

NAME = "편집기"
# Behind a white label; axe doesn't look at this button.
READABLE = "rgb(13, 110, 102)"


class Program:
    """A program that sends all of its chat again with each question."""

    def __init__(self, address: str, token: str) -> None:
        self._client = OpenAI(base_url=f"{address.rstrip('/')}/v1", api_key=token, max_retries=0)
        self._said: list[dict[str, str]] = []

    def ask(self, text: str) -> tuple[str, str]:
        """Returns the session and the turn that answered."""
        self._said.append({"role": "user", "content": text})
        raw = self._client.chat.completions.with_raw_response.create(model="turnfold", messages=self._said)  # type: ignore[arg-type]  # plain dictionaries, as programs send them
        self._said.append({"role": "assistant", "content": raw.parse().choices[0].message.content or ""})
        return raw.headers["X-Turnfold-Session"], raw.headers["X-Turnfold-Turn"]


def status(stage: Stage, token: str) -> int:
    """What the HTTP API answers a program with this token."""
    headers = {"Authorization": f"Bearer {token}"}
    # The first request to a new server reads the modules of its client, for longer than five seconds beside other work.
    url = f"{stage.visitor.address.rstrip('/')}/v1/models"
    return httpx2.get(url, headers=headers, trust_env=False, timeout=60).status_code


def row(stage: Stage) -> Locator:
    return stage.visitor.page.locator('[class*="st-key-token_"]').filter(has_text=NAME)


def box_open(stage: Stage) -> None:
    assert status(stage, "tf-guessed-0123456789-abcdef") == 404
    stage.visitor.open()
    stage.open_sidebar()
    stage.visitor.open_settings(stage.words.programs.title)
    expect(stage.button("make_token")).to_have_css("background-color", READABLE)


def token_made(stage: Stage) -> None:
    """A copied token lets its program in; the program's chat bears its name."""
    stage.visitor.find("program_name").get_by_role("textbox").fill(NAME)
    stage.visitor.find("program_name").get_by_role("textbox").press("Enter")
    token = stage.copied(stage.visitor.find("made_token").locator("button.copy"))
    expect(stage.dialog).to_contain_text(token)
    assert status(stage, token) == 200
    (stage.folder / "token").write_text(token)


def program_used(stage: Stage) -> None:
    """Both go on with the chat that the program began, and its row in the list is marked."""
    stage.close_dialog()
    program = Program(stage.visitor.address, (stage.folder / "token").read_text())
    session_id, turn = program.ask(question(1))
    assert turn == "1"
    stage.visitor.open(f"?session={session_id}")
    mark = stage.words.program.format(name=NAME)
    expect(stage.visitor.find("begun_by")).to_contain_text(stage.words.started_by_program.format(name=NAME))
    stage.visitor.ask("여기서 이어 갑니다.", first=2)
    assert program.ask(question(3)) == (session_id, "3")
    stage.open_sidebar()
    expect(stage.visitor.open_row.get_by_test_id("stIconMaterial").first).to_have_text("terminal")
    expect(stage.visitor.page.get_by_text(mark)).to_have_count(0)  # not at each message, nor below the title


def withdrawal_asked(stage: Stage) -> None:
    stage.visitor.open_settings(stage.words.programs.title)
    sentence = stage.words.programs.used.rpartition("{made}")[2].split("{")[0].strip()
    expect(row(stage)).to_contain_text(sentence)
    expect(stage.dialog).not_to_contain_text((stage.folder / "token").read_text())
    row(stage).get_by_role("button", name=stage.words.programs.withdraw).click()
    expect(stage.button("dialog_confirm")).to_be_visible()


def withdrawn(stage: Stage) -> None:
    token = (stage.folder / "token").read_text()
    assert status(stage, token) == 200
    stage.button("dialog_confirm").click()
    expect(row(stage)).to_have_count(0)
    assert status(stage, token) == 404
