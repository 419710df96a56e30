"""Databases that are made from a script, and queries on them that can do nothing but read, for a while."""

import sqlite3

MOST_ROWS = 200  # that a query may return
MOST_STEPS = 2_000_000  # of SQLite's machine, for a query
LONGEST = 100_000  # bytes of a value, or of a query
READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
SHOWN_ROWS, SHOWN_VALUE = 5, 60  # of a result as text: rows, and characters of a value

# What a query may be refused with. A value that is too long for memory is no sqlite3.Error, nor is a query in pieces.
FAILURES = (sqlite3.Error, sqlite3.Warning, MemoryError, ValueError)


def make(script):
    """A database in memory."""
    db = sqlite3.connect(":memory:", cached_statements=0, check_same_thread=False)
    db.executescript(script)
    db.text_factory = lambda b: b.decode(errors="replace")
    if hasattr(db, "setlimit"):
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        db.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, LONGEST)
    return db


def schema(db):
    """The tables with their columns, a line each."""
    tables = [name for name, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid")]
    return "\n".join(f"{t}({', '.join(c for c, in db.execute('SELECT name FROM pragma_table_info(?)', (t,)))})" for t in tables)


def run(db, query):
    """The rows of a query. It raises one of FAILURES."""
    db.set_authorizer(lambda action, *_: sqlite3.SQLITE_OK if action in READING else sqlite3.SQLITE_DENY)
    db.set_progress_handler(lambda: 1, MOST_STEPS)
    try:
        rows = db.execute(query).fetchmany(MOST_ROWS + 1)
    finally:
        db.set_progress_handler(None, 0)
        db.set_authorizer(None)
    if len(rows) > MOST_ROWS:
        raise sqlite3.DataError(f"there are more than {MOST_ROWS} rows")
    return rows


def show(rows):
    """The first rows as text."""
    lines = [" | ".join(str(value)[:SHOWN_VALUE] for value in row) for row in rows[:SHOWN_ROWS]]
    if len(rows) > SHOWN_ROWS:
        lines.append(f"and {len(rows) - SHOWN_ROWS} more")
    return "\n".join(lines) or "no rows"


def why(failure):
    """What is wrong with a query."""
    return str(failure) or "out of memory"
