"""An agent on Anthropic's library."""

import json

import anthropic

TOOLS = [{
    "name": "weather",
    "description": "The temperature in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}]
TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}

client = anthropic.Anthropic()


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


def ask(messages, **options):
    return client.messages.create(model="policy", max_tokens=500, messages=messages, **options)


def user(content):
    return [{"role": "user", "content": content}]


def run(messages, stream):
    """Asks until the answer is a text, running the tools that the model calls."""
    options = {"system": "You are a guide.", "tools": TOOLS}
    while True:
        if stream:
            with client.messages.stream(model="policy", max_tokens=500, messages=messages, **options) as events:
                message = events.get_final_message()
        else:
            message = ask(messages, **options)
        messages.append({"role": "assistant", "content": message.content})
        if message.stop_reason != "tool_use":
            return message.content[0].text
        messages += user([
            {"type": "tool_result", "tool_use_id": block.id, "content": str(TEMPERATURES[block.input["city"]])}
            for block in message.content if block.type == "tool_use"
        ])


tell("plain", ask(user("Say hello.")).content[0].text)
with client.messages.stream(model="policy", max_tokens=500, messages=user("Count to three.")) as events:
    tell("stream", "".join(events.text_stream))
    tell("stream usage", events.get_final_message().usage.output_tokens > 0)

for stream in False, True:
    messages = user("Is it warmer in Oslo or in Rome?")
    tell("tools", run(messages, stream))
    messages += user("And in Bergen?")
    tell("turns", run(messages, stream))

try:
    ask(user("Use up your calls."))
except anthropic.APIStatusError as error:
    tell("error", [error.status_code, error.body["error"]["type"]])
try:
    list(ask(user("Fail late."), stream=True))
except anthropic.APIStatusError as error:
    tell("late", error.body["error"]["message"])
tell("retry", ask(user("Fail once.")).content[0].text)
tell("slow", client.with_options(timeout=1.0).messages.create(
    model="policy", max_tokens=500, messages=user("Take your time.")).content[0].text)
