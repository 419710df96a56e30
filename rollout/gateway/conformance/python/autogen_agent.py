"""An agent on AutoGen."""

import asyncio
import json

import openai
from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import ModelInfo, UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient

TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}


async def weather(city: str) -> str:
    """The temperature in a city."""
    return str(TEMPERATURES[city])


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


async def main():
    model = OpenAIChatCompletionClient(model="policy", model_info=ModelInfo(
        vision=False, function_calling=True, json_output=False, structured_output=False, family="unknown"))

    async def ask(question):
        return (await model.create([UserMessage(content=question, source="user")])).content

    tell("plain", await ask("Say hello."))
    text = ""
    async for chunk in model.create_stream([UserMessage(content="Count to three.", source="user")]):
        text += chunk if isinstance(chunk, str) else ""
    tell("stream", text)

    for stream in False, True:
        guide = AssistantAgent(
            "guide", model, tools=[weather], system_message="You are a guide.", max_tool_iterations=5, model_client_stream=stream)
        tell("tools", (await guide.run(task="Is it warmer in Oslo or in Rome?")).messages[-1].content)
        tell("turns", (await guide.run(task="And in Bergen?")).messages[-1].content)

    try:
        await ask("Use up your calls.")
    except openai.APIStatusError as error:
        tell("error", [error.status_code, error.code])
    tell("retry", await ask("Fail once."))
    await model.close()


asyncio.run(main())
