"""An agent on OpenAI's Agents SDK, with the API that it prefers or with Chat Completions."""

import asyncio
import json
import sys

import agents
import openai

agents.set_default_openai_api(sys.argv[1])

TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}


@agents.function_tool
def weather(city: str) -> str:
    """The temperature in a city."""
    return str(TEMPERATURES[city])


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


async def main():
    guide = agents.Agent(name="guide", instructions="You are a guide.", model="policy", tools=[weather])
    plain = agents.Agent(name="plain", model="policy")

    tell("plain", (await agents.Runner.run(plain, "Say hello.")).final_output)

    run = agents.Runner.run_streamed(plain, "Count to three.")
    text = ""
    async for event in run.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            text += event.data.delta
    tell("stream", text)

    result = await agents.Runner.run(guide, "Is it warmer in Oslo or in Rome?")
    tell("tools", result.final_output)
    history = result.to_input_list() + [{"role": "user", "content": "And in Bergen?"}]
    tell("turns", (await agents.Runner.run(guide, history)).final_output)

    run = agents.Runner.run_streamed(guide, "Is it warmer in Oslo or in Rome?")
    async for _ in run.stream_events():
        pass
    tell("tools", run.final_output)
    run = agents.Runner.run_streamed(guide, run.to_input_list() + [{"role": "user", "content": "And in Bergen?"}])
    async for _ in run.stream_events():
        pass
    tell("turns", run.final_output)

    try:
        await agents.Runner.run(plain, "Use up your calls.")
    except openai.APIStatusError as error:
        tell("error", [error.status_code, error.code])
    tell("retry", (await agents.Runner.run(plain, "Fail once.")).final_output)


asyncio.run(main())
