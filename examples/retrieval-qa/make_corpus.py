#!/usr/bin/env python3
"""Makes corpus.txt and facts.json of The World Factbook, from a copy of the repository factbook/factbook.json:

    python3 make_corpus.py /path/to/factbook.json

Both are in this folder already. The same copy makes the same files, to the byte."""

import html
import json
import pathlib
import re
import sys
from collections import Counter

from retriever import Retriever

# What a passage is called, and where the Factbook has it. Passages are grouped by their topics.
TOPICS = {
    "Background": [("background", "Introduction", "Background")],
    "Geography": [
        ("location", "Geography", "Location"),
        ("area", "Geography", "Area", "total "),
        ("land boundaries", "Geography", "Land boundaries", "total"),
        ("border countries", "Geography", "Land boundaries", "border countries"),
        ("coastline", "Geography", "Coastline"),
        ("climate", "Geography", "Climate"),
        ("terrain", "Geography", "Terrain"),
        ("highest point", "Geography", "Elevation", "highest point"),
        ("lowest point", "Geography", "Elevation", "lowest point"),
        ("mean elevation", "Geography", "Elevation", "mean elevation"),
        ("natural resources", "Geography", "Natural resources"),
        ("natural hazards", "Geography", "Natural hazards"),
        ("major rivers", "Geography", "Major rivers (by length in km)"),
    ],
    "Government": [
        ("long form of the name", "Government", "Country name", "conventional long form"),
        ("former name", "Government", "Country name", "former"),
        ("government type", "Government", "Government type"),
        ("capital", "Government", "Capital", "name"),
        ("independence", "Government", "Independence"),
        ("national holiday", "Government", "National holiday"),
        ("national symbol", "Government", "National symbol(s)"),
        ("national colors", "Government", "National color(s)"),
        ("national anthem", "Government", "National anthem(s)", "title"),
    ],
    "People": [
        ("population", "People and Society", "Population", "total"),
        ("nationality", "People and Society", "Nationality", "noun"),
        ("ethnic groups", "People and Society", "Ethnic groups"),
        ("languages", "People and Society", "Languages"),
        ("religions", "People and Society", "Religions"),
        ("major urban areas", "People and Society", "Major urban areas - population"),
        ("median age", "People and Society", "Median age", "total"),
    ],
    "Economy": [
        ("economic overview", "Economy", "Economic overview"),
        ("agricultural products", "Economy", "Agricultural products"),
        ("industries", "Economy", "Industries"),
        ("export partners", "Economy", "Exports - partners"),
        ("export commodities", "Economy", "Exports - commodities"),
        ("import partners", "Economy", "Imports - partners"),
        ("import commodities", "Economy", "Imports - commodities"),
        ("currency", "Economy", "Exchange rates", "Currency"),
    ],
    "Communications and transport": [
        ("internet country code", "Communications", "Internet country code"),
        ("broadcast media", "Communications", "Broadcast media"),
        ("airports", "Transportation", "Airports"),
        ("railways", "Transportation", "Railways", "total"),
        ("key ports", "Transportation", "Ports", "key ports"),
    ],
}
LONGEST = 600  # of a passage, which ends with a sentence or a clause


def plain(text):
    """Text without marks, on one line, up to its first paragraph's end."""
    text = re.split(r"<br\s*/?>\s*<br|</p>|<strong>note", html.unescape(text))[0]
    text = " ".join(html.unescape(re.sub(r"<[^>]*>", " ", text)).split()).strip(" ;")
    text = re.sub(r" ([,;.)])", r"\1", text)
    if len(text) > LONGEST:
        end = max(text.rfind(mark, 0, LONGEST) for mark in (". ", "; ", ", "))
        text = text[:end + 1].rstrip(" ;,")
    return text


def at(profile, *path):
    """What a profile says there, "" if nothing."""
    for name in path:
        profile = profile.get(name, {})
    text = plain(profile.get("text", ""))
    return "" if text.lower().startswith(("none", "n/a", "na ", "note")) or text == "NA" else text


def name_of(profile):
    names = [at(profile, "Government", "Country name", f"conventional {form} form") for form in ("short", "long")]
    name = re.sub(r" \(.*", "", names[0] or names[1]).removeprefix("The ")
    return "Dominican Republic" if name == "Dominican" else name


# What a fact is in its passage: words, or a name, in front of what else is said. Passages of another form give no fact.
WORDS = r"[^\W\d_](?:[^\W\d_]|[ '’-])*[^\W\d_]"
NAME = r"(?=[A-Z])" + WORDS
NUMBER = r"[1-9]\d{0,2}(?:,\d{3})*(?:\.\d+)?"
FACTS = {
    "capital": rf"({NAME})",
    "highest point": rf"({NAME}) [\d,.]+(?: m)?",
    "internet country code": r"(\.[a-z]{2})",
    "national anthem": rf'["“]({NAME})["”](?: \(.*)?',
    "national symbol": rf"({WORDS})",
    "currency": rf"({WORDS}) \([A-Z]+\) per US dollar.*",
    "government type": rf"({WORDS})",
    "border countries": rf"({NAME}) [\d,.]+ km",  # of the countries that have one neighbour
    "export partners": rf"({NAME}) \d+%, .*",  # the largest
    "area": rf"({NUMBER}) sq km",
    "land boundaries": rf"({NUMBER}) km",
    "coastline": rf"({NUMBER}) km",
    "mean elevation": rf"({NUMBER}) m",
    "median age": rf"({NUMBER}) years.*",
    "airports": rf"({NUMBER})(?: .*)?",
}
WHOSE = ("highest point", "capital", "internet country code", "national anthem")  # facts that countries are known by
COUNTRIES = ("border countries", "export partners")  # facts that are countries


def main(source):
    profiles = {}
    for file in sorted(pathlib.Path(source).glob("*/*.json")):
        profile = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(profile, dict) and at(profile, "Government", "Capital", "name") and name_of(profile):
            profiles[name_of(profile)] = profile
    lines, facts = [], {}
    for country, profile in sorted(profiles.items()):
        facts[country] = {}
        lines.append(f"# {country}")
        for topic, passages in TOPICS.items():
            said = [(name, text) for name, *path in passages if (text := at(profile, *path))]
            lines += [f"## {topic}"] + [f"{name}: {text}" for name, text in said] if said else []
            for name, text in said:
                if name in FACTS and (fact := re.fullmatch(FACTS[name], text)):
                    if name not in COUNTRIES or fact[1] in profiles:
                        facts[country][name] = fact[1]
    here = pathlib.Path(__file__).parent
    (here / "corpus.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    library = Retriever()

    def finds(query, country, name):
        return library.search(query, 1)[0].startswith(f"{name} of {country}: ")

    # What its own search does not find is left out, and a fact that leads to another country than its own.
    known = [(country, name, fact) for country, of in facts.items() for name, fact in of.items()]
    strays = {(name, fact) for country, name, fact in known if name in WHOSE and not finds(f"{name} {fact}", country, name)}
    for country, name, fact in known:
        if (name, fact) in strays or not finds(f"{name} of {country}", country, name):
            del facts[country][name]
    each = (f" {json.dumps(country)}: {json.dumps(of, ensure_ascii=False)}" for country, of in facts.items() if of)
    (here / "facts.json").write_text("{\n" + ",\n".join(each) + "\n}\n", encoding="utf-8")
    print(len(facts), "countries,", Counter(name for of in facts.values() for name in of))


if __name__ == "__main__":
    main(sys.argv[1])
