"""An agent on OpenAI's library, by Chat Completions."""

import json

import openai

TOOLS = [{
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The temperature in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
}]
TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}

client = openai.OpenAI()


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


def ask(messages, **options):
    return client.chat.completions.create(model="policy", messages=messages, **options)


def user(text):
    return [{"role": "user", "content": text}]


def run(messages, stream):
    """Asks until the answer is a text, running the tools that the model calls."""
    while True:
        if stream:
            with client.chat.completions.stream(model="policy", messages=messages, tools=TOOLS) as events:
                for _ in events:
                    pass
                message = events.get_final_completion().choices[0].message
        else:
            message = ask(messages, tools=TOOLS).choices[0].message
        messages.append(message.model_dump(exclude_unset=True))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            city = json.loads(call.function.arguments)["city"]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": str(TEMPERATURES[city])})


hello = ask(user("Say hello."), logprobs=True, temperature=0.2)
tell("plain", hello.choices[0].message.content)
tell("logprobs", len(hello.choices[0].logprobs.content) == hello.usage.completion_tokens)

chunks = list(ask(user("Count to three."), stream=True, stream_options={"include_usage": True}))
tell("stream", "".join(c.choices[0].delta.content or "" for c in chunks if c.choices))
tell("stream usage", chunks[-1].usage.total_tokens > 0)
tell("several", [c.message.content for c in ask(user("Say hello."), n=2).choices])

for stream in False, True:
    messages = [{"role": "system", "content": "You are a guide."}] + user("Is it warmer in Oslo or in Rome?")
    tell("tools", run(messages, stream))
    messages += user("And in Bergen?")
    tell("turns", run(messages, stream))

try:
    ask(user("Use up your calls."))
except openai.APIStatusError as error:
    tell("error", [error.status_code, error.code])
try:
    ask([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}])
except openai.BadRequestError as error:
    tell("refused", error.status_code)
try:
    list(ask(user("Fail late."), stream=True))
except openai.APIError as error:
    tell("late", error.message)
tell("retry", ask(user("Fail once.")).choices[0].message.content)
tell("slow", client.with_options(timeout=1.0).chat.completions.create(
    model="policy", messages=user("Take your time.")).choices[0].message.content)
tell("models", [m.id for m in client.models.list()][0])
