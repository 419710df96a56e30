"""An agent on smolagents, which ends by calling a tool with its answer."""

import json
import os

import openai
from smolagents import OpenAIModel, ToolCallingAgent, tool

TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}


@tool
def weather(city: str) -> str:
    """The temperature in a city.

    Args:
        city: Its name.
    """
    return str(TEMPERATURES[city])


def tell(name, value):
    print("\n" + json.dumps({name: value}), flush=True)  # the library prints as well


model = OpenAIModel(model_id="policy", api_base=os.environ["OPENAI_BASE_URL"], api_key=os.environ["OPENAI_API_KEY"])


def ask(question):
    return model.generate([{"role": "user", "content": [{"type": "text", "text": question}]}], stop_sequences=["END"])


tell("plain", ask("Say hello.").content)
tell("stop", ask("Say the end.").content)
text = ""
for delta in model.generate_stream([{"role": "user", "content": [{"type": "text", "text": "Count to three."}]}]):
    text += delta.content or ""
tell("stream", text)

for stream in False, True:
    guide = ToolCallingAgent(tools=[weather], model=model, stream_outputs=stream, verbosity_level=0, max_steps=4)
    tell("tools", guide.run("Is it warmer in Oslo or in Rome?"))
    tell("turns", guide.run("And in Bergen?", reset=False))

try:
    ask("Use up your calls.")
except openai.APIStatusError as error:
    tell("error", [error.status_code, error.code])
tell("retry", ask("Fail once.").content)
