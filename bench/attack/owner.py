"""Attacks on others: their chats, their turns, and what is behind the model's server."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx2
from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

from bench.attack.bystander import code_of
from bench.attack.run import Attempt
from bench.attack.server import ATTACKER, COOKIE_SECRET, HANGING, ISSUER, OTHER
from tests.fake.upload import TAKEN, opened_tab

_INSIDE = (
    "http://169.254.169.254/latest/meta-data/",
    "http://127.0.0.1:1/",
    "http://[::1]/",
    "http://localhost/",
    "http://10.0.0.1/x.png",
    "https://2130706433/x.png",
    "https://169.254.169.254/x.png",
)
_OK = 200
_BUSY = 429
_FILL_SECONDS = 5.0
_PIN = "4417-2209"


def two_chats(attempt: Attempt) -> str:
    """Two people behind one token, whose chats have an exchange in common."""
    with attempt.program(ATTACKER) as program:
        ann, replies = _talk(program, "ann-chat-1", [f"My PIN is {_PIN}. Keep it to yourself.", "Hello", "Thanks"])
        history = [
            _message("user", "Good morning from Bob."),
            _message("assistant", "Good morning."),
            *_exchange("Hello", replies[1]),
            *_exchange("Thanks", replies[2]),
            _message("user", "What is my PIN?"),
        ]
        answer = _complete(program, "bob-chat-9", history)
        bob = answer.headers.get("x-turnfold-session", "")
        turns = program.get(f"/sessions/{ann}/turns").json()["turns"]
    if bob == ann or any("What is my PIN" in turn["user_text"] for turn in turns):
        attempt.wrong.append("one person's chat went on in another's")
    matched = answer.headers.get("x-turnfold-matched", answer.status_code)
    return f"two chat ids behind one token, an exchange in common: {matched}"


def _talk(program: httpx2.Client, chat_id: str, questions: list[str]) -> tuple[str, list[str]]:
    chat: list[dict[str, Any]] = []
    replies = []
    session_id = ""
    for question in questions:
        chat.append(_message("user", question))
        answer = _complete(program, chat_id, chat).raise_for_status()
        session_id = answer.headers["x-turnfold-session"]
        replies.append(answer.json()["choices"][0]["message"]["content"])
        chat.append(_message("assistant", replies[-1]))
    return session_id, replies


def _complete(program: httpx2.Client, chat_id: str, messages: list[dict[str, Any]]) -> httpx2.Response:
    body = {"model": "turnfold", "messages": messages}
    return program.post("/v1/chat/completions", json=body, headers={"X-OpenWebUI-Chat-Id": chat_id})


def _exchange(question: str, reply: str) -> list[dict[str, Any]]:
    return [_message("user", question), _message("assistant", reply)]


def _message(role: str, content: object) -> dict[str, Any]:
    return {"role": role, "content": content}


def all_turns(attempt: Attempt) -> str:
    """One token begins as many turns as it can, none of which ends; somebody else's have to begin meanwhile."""
    count = attempt.many(24, 60)
    statuses: list[int] = []
    is_over = threading.Event()

    def insist(number: int) -> None:
        body = {"model": "turnfold", "stream": True, "messages": [_message("user", f"{HANGING}{number} Go on.")]}
        with attempt.program(ATTACKER) as program, suppress(httpx2.HTTPError):
            while not is_over.is_set():
                with program.stream("POST", "/v1/chat/completions", json=body) as answer:
                    statuses.append(answer.status_code)
                    for _ in answer.iter_raw():
                        pass
                is_over.wait(0.1)  # whatever the refusal says of when to try again

    with ThreadPoolExecutor(count) as pool:
        insisting = [pool.submit(insist, number) for number in range(count)]
        until = time.monotonic() + _FILL_SECONDS
        while _BUSY not in statuses and time.monotonic() < until:
            attempt.gauge.hold(0.1)
        with attempt.program(OTHER) as program:  # one more than the one that the other has all the while
            answer = program.post("/chat", json={"message": "Is there room for me?"})
        if answer.is_error:
            attempt.wrong.append(f"somebody else's turn is refused: {code_of(answer)}")
        attempt.hold()
        is_over.set()
        begun = statuses.count(_OK)
        while not all(each.done() for each in insisting):
            attempt.target.endpoint.end_hanging()
            time.sleep(0.1)
    return f"{count} turns of one token that don't end, asked for again and again: {begun} begun"


def inside_images(attempt: Attempt) -> str:
    """Pictures at addresses inside, which the model's server would fetch."""
    statuses = []
    with attempt.program(ATTACKER) as program:
        for place in _INSIDE:
            picture = {"type": "image_url", "image_url": {"url": place}}
            parts = [{"type": "text", "text": "What is it?"}, picture]
            body = {"model": "turnfold", "messages": [_message("user", parts)]}
            statuses.append(program.post("/v1/chat/completions", json=body).status_code)
    if taken := sum(status < 400 for status in statuses):
        attempt.wrong.append(f"{taken} addresses inside went to the model's server")
    return f"{len(statuses)} pictures at addresses inside: {sorted({*statuses})}"


def old_cookie(attempt: Attempt) -> str:
    """A sign-in's cookie that was copied before its owner signed out, and a tab that was open then."""
    address = attempt.target.address
    now = int(time.time())
    claims = {"iss": ISSUER, "sub": "minsu", "name": "Minsu", "nonce": "a-nonce", "iat": now - 60, "exp": now + 3_600}
    said = json.dumps({"origin": address, "is_logged_in": True, **claims})
    cookies = {USER_COOKIE_NAME: create_signed_value(COOKIE_SECRET, USER_COOKIE_NAME, said).decode()}
    with opened_tab(address, cookies) as tab:
        first = tab.put(b"text").status_code
        with httpx2.Client(base_url=address, cookies=cookies, trust_env=False, timeout=30) as browser:
            browser.get("/auth/logout", headers={"Sec-Fetch-Site": "same-origin"})
        then = tab.put(b"text").status_code
        with opened_tab(address, cookies) as another:
            again = another.put(b"text").status_code
    if first != TAKEN:
        attempt.wrong.append("the sign-in itself didn't work")
    if TAKEN in (then, again):
        attempt.wrong.append("a sign-in goes on after its sign-out")
    return f"a file before the sign-out {first}, after it in the open tab {then}, by a copied cookie {again}"
