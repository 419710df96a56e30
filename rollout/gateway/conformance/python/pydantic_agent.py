"""An agent on Pydantic AI, by Chat Completions or Responses."""

import asyncio
import json
import sys

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError

PREFIX = {"chat": "openai-chat:", "responses": "openai-responses:"}[sys.argv[1]]
TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}

plain = Agent(PREFIX + "policy")
guide = Agent(PREFIX + "policy", system_prompt="You are a guide.")


@guide.tool_plain
def weather(city: str) -> str:
    """The temperature in a city."""
    return str(TEMPERATURES[city])


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


async def skip(_, events):
    """Takes the events of a streamed answer."""
    async for _ in events:
        pass


async def main():
    tell("plain", (await plain.run("Say hello.")).output)
    async with plain.run_stream("Count to three.") as result:
        tell("stream", await result.get_output())

    for handler in None, skip:
        result = await guide.run("Is it warmer in Oslo or in Rome?", event_stream_handler=handler)
        tell("tools", result.output)
        result = await guide.run("And in Bergen?", message_history=result.all_messages(), event_stream_handler=handler)
        tell("turns", result.output)

    try:
        await plain.run("Use up your calls.")
    except ModelHTTPError as error:
        tell("error", [error.status_code, error.body["code"]])
    tell("retry", (await plain.run("Fail once.")).output)


asyncio.run(main())
