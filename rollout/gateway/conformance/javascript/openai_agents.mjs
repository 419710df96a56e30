// An agent on OpenAI's Agents SDK, with the API that it prefers or with Chat Completions.

import { Agent, Runner, setOpenAIAPI, tool } from "@openai/agents";
import { z } from "zod";

setOpenAIAPI(process.argv[2] === "chat" ? "chat_completions" : "responses");

const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };
const weather = tool({
  name: "weather",
  description: "The temperature in a city.",
  parameters: z.object({ city: z.string() }),
  execute: async ({ city }) => String(temperatures[city]),
});

const guide = new Agent({ name: "guide", instructions: "You are a guide.", model: "policy", tools: [weather] });
const plain = new Agent({ name: "plain", model: "policy" });
const runner = new Runner();
const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));

tell("plain", (await runner.run(plain, "Say hello.")).finalOutput);

const counting = await runner.run(plain, "Count to three.", { stream: true });
let text = "";
for await (const piece of counting.toTextStream()) text += piece;
await counting.completed;
tell("stream", text);

for (const stream of [false, true]) {
  let history = [];
  for (const [name, question] of [["tools", "Is it warmer in Oslo or in Rome?"], ["turns", "And in Bergen?"]]) {
    const result = await runner.run(guide, [...history, { role: "user", content: question }], { stream });
    if (stream) await result.completed;
    history = result.history;
    tell(name, result.finalOutput);
  }
}

await runner.run(plain, "Use up your calls.").catch((error) => tell("error", [error.status, error.code]));
tell("retry", (await runner.run(plain, "Fail once.")).finalOutput);
