"""Agents of Agent Lightning 0.3, as they are trained elsewhere: Trainer finds the store by AGL_SERVER_HOST and its like."""

import json
import sys

import agentlightning as agl
from agentlightning.utils.otel import make_link_attributes
from openai import OpenAI


def say(**line):
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def converse(task, llm, turns):
    """Ask the model, and let it reconsider; returns the ids and the texts of its answers."""
    client = OpenAI(base_url=llm.endpoint, api_key=llm.api_key, max_retries=0)
    messages, ids, texts = [{"role": "user", "content": task}], [], []
    for _ in range(turns):
        answer = client.chat.completions.create(model=llm.model, messages=messages)
        text = answer.choices[0].message.content or ""
        ids.append(answer.id)
        texts.append(text)
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": "Are you sure?"}]
    return ids, texts


def worth(texts):
    """A judgement from 0 to 0.5 that a float32 holds."""
    return sum(map(len, texts)) % 8 / 16


@agl.rollout
def function(task: str, llm: agl.LLM) -> float:
    _, texts = converse(task, llm, 2)
    reward = worth(texts)
    say(task=task, texts=texts, reward=reward)
    return reward


@agl.rollout
def broken(task: str, llm: agl.LLM) -> float:
    _, texts = converse(task, llm, 1)
    say(task=task, texts=texts)
    raise RuntimeError("the agent has a bug")


class Agent(agl.LitAgent):
    def rollout(self, task, resources, rollout):
        llm = resources["main_llm"]
        assert llm.get_base_url(rollout.rollout_id, rollout.attempt.attempt_id) == llm.endpoint
        ids, texts = converse(task, llm, 2)
        agl.emit_reward(0.25, attributes=make_link_attributes({"gen_ai.response.id": ids[0]}))
        reward = worth(texts)
        agl.emit_reward({"task": reward, "style": 0.75}, primary_key="task")
        say(task=task, texts=texts, reward=reward, first=0.25, style=0.75)


agents = {
    "function": (function, agl.AgentOpsTracer()),
    "broken": (broken, agl.OtelTracer()),
    "agent": (Agent(), agl.OtelTracer()),
}

if __name__ == "__main__":
    agent, tracer = agents[sys.argv[1]]
    agl.Trainer(n_runners=2, tracer=tracer).fit(agent, train_dataset=[])
