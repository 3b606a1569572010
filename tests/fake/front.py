"""Reads what a project has added to the requests that an endpoint received."""

from __future__ import annotations

from prompt.system.framing import PERSISTENT_HEADING
from tests.fake.body import HEADING, content_of, system_prompt
from tests.fake.openai_reply import Body
from tests.fake.openai_server import FakeOpenAI

KEY = "\nprojectMemory:"


def front_of(body: Body) -> str:
    """The block in the system prompt, "" for none."""
    prompt = HEADING.split(system_prompt(body), maxsplit=1)[0].rstrip("\n")
    return prompt[prompt.index(PERSISTENT_HEADING) :] if PERSISTENT_HEADING in prompt else ""


def memory_of(body: Body) -> str:
    return front_of(body).partition(KEY)[2]


def last_messages(body: Body) -> str:
    return content_of(body["messages"][-1])


def fronts(server: FakeOpenAI) -> list[str]:
    return [front_of(body) for body in server.bodies("chat")]
