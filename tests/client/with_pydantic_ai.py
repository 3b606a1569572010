"""pydantic-ai over chat completions: an agent with a tool that returns a picture, which is sent in a user's message."""

import base64

from lines import PICTURE, SYSTEM, budget_of, converse
from pydantic_ai import Agent, BinaryContent

agent = Agent("openai-chat:turnfold", instructions=SYSTEM)
history = []


@agent.tool_plain
def draw_budget(month: str) -> list[str | BinaryContent]:
    """Draws the budget of a month."""
    return [budget_of(month), BinaryContent(base64.b64decode(PICTURE), media_type="image/png")]


def ask(question: str) -> str:
    run = agent.run_sync(question, message_history=history)
    history[:] = run.all_messages()
    return run.output


converse(ask)
