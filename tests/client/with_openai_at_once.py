"""The openai package: questions that are asked at the same time, each of them behind the same history.

Each line has the API and the questions, each behind the branch that it goes on with ("" for a new chat). Each answer
lists what came: the status, the text, the new branch, and what the headers say.
"""

import asyncio
import json
from typing import Any

from lines import converse
from openai import APIStatusError, AsyncOpenAI

client = AsyncOpenAI(max_retries=0)
histories: dict[str, Any] = {"": []}


async def complete(branch: str, question: str) -> tuple[str, Any, Any]:
    """Returns the text, the history with it, and the answer's headers."""
    messages = [*histories[branch], {"role": "user", "content": question}]
    raw = await client.chat.completions.with_raw_response.create(model="turnfold", messages=messages)
    text = raw.parse().choices[0].message.content
    return text, [*messages, {"role": "assistant", "content": text}], raw.headers


async def respond(branch: str, question: str) -> tuple[str, Any, Any]:
    """Does the same by the name of the response before it."""
    named = {"previous_response_id": histories[branch]} if branch else {}
    raw = await client.responses.with_raw_response.create(model="turnfold", input=question, **named)
    response = raw.parse()
    return response.output_text, response.id, raw.headers


APIS = {"completions": complete, "responses": respond}


async def ask_one(api: str, branch: str, question: str) -> dict[str, Any]:
    try:
        text, history, headers = await APIS[api](branch, question)
    except APIStatusError as error:
        return {"status": error.status_code, "text": error.message}
    name = f"branch-{len(histories)}"
    histories[name] = history
    told = {"session": headers["x-turnfold-session"], "matched": headers["x-turnfold-matched"]}
    return {"status": 200, "branch": name, "text": text, **told}


async def ask_all(asked: tuple[str, list[tuple[str, str]]]) -> str:
    api, questions = asked
    return json.dumps(await asyncio.gather(*(ask_one(api, branch, question) for branch, question in questions)))


with asyncio.Runner() as runner:
    converse(lambda asked: runner.run(ask_all(asked)))
