"""The openai package: a chat that is streamed, with a system message and a tool, sent whole with each question."""

import json

from lines import SYSTEM, budget_of, converse
from openai import OpenAI

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "read_budget",
            "description": "Returns the budget of a month.",
            "parameters": {"type": "object", "properties": {"month": {"type": "string"}}, "required": ["month"]},
        },
    }
]

client = OpenAI()
messages = [{"role": "system", "content": SYSTEM}]


def ask(question: str) -> str:
    messages.append({"role": "user", "content": question})
    while True:
        with client.chat.completions.stream(model="turnfold", messages=messages, tools=TOOLS) as stream:
            answer = stream.get_final_completion().choices[0].message
        messages.append(answer.model_dump(include={"role", "content", "tool_calls"}, exclude_none=True))
        if not answer.tool_calls:
            return answer.content
        for call in answer.tool_calls:
            month = json.loads(call.function.arguments)["month"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": budget_of(month)})


converse(ask)
