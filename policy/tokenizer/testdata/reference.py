"""Writes reference.json: what Hugging Face's tokenizers (made with 0.23.3) does with tokenizer.json.

Run in this folder after the test's -update has written tokenizer.json: python3 reference.py
"""
import json
import random

from tokenizers import Tokenizer

tok = Tokenizer.from_file("tokenizer.json")
rng = random.Random(1)
parts = ["What", " is", "12", "3", "'s", "'S", "'ll", "'LL", "'Re", "'\u017f", "'x", "'", " ", "  ", "   ", "\t", "\n", "\n\n",
         "\r\n", "\r", "\u00a0", "\u2028", "\u0085", "\x0b", "calculator", " answer", '{"', '":"', '"}', "é", "e\u0301", "日本", "です",
         "\u0663", "½", "²", "Ⅷ", "!", " ?", "...", "🙂", "👩‍👩‍👧", "\u200b", "ſ", "ß", "İ", "_", "-", "a", "Z"]
texts = ["What is 12 plus 30?", "it's we'll I'M 'tis don't", " lead", "trail ", "a  b   c", "x\n\n  y", "  \n \n z ", "1 2  3",
         "日本は東京です。", "Привет,   мир!", "tabs\t\tand\tspaces", "end.\n", "!!!\n\nnext", "(a+b)*c", "<pad> text", "<|end |>"]
texts += ["".join(rng.choices(parts, k=rng.randint(1, 9))) for _ in range(400)]
cases = []
for text in sorted(set(texts)):
    pieces = [text[b:e] for _, (b, e) in tok.pre_tokenizer.pre_tokenize_str(text)]
    cases.append({"text": text, "pieces": pieces, "ids": tok.encode(text, add_special_tokens=False).ids})
with open("reference.json", "w") as f:
    f.write("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]\n")
