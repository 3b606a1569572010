"""The OpenAI Agents SDK as it is: the Responses API, with a tool and a session that keeps the history."""

from agents import Agent, Runner, SQLiteSession, function_tool, set_tracing_disabled
from lines import SYSTEM, budget_of, converse

set_tracing_disabled(disabled=True)


@function_tool
def read_budget(month: str) -> str:
    """Returns the budget of a month."""
    return budget_of(month)


agent = Agent(
    name="Clerk",
    model="turnfold",
    instructions=SYSTEM,
    tools=[read_budget],
)
session = SQLiteSession("1")


def ask(question: str) -> str:
    return Runner.run_sync(agent, question, session=session).final_output


converse(ask)
