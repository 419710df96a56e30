"""An OpenEnv server whose environment is tools: how often is a in a word? The environment PORT and PLACES say where and how
many episodes at once."""

import asyncio
import os
import random

import uvicorn
from fastmcp import FastMCP
from openenv.core.env_server import create_fastapi_app
from openenv.core.env_server.mcp_environment import MCPEnvironment
from openenv.core.env_server.mcp_types import CallToolAction, CallToolObservation
from openenv.core.env_server.types import Observation, State


class Words(MCPEnvironment):
    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        tools = FastMCP("words")
        self.word, self.steps = "", 0

        @tools.tool
        def spell(word: str) -> str:
            """Spells a word."""
            if word == "unspeakable":
                raise ValueError("nobody can spell that")
            return " ".join(word)

        @tools.tool
        def submit(answer: str) -> str:
            """Takes the answer."""
            return answer

        super().__init__(tools)

    def reset(self, seed=None, episode_id=None, **others):
        numbers = random.Random(seed)
        self.word, self.steps = "".join(numbers.choice("abc") for _ in range(8)), 0
        return Observation(reward=0.0, metadata={"question": f"How often is a in {self.word}?", "truth": self.word.count("a")})

    def _step_impl(self, action, timeout_s=None, **others):
        raise TypeError("only tools can be called")

    async def step_async(self, action, timeout_s=None, **others):
        if isinstance(action, CallToolAction):
            self.steps += 1
            word = action.arguments.get("word")
            if word == "broken":
                raise RuntimeError("the dictionary is lost")
            if word == "slow":
                await asyncio.sleep(60)
            if action.tool_name == "submit":
                right = action.arguments.get("answer") == str(self.word.count("a"))
                return Observation(done=True, reward=float(right), metadata={"truth": self.word.count("a")})
        return await super().step_async(action, timeout_s=timeout_s, **others)

    @property
    def state(self):
        return State(step_count=self.steps)


app = create_fastapi_app(Words, CallToolAction, CallToolObservation, max_concurrent_envs=int(os.environ.get("PLACES", "32")))

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")
