#!/usr/bin/env python3
"""A small OpenEnv server. Install it with `pip install openenv` and start it with `python3 server.py`."""

import os
import random
from typing import Literal

from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, Observation, State


class LettersAction(Action):
    kind: Literal["spell", "answer"]
    text: str


class LettersObservation(Observation):
    question: str = ""


class Letters(Environment):
    """How often a letter is in a word. Each connection has an environment of its own."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.word, self.letter, self.steps = "", "", 0

    def reset(self, seed=None, episode_id=None, length=8, **others):
        """Begins a task, which the seed alone decides: all attempts at a task are compared."""
        numbers = random.Random(seed)
        self.word = "".join(numbers.choice("abeilnorst") for _ in range(length))
        self.letter, self.steps = numbers.choice("abeilnorst"), 0
        return LettersObservation(question=f'How many times is "{self.letter}" in "{self.word}"?')

    def step(self, action, timeout_s=None, **others):
        self.steps += 1
        if action.kind == "spell":
            return LettersObservation(question=" ".join(action.text))
        right = action.text.strip() == str(self.word.count(self.letter))
        return LettersObservation(done=True, reward=1.0 if right else 0.0)

    @property
    def state(self):
        return State(step_count=self.steps)


# A node plays up to 16 episodes at once; others wait.
app = create_fastapi_app(Letters, LettersAction, LettersObservation, max_concurrent_envs=16)

if __name__ == "__main__":
    import uvicorn

    uvicorn.run(app, host="127.0.0.1", port=int(os.environ.get("PORT", "8000")), log_level="warning")
