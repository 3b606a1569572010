"""LlamaIndex: an agent that reads streams, in the client for endpoints like OpenAI's."""

import asyncio
import os

from lines import SYSTEM, budget_of, converse
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory
from llama_index.llms.openai_like import OpenAILike


def read_budget(month: str) -> str:
    """Returns the budget of a month."""
    return budget_of(month)


model = OpenAILike(
    model="turnfold",
    api_base=os.environ["OPENAI_BASE_URL"],
    api_key=os.environ["OPENAI_API_KEY"],
    context_window=32_000,
    is_chat_model=True,
    is_function_calling_model=True,
)
agent = FunctionAgent(tools=[read_budget], llm=model, system_prompt=SYSTEM)
memory = Memory.from_defaults()


async def run(question: str) -> str:
    return str(await agent.run(question, memory=memory))


with asyncio.Runner() as runner:
    converse(lambda question: runner.run(run(question)))
