#!/usr/bin/env python3
"""Questions about SQLite databases. The answer is a query. It is run on the database that the agent could look at, and on a
second one with the same tables and other rows, so that the query has to be right, and not only its result."""

import json
import os
import random
import sqlite3

import protocol

# Owners, what they own, where owners are, those places, and what is counted of each thing that is owned.
DOMAINS = [
    ("customers", "orders", "city", ["Oslo", "Lima", "Pune", "Kyoto", "Quito"], "amount"),
    ("authors", "books", "country", ["Chile", "Ghana", "Japan", "Malta", "Peru"], "pages"),
    ("teams", "matches", "league", ["north", "south", "east", "west"], "goals"),
    ("farms", "harvests", "region", ["hills", "coast", "valley", "delta"], "tons"),
]
NAMES = ["Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jill", "Kai", "Lea", "Milo", "Nora", "Otto", "Pia"]
YEARS = [2019, 2020, 2021, 2022, 2023]
MOST_ROWS = 200  # that a query may return
MOST_STEPS = 2_000_000  # of SQLite's machine, for a query

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "settings.json")) as settings:
    SETTINGS = json.load(settings)


class Numbers:
    """Random numbers that are the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, n):
        return int(self.random() * n)

    def pick(self, values):
        return values[self.below(len(values))]


class Task:
    """A question, the query that answers it, and two databases."""

    def __init__(self, split, index):
        # Some questions have no answer in the rows that were drawn, or the same one in both: others are drawn then.
        for attempt in range(100):
            n = Numbers(f"text-to-sql/1 {split} {index} {attempt}")
            self.domain = n.pick(DOMAINS)
            self.question, self.query = question(n, self.domain, 1 + index % max(1, min(5, SETTINGS["difficulty"])))
            self.paths = [database(n, self.domain, name) for name in ("shown.db", "hidden.db")]
            self.wanted = [run(path, self.query) for path in self.paths]
            if all(rows and rows != [(None,)] for rows in self.wanted) and not same(*self.wanted):
                return
        raise RuntimeError("no question with an answer")


def database(n, domain, path):
    """Makes a database of random rows."""
    owners, things, place, places, count = domain
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    db.execute(f"CREATE TABLE {owners} (id INTEGER PRIMARY KEY, name TEXT, {place} TEXT)")
    db.execute(f"CREATE TABLE {things} (id INTEGER PRIMARY KEY, owner_id INTEGER REFERENCES {owners}(id), {count} INTEGER, year INTEGER)")
    how_many = 6 + n.below(len(NAMES) - 6)
    db.executemany(f"INSERT INTO {owners} VALUES (?, ?, ?)", [(i + 1, NAMES[i], n.pick(places)) for i in range(how_many)])
    db.executemany(f"INSERT INTO {things} VALUES (?, ?, ?, ?)",
        [(i + 1, 1 + n.below(how_many), 1 + n.below(100), n.pick(YEARS)) for i in range(SETTINGS["rows"])])
    db.commit()
    db.close()
    return path


def question(n, domain, level):
    """A question and its query: a condition, an aggregate, a join, groups, a query inside a query."""
    owners, things, place, places, count = domain
    where, year, least = n.pick(places), n.pick(YEARS), 20 + n.below(60)
    joined = f"{owners} o JOIN {things} t ON t.owner_id = o.id"
    if level == 1:
        return (f"How many {owners} have the {place} {where}?",
            f"SELECT COUNT(*) FROM {owners} WHERE {place} = '{where}'")
    if level == 2:
        return (f"What is the sum of {count} over all {things} of the year {year}?",
            f"SELECT SUM({count}) FROM {things} WHERE year = {year}")
    if level == 3:
        return (f"Which {owners} with the {place} {where} have {things} with {count} above {least}? List each name once.",
            f"SELECT DISTINCT o.name FROM {joined} WHERE o.{place} = '{where}' AND t.{count} > {least}")
    if level == 4:
        return (f"For each {place}, how large is the sum of {count} of the {things} of its {owners}? "
            f"Leave out sums below {least * 5}. List {place} and sum.",
            f"SELECT o.{place}, SUM(t.{count}) FROM {joined} GROUP BY o.{place} HAVING SUM(t.{count}) >= {least * 5}")
    return (f"Which {owners} have a larger sum of {count} over their {things} since {year} than the average of these sums over all "
        f"{owners} that have {things} since {year}? List their names.",
        f"WITH s AS (SELECT owner_id, SUM({count}) AS x FROM {things} WHERE year >= {year} GROUP BY owner_id) "
        f"SELECT o.name FROM {owners} o JOIN s ON s.owner_id = o.id WHERE s.x > (SELECT AVG(x) FROM s)")


READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}


def run(path, query):
    """The rows of a query, which can do nothing but read, for a while. What is wrong with it is a sqlite3.Error or a Warning."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        db.text_factory = lambda b: b.decode(errors="replace")
        db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
        db.set_progress_handler(lambda: 1, MOST_STEPS)
        if hasattr(db, "setlimit"):
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 100_000)
        rows = db.execute(query).fetchmany(MOST_ROWS + 1)
        if len(rows) > MOST_ROWS:
            raise sqlite3.DataError(f"there are more than {MOST_ROWS} rows")
        return rows
    finally:
        db.close()


