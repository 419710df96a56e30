"""The environment's side of the protocol: a request is a line of JSON on standard input, its answer a line on standard
output. What is printed goes to standard error, so that it does no harm. What the environment does is in environment.py."""

import json
import sys


def serve(environment):
    """Plays one task with a class, until nobody asks any more."""
    requests, answers = sys.stdin, sys.stdout
    sys.stdout = sys.stderr
    episode = None
    for line in requests:
        request = json.loads(line)
        if request["op"] == "reset":
            episode = environment(request["split"], request["index"], request.get("task"))
            answer = {"messages": episode.messages(), "tools": episode.tools()}
        elif request["op"] == "call":
            answer = {"result": episode.call(request["name"], request["arguments"])}
        elif request["op"] == "score":
            score = episode.score(request["answer"])
            reward, components = score if isinstance(score, tuple) else (score, {})
            answer = {"reward": reward, "components": components}
        elif request["op"] == "solve" and (hasattr(episode, "solve") or hasattr(episode, "reply")):
            answer = solution(episode, request.get("habit"))
        elif request["op"] == "reply" and hasattr(episode, "reply"):
            reply = episode.reply(request["role"], request["messages"], request["tools"], request.get("habit"))
            content, calls = reply if isinstance(reply, tuple) else (reply, [])
            answer = {"content": content, "calls": named(calls)}
        else:
            answer = {"error": "no such request: " + request["op"]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def solution(episode, habit):
    """What solves the task, or what one with a wrong habit would do. An environment with reply may leave solve out."""
    answer = {}
    if hasattr(episode, "solve"):
        calls, answer["answer"] = episode.solve() if habit is None else episode.solve(habit)
        answer["calls"] = named(calls)
    if habit is None:
        answer["habits"] = list(episode.habits()) if hasattr(episode, "habits") else []
    return answer


def named(calls):
    """Tool calls, which are pairs of a name and arguments."""
    return [{"name": name, "arguments": arguments} for name, arguments in calls]
