"""LiteLLM: a chat of whole answers with a system message; then a message longer than the model's window."""

import os

import litellm
from lines import SYSTEM, converse

ENDPOINT = {"model": "openai/turnfold", "api_base": os.environ["OPENAI_BASE_URL"]}

messages = [{"role": "system", "content": SYSTEM}]


def ask(question: str) -> str:
    messages.append({"role": "user", "content": question})
    try:
        answer = litellm.completion(messages=messages, **ENDPOINT).choices[0].message
    except litellm.exceptions.ContextWindowExceededError as error:
        return type(error).__name__
    messages.append({"role": "assistant", "content": answer.content})
    return answer.content


converse(ask)
