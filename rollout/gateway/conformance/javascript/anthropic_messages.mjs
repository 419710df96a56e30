// An agent on Anthropic's library.

import Anthropic from "@anthropic-ai/sdk";

const tools = [{
  name: "weather",
  description: "The temperature in a city.",
  input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
}];
const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };

const client = new Anthropic();
const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));
const user = (content) => ({ role: "user", content });
const ask = (messages, options) => client.messages.create({ model: "policy", max_tokens: 500, messages, ...options });

// run asks until the answer is a text, running the tools that the model calls.
async function run(messages, stream) {
  const options = { system: "You are a guide.", tools };
  for (;;) {
    const message = stream
      ? await client.messages.stream({ model: "policy", max_tokens: 500, messages, ...options }).finalMessage()
      : await ask(messages, options);
    messages.push({ role: "assistant", content: message.content });
    if (message.stop_reason !== "tool_use") return message.content[0].text;
    messages.push(user(message.content.filter((block) => block.type === "tool_use").map((block) => (
      { type: "tool_result", tool_use_id: block.id, content: String(temperatures[block.input.city]) }
    ))));
  }
}

tell("plain", (await ask([user("Say hello.")])).content[0].text);

let text = "";
const counting = client.messages.stream({ model: "policy", max_tokens: 500, messages: [user("Count to three.")] });
counting.on("text", (piece) => { text += piece; });
tell("stream usage", (await counting.finalMessage()).usage.output_tokens > 0);
tell("stream", text);

for (const stream of [false, true]) {
  const messages = [user("Is it warmer in Oslo or in Rome?")];
  tell("tools", await run(messages, stream));
  messages.push(user("And in Bergen?"));
  tell("turns", await run(messages, stream));
}

await ask([user("Use up your calls.")]).catch((error) => tell("error", [error.status, error.error.error.type]));
try {
  for await (const _ of await ask([user("Fail late.")], { stream: true }));
} catch (error) {
  tell("late", error.error.error.message);
}
tell("retry", (await ask([user("Fail once.")])).content[0].text);
const slow = await client.messages.create({ model: "policy", max_tokens: 500, messages: [user("Take your time.")] }, { timeout: 1000 });
tell("slow", slow.content[0].text);
