"""A calculator agent on AutoGen, by Chat Completions."""

import asyncio
import sys

from autogen_agentchat.agents import AssistantAgent
from autogen_ext.models.openai import OpenAIChatCompletionClient

from calculator import calculate


async def calculator(expression: str) -> str:
    """Integer arithmetic."""
    return calculate(expression)


async def solve(task):
    model = OpenAIChatCompletionClient(model="gpt-4o-mini")
    agent = AssistantAgent(
        "solver",
        model,
        tools=[calculator],
        system_message="Use the calculator. Answer with the number.",
        max_tool_iterations=5,
    )
    result = await agent.run(task=task)
    await model.close()
    return result.messages[-1].content


print(asyncio.run(solve(sys.stdin.read().strip())))
