"""An agent of two roles: a writer, which has a tool, and a critic, which judges what the writer says."""

import json
import os
import sys
import urllib.request

LOOK = {"type": "function", "function": {
    "name": "look", "description": "Looks a word up.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
}}
VERDICT = {"type": "json_schema", "json_schema": {"name": "verdict", "schema": {
    "type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"],
}}}


def ask(role, messages, **more):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": "policy/" + role, "messages": messages, **more}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)["choices"][0]["message"]


task = sys.stdin.read().strip()
messages = [{"role": "system", "content": "Translate."}, {"role": "user", "content": task}]
said = ask("writer", messages, tools=[LOOK])
if said.get("tool_calls"):
    messages += [said, {"role": "tool", "tool_call_id": said["tool_calls"][0]["id"], "content": task.upper()}]
    said = ask("writer", messages, tools=[LOOK])
verdict = ask("critic", [{"role": "user", "content": f"Is {said['content']} good for {task}?"}], response_format=VERDICT)
if json.loads(verdict["content"])["good"]:
    print(said["content"])
