"""An agent on OpenAI's library, by Responses."""

import json

import openai

TOOLS = [{
    "type": "function",
    "name": "weather",
    "description": "The temperature in a city.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}]
TEMPERATURES = {"Oslo": 4, "Rome": 21, "Bergen": 7}

client = openai.OpenAI()


def tell(name, value):
    print(json.dumps({name: value}), flush=True)


def ask(question, **options):
    return client.responses.create(model="policy", input=question, **options)


def run(items, stream):
    """Asks until the answer is a text, running the tools that the model calls."""
    options = {"instructions": "You are a guide.", "tools": TOOLS}
    while True:
        if stream:
            with client.responses.stream(model="policy", input=items, **options) as events:
                for _ in events:
                    pass
                response = events.get_final_response()
        else:
            response = ask(items, **options)
        items += [item.to_dict() for item in response.output]
        calls = [item for item in response.output if item.type == "function_call"]
        if not calls:
            return response.output_text
        for call in calls:
            city = json.loads(call.arguments)["city"]
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": str(TEMPERATURES[city])})


hello = ask("Say hello.", include=["message.output_text.logprobs"], temperature=0.2)
tell("plain", hello.output_text)
tell("logprobs", len(hello.output[0].content[0].logprobs) == hello.usage.output_tokens)

events = list(ask("Count to three.", stream=True))
tell("stream", "".join(e.delta for e in events if e.type == "response.output_text.delta"))
tell("stream usage", events[-1].response.usage.total_tokens > 0)

for stream in False, True:
    items = [{"role": "user", "content": "Is it warmer in Oslo or in Rome?"}]
    tell("tools", run(items, stream))
    items.append({"role": "user", "content": "And in Bergen?"})
    tell("turns", run(items, stream))

try:
    ask("Use up your calls.")
except openai.APIStatusError as error:
    tell("error", [error.status_code, error.code])
try:
    ask("And?", previous_response_id=hello.id)
except openai.BadRequestError as error:
    tell("refused", error.status_code)
try:
    list(ask("Fail late.", stream=True))
except openai.APIError as error:
    tell("late", error.message)
tell("retry", ask("Fail once.").output_text)
tell("slow", client.with_options(timeout=1.0).responses.create(model="policy", input="Take your time.").output_text)
