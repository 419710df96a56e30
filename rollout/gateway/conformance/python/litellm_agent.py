"""An agent on LiteLLM."""

import json

import litellm

TOOLS = [{
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The temperature in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}]
TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


def ask(messages, **options):
    return litellm.completion(model="openai/policy", messages=messages, **options)


def user(text):
    return [{"role": "user", "content": text}]


def run(messages, stream):
    """Asks until the answer is a text, running the tools that the model calls."""
    while True:
        answer = ask(messages, tools=TOOLS, stream=stream)
        if stream:
            answer = litellm.stream_chunk_builder(list(answer), messages=messages)
        message = answer.choices[0].message
        messages.append(message.model_dump())
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(TEMPERATURES[city])})


tell("plain", ask(user("Say hello.")).choices[0].message.content)
tell("stream", "".join(c.choices[0].delta.content or "" for c in ask(user("Count to three."), stream=True)))

for stream in False, True:
    messages = [{"role": "system", "content": "You are a guide."}] + user("Is it warmer in Oslo or in Rome?")
    tell("tools", run(messages, stream))
    messages += user("And in Bergen?")
    tell("turns", run(messages, stream))

try:
    ask(user("Use up your calls."))
except litellm.exceptions.APIError as error:
    tell("error", error.status_code)
tell("retry", ask(user("Fail once.")).choices[0].message.content)
