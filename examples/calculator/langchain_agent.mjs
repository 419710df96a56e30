// A calculator agent on LangChain for JavaScript, by Chat Completions.

import { readFileSync } from "node:fs";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

import { calculate } from "./calculator.mjs";

const calculator = tool(({ expression }) => calculate(expression), {
  name: "calculator",
  description: "Integer arithmetic.",
  schema: z.object({ expression: z.string() }),
});

const agent = createAgent({
  model: new ChatOpenAI({ model: "gpt-4o-mini" }),
  tools: [calculator],
  systemPrompt: "Use the calculator. Answer with the number.",
});
const result = await agent.invoke({ messages: [{ role: "user", content: readFileSync(0, "utf8").trim() }] });
console.log(result.messages.at(-1).text);
