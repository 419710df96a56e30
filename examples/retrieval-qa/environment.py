#!/usr/bin/env python3
"""Questions about the countries of the world that no single search answers. The reward is 0.9 F1 of the answer's words and 0.1
for its form."""

import json
import os

import protocol
import questions
import scoring
from retriever import Retriever

# The wrong habit: to answer with what the first search has found.
HASTY = "hasty"

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings.json"), encoding="utf-8") as file:
    SETTINGS = json.load(file)


class Environment:
    def __init__(self, split, index, task):
        self.question = questions.draw(split, index, SETTINGS["difficulty"])
        self.library = None  # read when it is needed: agents with a tool of their own need none

    def messages(self):
        return [
            {"role": "system", "content": "Search until you know. Then write <answer> … </answer>, in a few words."},
            {"role": "user", "content": self.question.text},
        ]

    def tools(self):
        parameters = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}
        return [{"name": "search", "description": "Searches an almanac.", "parameters": parameters}]

    def call(self, name, arguments):
        try:
            if name != "search":
                return "error: no such tool"
            query = json.loads(arguments)["query"]
            if not isinstance(query, str):
                raise TypeError
            self.library = self.library or Retriever()
            return "\n\n".join(self.library.search(query, 1)) or "nothing found"
        except (ValueError, TypeError, KeyError):
            return "error: the arguments are not what the tool takes"

    def score(self, answer):
        return scoring.judge(answer, self.question.found[-1])

    def habits(self):
        return [HASTY]

    def searches(self, habit):
        """The calls of an ideal model, or of one with the habit."""
        queries = self.question.queries[:1] if habit == HASTY else self.question.queries
        return [("search", json.dumps({"query": query}, ensure_ascii=False, separators=(",", ":"))) for query in queries]

    def reply(self, role, messages, tools, habit):
        """What an ideal model does next: the next search, until all is found."""
        calls, done = self.searches(habit), sum(message["role"] == "tool" for message in messages)
        if done < len(calls):
            return "", [calls[done]]
        return f"<answer> {self.question.found[done - 1]} </answer>"

    def solve(self, habit=None):
        calls = self.searches(habit)
        return calls, f"<answer> {self.question.found[len(calls) - 1]} </answer>"


if __name__ == "__main__":
    protocol.serve(Environment)
