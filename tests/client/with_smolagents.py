"""smolagents: one run of an agent whose every answer is a call, and that replays calls and results as text."""

import os

from lines import SYSTEM, budget_of, converse
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool


@tool
def read_budget(month: str) -> str:
    """Returns the budget of a month.

    Args:
        month: Its name.
    """
    return budget_of(month)


model = OpenAIModel("turnfold", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])
agent = ToolCallingAgent([read_budget], model, instructions=SYSTEM, verbosity_level=LogLevel.OFF)


def ask(question: str) -> str:
    return agent.run(question, reset=False)


converse(ask)
