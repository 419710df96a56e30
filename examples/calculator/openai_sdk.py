"""A calculator agent on OpenAI's library for Python, by Chat Completions."""

import json
import sys

import openai

from calculator import calculate

TOOLS = [{
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Integer arithmetic.",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    },
}]

client = openai.OpenAI()


def use(call):
    try:
        return calculate(json.loads(call.arguments)["expression"])
    except (ValueError, KeyError, TypeError):
        return 'error: arguments must be {"expression":"..."}'


def solve(task):
    messages = [
        {"role": "system", "content": "Use the calculator. Answer with the number."},
        {"role": "user", "content": task},
    ]
    while True:
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=messages, tools=TOOLS)
        message = answer.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": use(call.function)})


print(solve(sys.stdin.read().strip()))
