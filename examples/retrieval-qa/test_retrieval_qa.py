"""Tests of this folder: python3 -m unittest"""

import functools
import json
import random
import unittest

import environment
import questions
import scoring
from retriever import Retriever


pool = functools.cache(questions.pool)  # several tests go through all of it


def wording(forms):
    return forms[0]


class Questions(unittest.TestCase):
    def test_splits_share_no_question(self):
        texts = {"train": set(), "validation": set()}
        for level in range(1, questions.LEVELS + 1):
            pools = {split: {questions.Question(*path, wording).text for path in pool(level, split)} for split in texts}
            self.assertGreater(len(pools["train"]), 3 * len(pools["validation"]))
            self.assertGreater(len(pools["validation"]), 50)
            for split, of in pools.items():
                texts[split] |= of
        self.assertFalse(texts["train"] & texts["validation"])

    def test_a_task_is_the_same_question_each_time(self):
        for index in range(40):
            asked = [vars(questions.draw("train", index, 4)) for _ in range(2)]
            self.assertEqual(*asked)

    def test_each_search_finds_what_the_next_one_needs(self):
        library, steps = Retriever(), set()
        for level in (1, 2, 3):
            for split in ("train", "validation"):
                for path in pool(level, split):
                    question = questions.Question(*path, wording)
                    steps.update(zip(question.queries, question.found))
        for query, found in random.Random(1).sample(sorted(steps), 100):
            self.assertIn(found, library.search(query, 1)[0], query)

    def test_who_stops_early_has_no_word_of_the_answer(self):
        for level in range(1, questions.LEVELS + 1):
            for start, hops in pool(level, "validation"):
                *before, answer = [start, *(found for _, _, found in hops)]
                self.assertEqual([0] * len(before), [scoring.f1(name, answer) for name in before])


class Search(unittest.TestCase):
    def test_both_kinds_of_passages(self):
        self.assertEqual(["capital of Ghana: Accra"], Retriever().search("What is the CAPITAL of Ghana?", 1))
        self.assertEqual(["capital of Cameroon: Yaounde"], Retriever().search("capital Yaoundé", 1))
        long = Retriever(topics=True).search("Accra capital", 3)
        self.assertEqual(3, len(long))
        self.assertTrue(long[0].startswith("Government of Ghana: "))
        self.assertIn("capital: Accra;", long[0])

    def test_what_is_nowhere_is_not_found(self):
        self.assertEqual([], Retriever().search("xyzzy", 3))
        self.assertEqual([], Retriever().search("?!", 3))

    def test_bm25(self):
        library = Retriever()
        scores = [library.search(query, 1)[0] for query in ("Mali capital", "capital of Mali", "mali, capital!")]
        self.assertEqual(["capital of Mali: Bamako"] * 3, scores)


class Scoring(unittest.TestCase):
    def test_words_and_form(self):
        for answer, wanted, f1, form in [
            ("<answer>Addis Ababa</answer>", "Addis Ababa", 1, 1),
            (" <think>It is in Ethiopia.</think>\n<answer>addis abába.</answer>\n", "Addis Ababa", 1, 1),
            ("Addis Ababa", "Addis Ababa", 1, 0),
            ("<answer>Addis</answer>", "Addis Ababa", 2 / 3, 1),
            ("<answer>the city of Addis Ababa</answer>", "Addis Ababa", 2 / 3, 1),
            ("<answer>Accra</answer>", "Addis Ababa", 0, 1),
            ("<answer>Addis Addis</answer>", "Addis Ababa", 1 / 2, 1),
            ("It is <answer>Addis Ababa</answer>", "Addis Ababa", 4 / 8, 0),
            ("<answer>Addis</answer><answer>Ababa</answer>", "Addis Ababa", 4 / 8, 0),
            ("", "Addis Ababa", 0, 0),
        ]:
            reward, components = scoring.judge(answer, wanted)
            self.assertEqual({"f1": f1, "format": form}, components, answer)
            self.assertAlmostEqual(0.9 * f1 + 0.1 * form, reward)
        self.assertEqual(1, scoring.judge("<answer>.gh</answer>", ".gh")[0])


class Reply(unittest.TestCase):
    def test_replies_are_the_solution_step_by_step(self):
        for index in range(8):
            episode = environment.Environment("train", index, None)
            for habit in (None, *episode.habits()):
                calls, answer = episode.solve(habit)
                messages = [{"role": "system", "content": "Find out."}, {"role": "user", "content": episode.question.text}]
                for call in calls:
                    self.assertEqual(("", [call]), episode.reply("researcher", messages, ["search"], habit))
                    messages += [{"role": "assistant", "content": ""}, {"role": "tool", "content": episode.call(*call)}]
                self.assertEqual(answer, episode.reply("researcher", messages, ["search"], habit))
                self.assertEqual(1 if habit is None else 0.1, episode.score(answer)[0])

    def test_wrong_arguments_are_a_result(self):
        episode = environment.Environment("train", 0, None)
        for arguments in ("", "[]", "{}", '{"query": 1}', "null"):
            self.assertEqual("error: the arguments are not what the tool takes", episode.call("search", arguments))
        self.assertEqual("error: no such tool", episode.call("find", "{}"))
        self.assertEqual("nothing found", episode.call("search", json.dumps({"query": ""})))


if __name__ == "__main__":
    unittest.main()
