// A calculator agent on OpenAI's Agents SDK for JavaScript, by the Responses API.

import { readFileSync } from "node:fs";
import { Agent, run, tool } from "@openai/agents";
import { z } from "zod";

import { calculate } from "./calculator.mjs";

const calculator = tool({
  name: "calculator",
  description: "Integer arithmetic.",
  parameters: z.object({ expression: z.string() }),
  execute: ({ expression }) => calculate(expression),
});

const agent = new Agent({
  name: "solver",
  model: "gpt-4o-mini",
  instructions: "Use the calculator. Answer with the number.",
  tools: [calculator],
});
const result = await run(agent, readFileSync(0, "utf8").trim());
console.log(result.finalOutput);
