"""An agent on LangChain and LangGraph, by Chat Completions or Responses."""

import json
import sys

import openai
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver

TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}


@tool
def weather(city: str) -> str:
    """The temperature in a city."""
    return str(TEMPERATURES[city])


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


model = ChatOpenAI(model="policy", use_responses_api=sys.argv[1] == "responses", temperature=0.2, stream_usage=True)
tell("plain", model.invoke("Say hello.").text)
chunks = list(model.stream("Count to three."))
tell("stream", "".join(chunk.text for chunk in chunks))
tell("stream usage", any(chunk.usage_metadata and chunk.usage_metadata["total_tokens"] for chunk in chunks))

guide = create_agent(model, tools=[weather], system_prompt="You are a guide.", checkpointer=InMemorySaver())
for stream in False, True:
    thread = {"configurable": {"thread_id": str(stream)}}
    for name, question in ("tools", "Is it warmer in Oslo or in Rome?"), ("turns", "And in Bergen?"):
        asked = {"messages": [{"role": "user", "content": question}]}
        if stream:
            for _ in guide.stream(asked, thread, stream_mode="messages"):
                pass
        else:
            guide.invoke(asked, thread)
        tell(name, guide.get_state(thread).values["messages"][-1].text)

try:
    model.invoke("Use up your calls.")
except openai.APIStatusError as error:
    tell("error", [error.status_code, error.code])
tell("retry", model.invoke("Fail once.").text)
