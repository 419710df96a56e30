"""A research agent on OpenAI's Agents SDK: it answers a question about the countries of the world by searching an almanac.
With --topics it reads long passages, three at a time, and otherwise single facts."""

import sys

from agents import Agent, MaxTurnsExceeded, Runner, function_tool

from retriever import Retriever

TOPICS = "--topics" in sys.argv[1:]
library = Retriever(TOPICS)


@function_tool
def search(query: str) -> str:
    """Searches an almanac."""
    return "\n\n".join(library.search(query, 3 if TOPICS else 1)) or "nothing found"


agent = Agent(
    name="researcher",
    model="gpt-4o-mini",
    instructions="Search until you know. Then write <answer> … </answer>, in a few words.",
    tools=[search],
)
try:
    print(Runner.run_sync(agent, sys.stdin.read().strip(), max_turns=8).final_output)
except MaxTurnsExceeded:
    print("I could not find out.")
