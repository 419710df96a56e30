"""A calculator agent on LangChain and LangGraph, by Chat Completions."""

import sys

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from calculator import calculate


@tool
def calculator(expression: str) -> str:
    """Integer arithmetic."""
    return calculate(expression)


agent = create_agent(
    ChatOpenAI(model="gpt-4o-mini"),
    tools=[calculator],
    system_prompt="Use the calculator. Answer with the number.",
)
result = agent.invoke({"messages": [{"role": "user", "content": sys.stdin.read().strip()}]})
print(result["messages"][-1].text)
