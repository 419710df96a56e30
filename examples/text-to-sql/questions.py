"""The questions: families of growing difficulty, each with its query and with one whose last condition is the wrong way
round."""

from typing import NamedTuple


class Question(NamedTuple):
    """A question, the query that answers it, and the one that is the wrong way round."""

    text: str
    query: str
    inverted: str


class Condition(NamedTuple):
    """What rows do, and the same in SQL; the column without its table."""

    text: str
    sql: str
    column: str

    def of(self, table):
        return f"{table.name}.{self.sql}"


def condition(n, table, besides=None):
    """A condition on one of a table's columns, but for one of them."""
    column = n.pick([c for c in table.texts + table.numbers if c.name != besides])
    if column in table.texts:
        value = n.pick(column.values)
        return Condition(column.phrase.format(value), f"{column.name} = '{value}'", column.name)
    above = n.below(2)
    value = round_number(n, column.low + 1, column.high)
    return Condition((column.above if above else column.below).format(value), f"{column.name} {'>' if above else '<'} {value}", column.name)


def round_number(n, low, high):
    """A number from low up to high, as people say them."""
    step = next(step for limit, step in ((100, 1), (200, 5), (1000, 10), (high, 100)) if high - low <= limit)
    return step * (-(-low // step) + n.below((high - 1) // step - (low - 1) // step))


def related(n, tables):
    """A table, and the one that it belongs to."""
    child = n.pick([t for t in tables if t.parent])
    return child, next(t for t in tables if t.name == child.parent)


def joined(child, parent):
    return f"{child.name} JOIN {parent.name} ON {parent.name}.id = {child.name}.{parent.one}_id"


def filters(n, tables):
    """The rows of a table with a condition."""
    t = n.pick(tables)
    c = condition(n, t)
    kind = n.below(3)
    if kind == 0:
        return whole(f"How many {t.name} {c.text}?", f"SELECT count(*) FROM {t.name}", f" WHERE {c.sql}")
    if kind == 1:
        return whole(f"Which {t.name} {c.text}? Give each {t.label}.", f"SELECT {t.label} FROM {t.name}", f" WHERE {c.sql}")
    x = n.pick(t.texts + t.numbers).name
    return whole(f"Which {t.name} {c.text}? Give each {t.label} and {x}.", f"SELECT {t.label}, {x} FROM {t.name}", f" WHERE {c.sql}")


def aggregates(n, tables):
    """A figure of the rows with a condition, or of those with two."""
    t = n.pick(tables)
    if n.below(2):
        c = condition(n, t)
        d = condition(n, t, besides=c.column)
        return whole(f"How many {t.name} {c.text} and {d.text}?", f"SELECT count(*) FROM {t.name} WHERE {c.sql}", f" AND {d.sql}")
    x = n.pick(t.numbers)
    c = condition(n, t, besides=x.name)
    word, function = n.pick([("average", "avg"), ("sum of the", "sum"), ("largest", "max"), ("smallest", "min")])
    return whole(f"What is the {word} {x.name} of the {t.name} that {c.text}?", f"SELECT {function}({x.name}) FROM {t.name}", f" WHERE {c.sql}")


def joins(n, tables):
    """Conditions on rows and on those that they belong to."""
    child, parent = related(n, tables)
    c, d = condition(n, child), condition(n, parent)
    if n.below(2):
        return whole(f"How many {child.name} that {c.text} belong to {parent.name} that {d.text}?",
            f"SELECT count(*) FROM {joined(child, parent)} WHERE {c.of(child)}", f" AND {d.of(parent)}")
    return whole(f"Which {parent.name} that {d.text} have {child.name} that {c.text}? Give each {parent.label} once.",
        f"SELECT DISTINCT {parent.name}.{parent.label} FROM {joined(child, parent)} WHERE {d.of(parent)}", f" AND {c.of(child)}")


def groups(n, tables):
    """Figures of groups, of those that fulfil a condition."""
    child, parent = related(n, tables)
    kind = n.below(3)
    if kind == 0:
        t, k = n.pick(tables), 1 + n.below(12)
        by = n.pick(t.texts).name
        return whole(f"How many {t.name} are there for each {by}? Leave out numbers up to {k}. Give the {by} and the number.",
            f"SELECT {by}, count(*) FROM {t.name} GROUP BY {by}", f" HAVING count(*) > {k}")
    if kind == 1:
        c, k = condition(n, child), 1 + n.below(4)
        return whole(f"Which {parent.name} have more than {k} {child.name} that {c.text}? Give each {parent.label}.",
            f"SELECT {parent.name}.{parent.label} FROM {joined(child, parent)} WHERE {c.of(child)} GROUP BY {parent.name}.id", f" HAVING count(*) > {k}")
    x, by = n.pick(child.numbers), n.pick(parent.texts).name
    k = (1 + n.below(12)) * x.high
    total = f"sum({child.name}.{x.name})"
    return whole(f"For each {by} of {parent.name}, what is the sum of the {x.name} of their {child.name}? Give the {by} and the sum where it is above {k}.",
        f"SELECT {parent.name}.{by}, {total} FROM {joined(child, parent)} GROUP BY {parent.name}.{by}", f" HAVING {total} > {k}")


def nested(n, tables):
    """Conditions that need queries of their own."""
    child, parent = related(n, tables)
    kind = n.below(4)
    if kind == 0:
        t = n.pick(tables)
        x, c = n.pick(t.numbers), condition(n, t, besides=t.numbers[0].name)
        return whole(f"Of the {t.name} that {c.text}, how many have {x.name} above the average of these?",
            f"SELECT count(*) FROM {t.name} WHERE {c.sql}", f" AND {x.name} > (SELECT avg({x.name}) FROM {t.name} WHERE {c.sql})")
    if kind == 1:
        t = n.pick(tables)
        x, by = n.pick(t.numbers), n.pick(t.texts).name
        return whole(f"Which {t.name} have the largest {x.name} of those with the same {by}? Give the {by} and each {t.label}.",
            f"SELECT {by}, {t.label} FROM {t.name} AS a", f" WHERE {x.name} = (SELECT max({x.name}) FROM {t.name} AS b WHERE b.{by} = a.{by})")
    c = condition(n, child)
    if kind == 2:
        return whole(f"Which {parent.name} have no {child.name} that {c.text}? Give each {parent.label}.", f"SELECT {parent.label} FROM {parent.name}",
            f" WHERE id NOT IN (SELECT {parent.one}_id FROM {child.name} WHERE {c.sql})")
    counted = f"SELECT count(*) AS k FROM {child.name} WHERE {c.sql} GROUP BY {parent.one}_id"
    return whole(f"Which {parent.name} have the most {child.name} that {c.text}? Give each {parent.label}, also where several have as many.",
        f"SELECT {parent.name}.{parent.label} FROM {joined(child, parent)} WHERE {c.of(child)} GROUP BY {parent.name}.id",
        f" HAVING count(*) = (SELECT max(k) FROM ({counted}))")


INVERSE = {" = ": " <> ", " > ": " < ", " < ": " > ", " NOT IN ": " IN "}


def whole(text, query, last):
    """A question whose query ends with a condition, which has an operator to invert."""
    at, operator = min((last.index(o), o) for o in INVERSE if o in last)
    return Question(text, query + last, query + last[:at] + INVERSE[operator] + last[at + len(operator):])


FAMILIES = [filters, aggregates, joins, groups, nested]
