"""What has to hold of the tasks and queries of examples/text-to-sql, whose folder is the argument. Silence is success."""

import os
import sys

sys.path.insert(0, sys.argv[1])

import databases
import environment
import queries
import questions

TASKS = 40


def tasks(split, difficulty, unseen=False):
    environment.SETTINGS.update(difficulty=difficulty, unseen=unseen)
    return [environment.Task(split, i) for i in range(TASKS)]


def key(task):
    return task.database, task.question.text


def refused(db, query):
    try:
        return None if queries.run(db, query) is None else False
    except queries.FAILURES as failure:
        return queries.why(failure)


# A task is a function of its split and number; its query is right, and the one that is the wrong way round is not. No
# question is in both splits.
for difficulty in range(1, len(questions.FAMILIES) + 1):
    train, validation = tasks("train", difficulty), tasks("validation", difficulty)
    assert [key(t) for t in train] == [key(t) for t in tasks("train", difficulty)]
    for t in train + validation:
        assert t.judge(t.question.query) == {"runs": 1, "shown": 1, "hidden": 1}, t.question
        assert t.judge(t.question.inverted)["runs"] and not t.judge(t.question.inverted)["shown"], t.question
        for value, in t.wanted[0][:1] if len(t.wanted[0][0]) == 1 and len(t.wanted[0]) == 1 else []:
            assert t.judge(f"SELECT {value!r}") == {"runs": 1, "shown": 1, "hidden": 0}, t.question
    assert not {key(t) for t in train} & {key(t) for t in validation}
    assert len({key(t) for t in train}) > TASKS // 2

# What validation's easiest questions say of words, some of train's say too: a small policy knows no others.
environment.SETTINGS.update(difficulty=1, unseen=False)
words = {split: {(t.database, w) for t in (environment.Task(split, i) for i in range(n)) for w in t.question.text.replace("?", "").split() if not w.isdigit()}
    for split, n in (("train", 1500), ("validation", 300))}
assert words["validation"] <= words["train"], words["validation"] - words["train"]

# On demand the databases of validation are others, too.
of = {split: {t.database for t in tasks(split, 5, unseen=True)} for split in ("train", "validation")}
assert of["validation"] == set(environment.UNSEEN) and not of["train"] & of["validation"] and of["train"] | of["validation"] == set(databases.DATABASES)

# Numbers are those that people say, and within the range.
for low, high, step in ((1, 60, 1), (1880, 2010, 5), (61, 900, 10), (101, 9000, 100)):
    drawn = {questions.round_number(databases.Numbers(str(i)), low, high) for i in range(2000)}
    assert low <= min(drawn) < low + step and high - step <= max(drawn) < high and all(d % step == 0 for d in drawn), drawn

# The rows count, whatever their order, and not how a number is written.
assert environment.same([(1, "a"), (2.0, "b")], [(2, "b"), (1.0, "a")])
assert not environment.same([(1,)], [("1",)]) and not environment.same([(1,), (1,)], [(1,)]) and not environment.same([(None,)], [("None",)])

# Queries do nothing but read, and not for ever; afterwards the database is what it was.
db = queries.make(databases.script("shop", databases.SHOWN))
for query in ("DELETE FROM orders", "DROP TABLE orders", "PRAGMA query_only = 0", "ATTACH ':memory:' AS a", "BEGIN", "SELECT 1; SELECT 2", "SELECT nothing FROM orders",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n", "SELECT * FROM orders, customers",
        "SELECT zeroblob(1000000000)" if hasattr(db, "setlimit") else "SELECT \0"):
    assert refused(db, query), query
assert queries.run(db, "SELECT count(*) FROM orders") == [(70,)]
assert queries.schema(db) == "customers(id, name, city, age)\norders(id, customer_id, status, amount)"
assert queries.show([(i, "x" * 100) for i in range(7)]) == "\n".join(f"{i} | " + "x" * 60 for i in range(5)) + "\nand 2 more"

# What an agent opens are the databases that are asked about.
for name in databases.DATABASES:
    with open(os.path.join(sys.argv[1], "databases", name + ".sql"), encoding="utf-8") as file:
        assert file.read() == databases.script(name, databases.SHOWN), f"databases/{name}.sql is out of date: run databases.py"

# An agent whose roles are played by reply solves every task, at times with the rewriter's help; with the habit it solves none.
environment.SETTINGS.update(difficulty=5, unseen=False)
mended = 0
for i in range(TASKS):
    for habit, reward in ((None, 1), ("inverted", 0)):
        e = environment.Environment("train", i, None)
        query = e.reply("writer", [], [], habit)
        verdict = e.reply("checker", [], [], habit)
        assert (verdict == "OK") == e.score(query)[0], (verdict, query)
        if verdict != "OK":
            query, mended = e.reply("rewriter", [], [], habit), mended + (habit is None)
        assert e.score(query)[0] == reward, (habit, query)
        assert e.solve(habit)[1] == query and e.habits() == ["inverted"]
assert TASKS // 10 < mended < TASKS * 6 // 10, mended
