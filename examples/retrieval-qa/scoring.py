"""What an answer is worth: nine tenths for its words, one tenth for its form."""

import re
import unicodedata
from collections import Counter

ARTICLES = {"a", "an", "the"}
# What an answer has to look like: nothing but thoughts, if any, may be around it.
FORM = re.compile(r"(?:<think>(?:(?!</?(?:think|answer)>).)*</think>\s*)?<answer>((?:(?!</?(?:think|answer)>).)*)</answer>", re.DOTALL)
LONGEST = 10_000  # of an answer, in characters: what is beyond that cannot help it


def words(text):
    """The words of a text, without regard to case, accents, punctuation and articles."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    return [word for word in re.findall(r"[^\W_]+", plain) if word not in ARTICLES]


def f1(said, wanted):
    """The harmonic mean of two shares: of what was said that was wanted, and of what was wanted that was said."""
    said, wanted = words(said), words(wanted)
    both = (Counter(said) & Counter(wanted)).total()
    return 2 * both / (len(said) + len(wanted)) if both else 0.0


def judge(answer, wanted):
    """The reward, 0 to 1, and what it is made of. An answer without the form is judged by all of its words."""
    answer = answer.strip()[:LONGEST]
    form = FORM.fullmatch(answer)
    components = {"f1": f1(form[1] if form else answer, wanted), "format": 1.0 if form else 0.0}
    return 0.9 * components["f1"] + 0.1 * components["format"], components
