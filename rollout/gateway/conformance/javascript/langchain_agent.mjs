// An agent on LangChain, by Chat Completions or Responses.

import { MemorySaver } from "@langchain/langgraph";
import { ChatOpenAI } from "@langchain/openai";
import { createAgent, tool } from "langchain";
import { z } from "zod";

const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };
const weather = tool(async ({ city }) => String(temperatures[city]), {
  name: "weather",
  description: "The temperature in a city.",
  schema: z.object({ city: z.string() }),
});

const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));
const model = new ChatOpenAI({ model: "policy", useResponsesApi: process.argv[2] === "responses", temperature: 0.2 });

tell("plain", (await model.invoke("Say hello.")).text);

let text = "", used = false;
for await (const chunk of await model.stream("Count to three.")) {
  text += chunk.text;
  used ||= chunk.usage_metadata?.total_tokens > 0;
}
tell("stream", text);
tell("stream usage", used);

const guide = createAgent({ model, tools: [weather], systemPrompt: "You are a guide.", checkpointer: new MemorySaver() });
for (const stream of [false, true]) {
  const thread = { configurable: { thread_id: String(stream) } };
  for (const [name, question] of [["tools", "Is it warmer in Oslo or in Rome?"], ["turns", "And in Bergen?"]]) {
    const asked = { messages: [{ role: "user", content: question }] };
    if (stream) for await (const _ of await guide.stream(asked, { ...thread, streamMode: "messages" }));
    else await guide.invoke(asked, thread);
    tell(name, (await guide.graph.getState(thread)).values.messages.at(-1).text);
  }
}

await model.invoke("Use up your calls.").catch((error) => tell("error", [error.status, error.code]));
tell("retry", (await model.invoke("Fail once.")).text);
