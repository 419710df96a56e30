#!/usr/bin/env python3
"""Tasks, tools and scoring: what you change."""

import json
import random

import protocol


def new_task(split, index):
    """The task of an index. It is a function of split and index alone: everybody has the same tasks."""
    letters = "abeilnorst"
    numbers = random.Random(f"{split} {index}")
    word = "".join(letters[int(numbers.random() * 10)] for _ in range(4 + int(numbers.random() * 9)))
    return {"word": word, "letter": letters[int(numbers.random() * 10)]}


class Environment:
    """One task, which is what new_task returned or a line of the split's file."""

    def __init__(self, split, index, task):
        self.task = task if task is not None else new_task(split, index)

    def messages(self):
        """What the agent starts from. Roles are system, user and assistant; the last message is the user's."""
        return [
            {"role": "system", "content": "Answer with a number."},
            {"role": "user", "content": "How many times is \"{letter}\" in \"{word}\"?".format(**self.task)},
        ]

    def tools(self):
        """What the agent may call; the parameters are a JSON schema."""
        word = {"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]}
        return [{"name": "spell", "description": "Spells a word.", "parameters": word}]

    def call(self, name, arguments):
        """Runs a tool. The arguments are the text that a model wrote: whatever is wrong with them, return text that says so."""
        try:
            word = json.loads(arguments)["word"]
        except (ValueError, TypeError, KeyError):
            word = None
        if name != "spell":
            return "error: no such tool"
        if not isinstance(word, str):
            return 'error: arguments must be {"word":"..."}'
        return " ".join(word)

    def score(self, answer):
        """Judges the agent's answer, which is empty if it came to none. Return the reward, or a pair with components by name."""
        return 1 if answer.strip() == self.solution() else 0

    def solve(self):
        """What reaches the largest reward: tool calls and the answer. Checks play it; agents never see it."""
        return [("spell", json.dumps({"word": self.task["word"]}))], self.solution()

    def reply(self, role, messages, tools, habit):
        """What an ideal model answers when an agent program calls it: a text, or a pair of a text and tool calls. It is only
        for first policies (`lightswarm policy pretrain --agent`), and can be left out."""
        if "spell" in tools and messages[-1]["role"] != "tool":
            return "", [("spell", json.dumps({"word": self.task["word"]}))]
        return self.solution()

    def solution(self):
        return str(self.task["word"].count(self.task["letter"]))


if __name__ == "__main__":
    protocol.serve(Environment)