def same(rows, wanted):
    """Whether two results have the same rows, in whatever order."""
    return sorted(map(repr, rows)) == sorted(map(repr, wanted))


class Environment:
    def __init__(self, split, index, task):
        self.task = Task(split, index)

    def messages(self):
        return [
            {"role": "system", "content": "You are asked about an SQLite database. Look at it with the tools, "
                "then answer with one SQL query and nothing else. Only the rows that it returns count, not their order."},
            {"role": "user", "content": self.task.question},
        ]

    def tools(self):
        def tool(name, description, **properties):
            parameters = {"type": "object", "properties": {p: {"type": "string"} for p in properties}, "required": list(properties)}
            return {"name": name, "description": description, "parameters": parameters}

        return [
            tool("list_tables", "Lists the tables."),
            tool("describe_table", "Shows a table's columns and its first rows.", table=str),
            tool("run_query", "Runs an SQL query and shows its first rows.", query=str),
        ]

    def call(self, name, arguments):
        try:
            given = json.loads(arguments or "{}")
            if name == "list_tables":
                return " ".join(self.task.domain[:2])
            if name == "describe_table":
                if given["table"] not in self.task.domain[:2]:
                    return "error: no such table"
                made = sqlite3.connect(self.task.paths[0])
                (text,) = made.execute("SELECT sql FROM sqlite_master WHERE name = ?", (given["table"],)).fetchone()
                made.close()
                return text + "\n" + show(run(self.task.paths[0], f"SELECT * FROM {given['table']} LIMIT 3"))
            if name == "run_query":
                return show(run(self.task.paths[0], given["query"]))
            return "error: no such tool"
        except (sqlite3.Error, sqlite3.Warning, MemoryError) as e:
            return f"error: {str(e) or 'out of memory'}"
        except (ValueError, TypeError, KeyError):
            return "error: the arguments are not what the tool takes"

    def score(self, answer):
        components = {"runs": 0, "shown": 0, "hidden": 0}
        try:
            shown, hidden = (run(path, answer) for path in self.task.paths)
        except (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError):
            return 0, components
        components["runs"] = int(bool(answer.strip()))
        components["shown"], components["hidden"] = int(same(shown, self.task.wanted[0])), int(same(hidden, self.task.wanted[1]))
        return (1 if components["shown"] and components["hidden"] else 0), components

    def solve(self):
        return [("list_tables", "{}"), ("run_query", json.dumps({"query": self.task.query}))], self.task.query


def show(rows):
    """The first rows as text."""
    lines = [" | ".join(str(value)[:100] for value in row) for row in rows[:20]]
    if len(rows) > 20:
        lines.append(f"and {len(rows) - 20} more rows")
    return "\n".join(lines) or "no rows"


if __name__ == "__main__":
    protocol.serve(Environment)
