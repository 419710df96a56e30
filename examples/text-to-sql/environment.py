#!/usr/bin/env python3
"""Questions about SQLite databases. The answer is a query. It is run on the database that the agent could look at, and on a
second one with the same tables and other rows, so that the query has to be right, and not only its result."""

import functools
import hashlib
import json
import os

import databases
import protocol
import queries
import questions

# What only tasks of validation are about, where they are about databases that no task of train has.
UNSEEN = ("airline", "farm")
# Of so many questions one is validation's.
VALIDATION = 8
# Of so many tasks one has a first query that is wrong, so that there is something to mend.
SLIPS = 3
# The wrong habit: the last condition is the wrong way round, also when the query is written anew.
INVERTED = "inverted"

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings.json"), encoding="utf-8") as file:
    SETTINGS = json.load(file)


class Task:
    """A question about a database, what it has to return there, and what on the hidden one."""

    def __init__(self, split, index):
        level = index % min(len(questions.FAMILIES), max(1, SETTINGS["difficulty"]))
        for attempt in range(1000):
            n = databases.Numbers(f"text-to-sql {split} {index} {attempt}")
            self.database = n.pick(names(split))
            self.question = questions.FAMILIES[level](n, databases.DATABASES[self.database])
            self.slips = n.below(SLIPS) == 0
            if splits(self.database, self.question.text) == split and self.fits():
                return
        raise RuntimeError("no question with an answer")

    def fits(self):
        """Whether there is an answer, an inverted query has another one, and the two databases have different ones."""
        self.shown, self.hidden = (made(self.database, seed) for seed in (databases.SHOWN, databases.HIDDEN))
        self.wanted = [queries.run(db, self.question.query) for db in (self.shown, self.hidden)]
        return (all(rows not in ([], [(None,)], [(0,)]) for rows in self.wanted) and not same(*self.wanted)
            and not same(queries.run(self.shown, self.question.inverted), self.wanted[0]))

    def judge(self, query):
        """Whether a query runs, and is right on each of the databases."""
        try:
            shown, hidden = (queries.run(db, query) for db in (self.shown, self.hidden))
        except queries.FAILURES:
            return {"runs": 0, "shown": 0, "hidden": 0}
        return {"runs": int(bool(query.strip())), "shown": int(same(shown, self.wanted[0])), "hidden": int(same(hidden, self.wanted[1]))}


@functools.lru_cache(maxsize=None)
def made(name, seed):
    """A database."""
    return queries.make(databases.script(name, seed))


def names(split):
    """The databases of a split."""
    return [d for d in databases.DATABASES if not SETTINGS["unseen"] or (d in UNSEEN) == (split == "validation")]


def splits(database, question):
    """The split that a question belongs to, so that none is in both."""
    return "train" if hashlib.sha256(f"{database}\n{question}".encode()).digest()[0] % VALIDATION else "validation"


def same(rows, wanted):
    """Whether two results have the same rows, in whatever order. Numbers are equal that differ in their tenth digit."""

    def plain(row):
        return repr([f"{v:.9g}" if isinstance(v, (int, float)) else [v] for v in row])

    return sorted(map(plain, rows)) == sorted(map(plain, wanted))


class Environment:
    def __init__(self, split, index, task):
        self.task = Task(split, index)
        self.query = ""  # what the writer or the rewriter last said, where they are asked here

    def messages(self):
        return [
            {"role": "system", "content": "You are given the name of an SQLite database and a question. Look at the database with "
                "the tools, then answer with one query and nothing else. Only the rows that it returns count, not their order."},
            {"role": "user", "content": self.task.database + "\n" + self.task.question.text},
        ]

    def tools(self):
        def tool(name, description, *properties):
            parameters = {"type": "object", "properties": {p: {"type": "string"} for p in properties}, "required": list(properties)}
            return {"name": name, "description": description, "parameters": parameters}

        return [
            tool("show_tables", "Shows the tables and their columns."),
            tool("run_query", "Runs an SQL query and shows its first rows.", "query"),
        ]

    def call(self, name, arguments):
        try:
            given = json.loads(arguments or "{}")
            if name == "show_tables":
                return queries.schema(self.task.shown)
            if name == "run_query":
                return queries.show(queries.run(self.task.shown, given["query"]))
            return "error: no such tool"
        except json.JSONDecodeError:
            return "error: the arguments are not JSON"
        except queries.FAILURES as failure:
            return "error: " + queries.why(failure)
        except (TypeError, KeyError):
            return "error: the arguments are not what the tool takes"

    def score(self, answer):
        components = self.task.judge(answer)
        return min(components.values()), components

    def habits(self):
        return [INVERTED]

    def solve(self, habit=None):
        query = self.written(habit)
        return [("show_tables", "{}"), ("run_query", json.dumps({"query": query}))], query

    def reply(self, role, messages, tools, habit):
        """What a model says to a call of langgraph_agent.py, whatever its prompts say: a query, or what is wrong with the last."""
        if role == "checker":
            return "OK" if all(self.task.judge(self.query).values()) else "The last condition is the wrong way round."
        slips = role == "writer" and self.task.slips
        self.query = self.written(INVERTED if slips else habit)
        return self.query

    def written(self, habit):
        """The query of a model with a habit, or without."""
        return self.task.question.inverted if habit == INVERTED else self.task.question.query


if __name__ == "__main__":
    protocol.serve(Environment)
