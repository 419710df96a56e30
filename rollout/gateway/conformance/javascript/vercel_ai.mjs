// An agent on Vercel's AI SDK, by Chat Completions or Responses.

import { openai } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const model = process.argv[2] === "chat" ? openai.chat("policy") : openai("policy");
const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };
const weather = tool({
  description: "The temperature in a city.",
  inputSchema: z.object({ city: z.string() }),
  execute: async ({ city }) => String(temperatures[city]),
});
const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));

tell("plain", (await generateText({ model, prompt: "Say hello." })).text);

const counting = streamText({ model, prompt: "Count to three." });
let text = "";
for await (const piece of counting.textStream) text += piece;
tell("stream", text);
tell("stream usage", (await counting.usage).totalTokens > 0);

for (const generate of [generateText, streamText]) {
  const messages = [];
  for (const [name, question] of [["tools", "Is it warmer in Oslo or in Rome?"], ["turns", "And in Bergen?"]]) {
    messages.push({ role: "user", content: question });
    const result = await generate({ model, system: "You are a guide.", messages, tools: { weather }, stopWhen: stepCountIs(5) });
    tell(name, await result.text);
    messages.push(...(await result.response).messages);
  }
}

await generateText({ model, prompt: "Use up your calls." }).catch((error) => tell("error", error.lastError.statusCode));
tell("retry", (await generateText({ model, prompt: "Fail once." })).text);
