"""A calculator agent in plain Python: Chat Completions by HTTP, with nothing to install."""

import json
import os
import sys
import urllib.request

from calculator import calculate

TOOLS = [{
    "type": "function",
    "function": {
        "name": "calculator",
        "description": "Integer arithmetic.",
        "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}, "required": ["expression"]},
    },
}]


def complete(messages):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "gpt-4o-mini", "messages": messages, "tools": TOOLS}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


def use(call):
    try:
        return calculate(json.loads(call["arguments"])["expression"])
    except (ValueError, KeyError, TypeError):
        return 'error: arguments must be {"expression":"..."}'


def solve(task):
    messages = [
        {"role": "system", "content": "Use the calculator. Answer with the number."},
        {"role": "user", "content": task},
    ]
    while True:
        message = complete(messages)
        messages.append(message)
        if not message.get("tool_calls"):
            return message["content"]
        for call in message["tool_calls"]:
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": use(call["function"])})


print(solve(sys.stdin.read().strip()))
