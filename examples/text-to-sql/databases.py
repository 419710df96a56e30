"""The databases: what their tables are, and the rows that are drawn for them. As a program it writes databases/NAME.sql,
from which an agent makes the databases that it looks at."""

import os
import random
from typing import NamedTuple, Optional


class Numbers:
    """Random numbers that are the same in every version of Python."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, n):
        return int(self.random() * n)

    def pick(self, values):
        return values[self.below(len(values))]

    def some(self, values, n):
        """n different ones of them."""
        left = list(values)
        return [left.pop(self.below(len(left))) for _ in range(n)]


class Text(NamedTuple):
    """A column of words, and what rows with one of them do."""

    name: str
    values: tuple
    phrase: str


class Number(NamedTuple):
    """A column of whole numbers, and what rows above and below one of them do."""

    name: str
    low: int
    high: int
    above: str
    below: str


class Table(NamedTuple):
    """A table of so many rows. Rows have an id, a label unless that is the id, the id of the parent's row, and columns."""

    name: str
    one: str
    label: str
    labels: tuple
    rows: int
    texts: tuple
    numbers: tuple
    parent: Optional[str] = None

    def columns(self, parent):
        """The columns with their types."""
        found = [("id", "INTEGER PRIMARY KEY")]
        if self.labels:
            found.append((self.label, "TEXT NOT NULL"))
        if parent:
            found.append((parent.one + "_id", f"INTEGER NOT NULL REFERENCES {parent.name}(id)"))
        return found + [(c.name, "TEXT NOT NULL") for c in self.texts] + [(c.name, "INTEGER NOT NULL") for c in self.numbers]


NAMES = ("Ada", "Ben", "Cleo", "Dan", "Eva", "Finn", "Gus", "Hana", "Ivo", "Jill", "Kai", "Lea", "Milo", "Nora", "Otto", "Pia",
    "Quin", "Rosa", "Sami", "Tess", "Uma", "Vito", "Wanda", "Xenia", "Yuri", "Zoe")
CITIES = ("Oslo", "Lima", "Pune", "Kyoto", "Quito", "Turin")
TITLES = tuple(f"The {a} {b}" for a in ("Quiet", "Last", "Blue", "Iron", "Lost") for b in ("River", "Garden", "Winter", "Letter", "Harbour", "Clock"))

DATABASES = {
    "shop": (
        Table("customers", "customer", "name", NAMES, 22, (Text("city", CITIES, "live in {}"),),
            (Number("age", 18, 80, "are older than {}", "are younger than {}"),)),
        Table("orders", "order", "id", (), 70, (Text("status", ("paid", "open", "sent", "late"), "are {}"),),
            (Number("amount", 5, 500, "cost more than {}", "cost less than {}"),), "customers"),
    ),
    "library": (
        Table("authors", "author", "name", NAMES, 18, (Text("country", ("Chile", "Ghana", "Japan", "Malta", "Peru"), "come from {}"),),
            (Number("born", 1900, 1990, "were born after {}", "were born before {}"),)),
        Table("books", "book", "title", TITLES, 30, (Text("genre", ("crime", "poetry", "history", "travel"), "are about {}"),),
            (Number("pages", 60, 900, "have more than {} pages", "have fewer than {} pages"),), "authors"),
        Table("loans", "loan", "id", (), 70, (Text("branch", ("north", "south", "centre"), "are from the branch {}"),),
            (Number("days", 1, 60, "took more than {} days", "took fewer than {} days"),), "books"),
    ),
    "clinic": (
        Table("doctors", "doctor", "name", NAMES, 16, (Text("ward", ("surgery", "heart", "skin", "eyes"), "work in {}"),),
            (Number("years", 1, 40, "have worked more than {} years", "have worked fewer than {} years"),)),
        Table("visits", "visit", "id", (), 70, (Text("day", ("Monday", "Tuesday", "Friday", "Sunday"), "were on {}"),),
            (Number("minutes", 5, 90, "took more than {} minutes", "took fewer than {} minutes"),), "doctors"),
    ),
    "league": (
        Table("teams", "team", "city", CITIES + ("Accra", "Basel", "Cairo", "Dakar", "Ghent", "Hanoi"), 10,
            (Text("division", ("east", "west"), "play in the {}"),),
            (Number("founded", 1880, 2010, "were founded after {}", "were founded before {}"),)),
        Table("players", "player", "name", NAMES, 26, (Text("position", ("keeper", "defender", "striker"), "play as {}"),),
            (Number("goals", 0, 40, "have scored more than {} goals", "have scored fewer than {} goals"),), "teams"),
    ),
    "airline": (
        Table("planes", "plane", "name", tuple(a + b for a in NAMES[:8] for b in ("1", "2")), 12,
            (Text("maker", ("Airbus", "Boeing", "Embraer"), "were made by {}"),),
            (Number("seats", 40, 400, "have more than {} seats", "have fewer than {} seats"),)),
        Table("flights", "flight", "id", (), 80, (Text("origin", CITIES, "start in {}"),),
            (Number("distance", 100, 9000, "are longer than {} km", "are shorter than {} km"),), "planes"),
    ),
    "farm": (
        Table("fields", "field", "name", tuple(f"{a} {b}" for a in ("upper", "lower", "old", "far") for b in ("acre", "meadow", "slope", "marsh")),
            14, (Text("soil", ("clay", "sand", "loam"), "consist of {}"),),
            (Number("hectares", 1, 60, "are larger than {} hectares", "are smaller than {} hectares"),)),
        Table("harvests", "harvest", "id", (), 60, (Text("crop", ("wheat", "barley", "beans", "maize"), "are of {}"),),
            (Number("tons", 1, 200, "came to more than {} tons", "came to less than {} tons"),), "fields"),
    ),
}


def script(name, seed):
    """The SQL that makes a database with the rows of a seed."""
    n = Numbers(f"text-to-sql database {name} {seed}")
    tables = {t.name: t for t in DATABASES[name]}
    lines = ["BEGIN;"]
    for t in tables.values():
        parent = tables.get(t.parent)
        lines.append(f"CREATE TABLE {t.name} ({', '.join(' '.join(c) for c in t.columns(parent))});")
        labels = n.some(t.labels, t.rows) if t.labels else []
        for i in range(t.rows):
            row = [i + 1] + labels[i:i + 1]
            if parent:
                row.append(1 + n.below(parent.rows))
            row += [n.pick(c.values) for c in t.texts] + [c.low + n.below(c.high - c.low + 1) for c in t.numbers]
            lines.append(f"INSERT INTO {t.name} VALUES ({', '.join(literal(v) for v in row)});")
    return "\n".join(lines + ["COMMIT;", ""])


def literal(value):
    """A number or a text in SQL."""
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


SHOWN, HIDDEN = "shown", "hidden"  # the seed of the rows that agents see, and of those that they do not

if __name__ == "__main__":
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "databases")
    os.makedirs(folder, exist_ok=True)
    for name in DATABASES:
        with open(os.path.join(folder, name + ".sql"), "w", encoding="utf-8") as file:
            file.write(script(name, SHOWN))
