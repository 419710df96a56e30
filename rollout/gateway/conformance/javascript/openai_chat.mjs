// An agent on OpenAI's library, by Chat Completions.

import OpenAI from "openai";

const tools = [{
  type: "function",
  function: {
    name: "weather",
    description: "The temperature in a city.",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
  },
}];
const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };

const client = new OpenAI();
const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));
const user = (content) => ({ role: "user", content });
const ask = (messages, options) => client.chat.completions.create({ model: "policy", messages, ...options });

// run asks until the answer is a text, running the tools that the model calls.
async function run(messages, stream) {
  for (;;) {
    const answer = stream
      ? await client.chat.completions.stream({ model: "policy", messages, tools }).finalChatCompletion()
      : await ask(messages, { tools });
    const message = answer.choices[0].message;
    messages.push(message);
    if (!message.tool_calls?.length) return message.content;
    for (const call of message.tool_calls) {
      const { city } = JSON.parse(call.function.arguments);
      messages.push({ role: "tool", tool_call_id: call.id, content: String(temperatures[city]) });
    }
  }
}

tell("plain", (await ask([user("Say hello.")])).choices[0].message.content);

let text = "", usage;
for await (const chunk of await ask([user("Count to three.")], { stream: true, stream_options: { include_usage: true } })) {
  text += chunk.choices[0]?.delta.content ?? "";
  usage = chunk.usage;
}
tell("stream", text);
tell("stream usage", usage.total_tokens > 0);

for (const stream of [false, true]) {
  const messages = [{ role: "system", content: "You are a guide." }, user("Is it warmer in Oslo or in Rome?")];
  tell("tools", await run(messages, stream));
  messages.push(user("And in Bergen?"));
  tell("turns", await run(messages, stream));
}

await ask([user("Use up your calls.")]).catch((error) => tell("error", [error.status, error.code]));
try {
  for await (const _ of await ask([user("Fail late.")], { stream: true }));
} catch (error) {
  tell("late", error.error.message);
}
tell("retry", (await ask([user("Fail once.")])).choices[0].message.content);
const slow = await client.chat.completions.create({ model: "policy", messages: [user("Take your time.")] }, { timeout: 1000 });
tell("slow", slow.choices[0].message.content);
