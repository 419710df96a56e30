"""A calculator agent on OpenAI's Agents SDK, by the Responses API."""

import sys

from agents import Agent, Runner, function_tool

from calculator import calculate


@function_tool
def calculator(expression: str) -> str:
    """Integer arithmetic."""
    return calculate(expression)


agent = Agent(
    name="solver",
    model="gpt-4o-mini",
    instructions="Use the calculator. Answer with the number.",
    tools=[calculator],
)
print(Runner.run_sync(agent, sys.stdin.read().strip()).final_output)
