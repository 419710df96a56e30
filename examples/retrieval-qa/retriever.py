"""A search engine over corpus.txt: BM25 (Robertson and Zaragoza, 2009, with the usual k1 = 1.2 and b = 0.75).

It keeps no index: a query's words are looked up in the text, which takes milliseconds for the one megabyte that it is,
less than reading an index would."""

import bisect
import math
import os
import re
import unicodedata

LONGEST_QUERY = 16  # words, which bounds the time that a query takes
STOP_WORDS = set("a an and are as at by for from has in is it its of on or that the to was what which whose with".split())  # .as is none


def fold(text):
    """Text in lower case without accents, so that Yaounde is found too. Its lines stay its lines."""
    def bare(letters):
        return "".join(c for c in unicodedata.normalize("NFKD", letters[0]) if not unicodedata.combining(c))

    return re.sub(r"[^\x00-\x7f]+", bare, text.lower())


class Retriever:
    """Passages are single facts, such as "capital of Ghana: Accra", or with topics all that there is of a country and topic."""

    def __init__(self, topics=False):
        with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus.txt"), encoding="utf-8") as file:
            titled = list(passages(file.read().split("\n"), topics))
        self.passages = [f"{title}: {text}" for title, text in titled]
        # A passage's title counts twice.
        self.text = fold("\n".join(f"{title} {title} {text}" for title, text in titled))
        self.starts = [0] + [newline.end() for newline in re.finditer("\n", self.text)]
        self.mean = (self.text.count(" ") + len(self.starts)) / len(self.starts)

    def search(self, query, most):
        """The best passages for a query, best first."""
        scores = {}
        words = [word.strip(".") for word in re.findall(r"\.?[^\W_]+", fold(query)) if word not in STOP_WORDS]
        for word in list(dict.fromkeys(words))[:LONGEST_QUERY]:
            times = {}
            for place in self.places(word):
                passage = bisect.bisect_right(self.starts, place) - 1
                times[passage] = times.get(passage, 0) + 1
            weight = math.log(1 + (len(self.starts) - len(times) + 0.5) / (len(times) + 0.5))
            for passage, n in times.items():
                long = 0.25 + 0.75 * self.words(passage) / self.mean
                scores[passage] = scores.get(passage, 0) + weight * n * 2.2 / (n + 1.2 * long)
        best = sorted(scores, key=lambda passage: (-scores[passage], passage))
        return [self.passages[passage] for passage in best[:most]]

    def places(self, word):
        """Where the text has a word."""
        place = self.text.find(word)
        while place >= 0:
            end = place + len(word)
            if not self.text[end:end + 1].isalnum() and not self.text[max(0, place - 1):place].isalnum():
                yield place
            place = self.text.find(word, end)

    def words(self, passage):
        """How many words a passage has, by its spaces."""
        end = self.starts[passage + 1] if passage + 1 < len(self.starts) else len(self.text)
        return 1 + self.text.count(" ", self.starts[passage], end)


def passages(lines, topics):
    """The titles and texts of the corpus, each on one line."""
    country, topic, texts = "", "", []
    for line in [*lines, "#"]:
        if line.startswith("#"):
            if texts:
                yield f"{topic} of {country}", "; ".join(texts)
            mark, _, name = line.partition(" ")
            country, topic, texts = (country, name, []) if mark == "##" else (name, "", [])
        elif topics and line:
            texts.append(line)
        elif line:
            name, _, text = line.partition(": ")
            yield f"{name} of {country}", text
