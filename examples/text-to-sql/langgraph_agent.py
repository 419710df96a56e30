"""An agent that answers questions about SQLite databases, on LangGraph: a writer makes a query, which is run; a checker
looks at query and result; what the checker finds wrong a rewriter mends, until nothing is found or it was rewritten often
enough.

It reads the name of a database, and on the next lines a question, from standard input. The last query is printed."""

import os
import re
import sys
from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

import queries

# The model of each role, such as WRITER_MODEL=gpt-5-mini.
WRITER, CHECKER, REWRITER = (
    ChatOpenAI(model=os.environ.get(role.upper() + "_MODEL", "policy/" + role)) for role in ("writer", "checker", "rewriter"))
REWRITES = int(os.environ.get("REWRITES", "1"))  # of a query, at most

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "databases")


class State(TypedDict, total=False):
    question: str
    schema: str
    query: str
    result: str
    verdict: str
    rewrites: int


def ask(model, instruction, state, *parts):
    """What a model says to an instruction and parts of the state."""
    text = "\n".join([state["schema"], "Question: " + state["question"]] + [f"{p.capitalize()}: {state[p]}" for p in parts])
    return model.invoke([("system", instruction), ("user", text)]).text.strip()


def sql(text):
    """The query in a model's answer, which may be in a block of code."""
    block = re.search(r"```(?:sql|sqlite)?\s(.*?)```", text, re.DOTALL)
    return (block.group(1) if block else text).strip().rstrip(";")


def agent(database):
    """The workflow for one database."""

    def write(state):
        return {"query": sql(ask(WRITER, "Write one SQLite query that answers the question. Reply with the query alone.", state))}

    def execute(state):
        try:
            return {"result": queries.show(queries.run(database, state["query"]))}
        except queries.FAILURES as failure:
            return {"result": "error: " + queries.why(failure)}

    def check(state):
        return {"verdict": ask(CHECKER, "Does the query answer the question? Reply with OK, or with what is wrong.", state, "query", "result")}

    def rewrite(state):
        query = ask(REWRITER, "Write the query anew, without what is wrong. Reply with the query alone.", state, "query", "result", "verdict")
        return {"query": sql(query), "rewrites": state["rewrites"] + 1}

    def more(state):
        return "check" if state["rewrites"] < REWRITES else END

    def accepted(state):
        return END if state["verdict"].upper().startswith("OK") else "rewrite"

    graph = StateGraph(State)
    for step in (write, execute, check, rewrite):
        graph.add_node(step.__name__, step)
    graph.add_edge(START, "write")
    graph.add_edge("write", "execute")
    graph.add_conditional_edges("execute", more, ["check", END])
    graph.add_conditional_edges("check", accepted, ["rewrite", END])
    graph.add_edge("rewrite", "execute")
    return graph.compile()


name, _, question = sys.stdin.read().strip().partition("\n")
if not re.fullmatch(r"\w+", name):
    sys.exit(f"{name!r} is no name of a database")
with open(os.path.join(FOLDER, name + ".sql"), encoding="utf-8") as script:
    database = queries.make(script.read())
state = {"question": question, "schema": queries.schema(database), "rewrites": 0}
print(agent(database).invoke(state)["query"])
