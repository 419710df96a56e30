"""An agent of Agent Lightning 1.0: it calls the model that its environment names, and posts its reward as an event."""

import json
import os
import sys
import urllib.request

from openai import OpenAI

key = os.environ["AGL_KEY"]
task = sys.stdin.read()
client = OpenAI(base_url=os.environ["AGL_OPENAI_BASE_URL"], api_key=key)
messages, texts = [{"role": "user", "content": task}], []
for _ in range(2):
    answer = client.chat.completions.create(model="gpt-4o", messages=messages)
    texts.append(answer.choices[0].message.content or "")
    messages += [{"role": "assistant", "content": texts[-1]}, {"role": "user", "content": "Are you sure?"}]
reward = sum(map(len, texts)) % 8 / 16
urllib.request.urlopen(urllib.request.Request(
    os.environ["AGL_EVENT_URL"],
    data=json.dumps({"event_type": "reward", "data": {"value": reward}}).encode(),
    headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
)).read()
with open(os.environ["SEEN"], "a") as seen:
    seen.write(json.dumps({"task": task, "texts": texts, "reward": reward}) + "\n")
print(texts[-1])
