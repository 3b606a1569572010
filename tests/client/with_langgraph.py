"""LangGraph's agent over langchain-openai, its history trimmed before each call as its documentation shows."""

from typing import Any

from langchain_core.messages.utils import count_tokens_approximately, trim_messages
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import create_react_agent
from lines import SYSTEM, budget_of, converse


@tool
def read_budget(month: str) -> str:
    """Returns the budget of a month."""
    return budget_of(month)


def trim(state: dict[str, Any]) -> dict[str, Any]:
    kept = trim_messages(
        state["messages"],
        strategy="last",
        token_counter=count_tokens_approximately,
        max_tokens=300,
        start_on="human",
        end_on=("human", "tool"),
    )
    return {"llm_input_messages": kept}


agent = create_react_agent(
    ChatOpenAI(model="turnfold"), [read_budget], prompt=SYSTEM, pre_model_hook=trim, checkpointer=InMemorySaver()
)


def ask(question: str) -> str:
    state = agent.invoke({"messages": [("user", question)]}, {"configurable": {"thread_id": "1"}})
    return state["messages"][-1].text


converse(ask)
