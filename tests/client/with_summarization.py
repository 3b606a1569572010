"""LangChain's agent, which summarises its history and keeps the last four messages as they are."""

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from lines import SYSTEM, budget_of, converse


@tool
def read_budget(month: str) -> str:
    """Returns the budget of a month."""
    return budget_of(month)


summarise = SummarizationMiddleware(ChatOpenAI(model="turnfold:plain"), trigger=("messages", 6), keep=("messages", 4))
agent = create_agent(
    ChatOpenAI(model="turnfold"),
    [read_budget],
    system_prompt=SYSTEM,
    middleware=[summarise],
    checkpointer=InMemorySaver(),
)


def ask(question: str) -> str:
    state = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
    return state["messages"][-1].text


converse(ask)
