"""An agent as they are written for Agent Lightning 1.0: it knows AGL_OPENAI_BASE_URL, AGL_EVENT_URL and AGL_KEY."""

import json
import os
import sys
import urllib.request

KEY = os.environ["AGL_KEY"]


def post(url, body):
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def main():
    question = sys.stdin.read()
    messages = [{"role": "user", "content": question}]
    for _ in range(2):
        completion = post(os.environ["AGL_OPENAI_BASE_URL"] + "/chat/completions", {
            "model": "Qwen/Qwen2.5-1.5B-Instruct", "messages": messages, "temperature": 0.7,
        })
        said = completion["choices"][0]["message"]
        messages += [said, {"role": "user", "content": "Are you sure?"}]
    event_url = os.environ["AGL_EVENT_URL"]
    rollout = event_url.split("/rollouts/")[1].split("/")[0]
    post(event_url, {"event_type": "agent_output", "data": {"messages": messages}})
    for reward in 0.0, float(said["content"] == "seven"):
        event = post(event_url, {"event_type": "reward", "data": {"value": reward, "reason": "final"}})
        assert (event["event_type"], event["rollout_id"], event["attempt_id"]) == ("reward", rollout, "0"), event
        assert event["data"]["value"] == reward and event["timestamp"] > 0, event
    print(said["content"])


if __name__ == "__main__":
    main()
