"""Questions about countries that take several searches, each for what the one before has found."""

import hashlib
import itertools
import json
import os
import random
import re
from collections import Counter

from scoring import words

VALIDATION = 5  # one of so many questions is for validation, and is never one of training
LEVELS = 4

# How a country is described by one of its facts, by another country, and what is asked of it. The first two levels use the
# first form alone.
WHOSE = {
    "highest point": ["the country whose highest point is {}", "the country in which no place is higher than {}"],
    "capital": ["the country whose capital is {}", "the country that is governed from {}"],
    "internet country code": ["the country whose internet country code is {}", "the country that has the top-level domain {}"],
    "national anthem": ["the country whose national anthem is {}", "the country where {} is sung as the anthem"],
}
NEXT_TO = {
    "border countries": ["the only neighbour of {}", "the one country that shares a border with {}"],
    "export partners": ["the largest export partner of {}", "the country that buys most of the exports of {}"],
}
ASKED = {
    "capital": ["What is the capital of {}?", "Name the capital of {}."],
    "highest point": ["What is the highest point of {}?", "Which place is the highest of {}?"],
    "internet country code": ["What is the internet country code of {}?", "What is the top-level domain of {}?"],
    "currency": ["What is the currency of {}?", "With which money does one pay in {}?"],
    "national symbol": ["What is the national symbol of {}?", "Which emblem stands for {}?"],
    "government type": ["What is the government type of {}?", "Which form of government has {}?"],
    "area": ["What is the area of {}?", "How many square kilometres has {}?"],
    "land boundaries": ["What is the length of the land boundaries of {}?", "How many kilometres long is the land border of {}?"],
    "coastline": ["What is the length of the coastline of {}?", "How many kilometres of coast has {}?"],
    "mean elevation": ["What is the mean elevation of {}?", "How many metres high is {} on average?"],
    "median age": ["What is the median age of {}?", "Half of the people are younger than which age in {}?"],
    "airports": ["What is the number of airports of {}?", "How many airports has {}?"],
}
# The first level asks for these facts, of countries that have short names and are described by short names.
NUMBERS = ["area", "land boundaries", "coastline", "mean elevation", "median age", "airports"]
SHORT = re.compile(r"[A-Z][a-z]+(?: [A-Z][a-z]+)?|\.[a-z]{2}|[\d,.]+")
LONGEST = 13  # letters of a short name

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "facts.json"), encoding="utf-8") as file:
    FACTS = json.load(file)


class Question:
    """A text, the searches that answer it, and what each finds; the last is the answer.

    A hop is a wording, the relation that it is about, and what it leads to from where the one before has led."""

    def __init__(self, start, hops, pick):
        self.text, self.queries, self.found = start, [], []
        for wording, relation, found in hops:
            self.text = pick(wording[relation]).format(self.text)
            self.queries.append(f"{relation} is {start}" if wording is WHOSE else f"{relation} of {(self.found or [start])[-1]}")
            self.found.append(found)


def draw(split, index, difficulty):
    """The question of a task. Task i has level 1 + i mod difficulty; where there are more tasks than questions, they recur."""
    level = 1 + index % max(1, min(LEVELS, difficulty))
    number = random.Random(f"retrieval-qa {split} {index}").random  # the same in every version of Python

    def pick(values):
        return values[int(number() * len(values))]

    every = list(paths(level))
    start, hops = next(path for path in iter(lambda: pick(every), None) if asks(split, *path))
    return Question(start, hops, pick if level > 2 else lambda forms: forms[0])


def pool(level, split):
    """All questions of a level and a split."""
    return [path for path in paths(level) if asks(split, *path)]


def asks(split, start, hops):
    """Whether a path is a question of the split: it is not if its answer has a word of what leads to it, so that whoever stops
    early gets nothing for it."""
    *before, answer = [start, *(found for _, _, found in hops)]
    if any(set(words(answer)) & set(words(name)) for name in before):
        return False
    key = json.dumps([start, [[relation, found] for _, relation, found in hops]])
    return (split == "validation") == (hashlib.sha256(key.encode()).digest()[0] % VALIDATION == 0)


def paths(level):
    """Where questions of a level may start, and the hops from there."""
    for country, facts in FACTS.items():
        if level == 1:
            facts = {relation: fact for relation, fact in facts.items() if short(country) and short(fact)}
        starts, ends = [(country, [])], [([], facts)]
        if level != 3:
            starts = [(facts[relation], [(WHOSE, relation, country)]) for relation in WHOSE if OWNERS[relation, facts.get(relation)] == 1]
        if level > 2:
            ends = [([(NEXT_TO, relation, facts[relation])], FACTS[facts[relation]]) for relation in NEXT_TO if facts.get(relation) in FACTS]
        for (start, first), (then, end) in itertools.product(starts, ends):
            for asked in NUMBERS if level == 1 else ASKED:
                if asked in end:
                    yield start, [*first, *then, (ASKED, asked, end[asked])]


def short(name):
    return len(name) <= LONGEST and SHORT.fullmatch(name)


# How many countries a fact is true of.
OWNERS = Counter((relation, value) for facts in FACTS.values() for relation, value in facts.items())
