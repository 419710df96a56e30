// An agent on OpenAI's library, by Responses.

import OpenAI from "openai";

const tools = [{
  type: "function",
  name: "weather",
  description: "The temperature in a city.",
  strict: true,
  parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false },
}];
const temperatures = { Oslo: 4, Rome: 21, Bergen: 7 };

const client = new OpenAI();
const tell = (name, value) => console.log(JSON.stringify({ [name]: value }));
const ask = (input, options) => client.responses.create({ model: "policy", input, ...options });

// run asks until the answer is a text, running the tools that the model calls.
async function run(input, stream) {
  const options = { instructions: "You are a guide.", tools };
  for (;;) {
    const response = stream
      ? await client.responses.stream({ model: "policy", input, ...options }).finalResponse()
      : await ask(input, options);
    input.push(...response.output);
    const calls = response.output.filter((item) => item.type === "function_call");
    if (calls.length === 0) return response.output_text;
    for (const call of calls) {
      const { city } = JSON.parse(call.arguments);
      input.push({ type: "function_call_output", call_id: call.call_id, output: String(temperatures[city]) });
    }
  }
}

tell("plain", (await ask("Say hello.")).output_text);

let text = "", usage;
for await (const event of await ask("Count to three.", { stream: true })) {
  if (event.type === "response.output_text.delta") text += event.delta;
  if (event.type === "response.completed") usage = event.response.usage;
}
tell("stream", text);
tell("stream usage", usage.total_tokens > 0);

for (const stream of [false, true]) {
  const input = [{ role: "user", content: "Is it warmer in Oslo or in Rome?" }];
  tell("tools", await run(input, stream));
  input.push({ role: "user", content: "And in Bergen?" });
  tell("turns", await run(input, stream));
}

await ask("Use up your calls.").catch((error) => tell("error", [error.status, error.code]));
try {
  for await (const _ of await ask("Fail late.", { stream: true }));
} catch (error) {
  tell("late", error.error.message);
}
tell("retry", (await ask("Fail once.")).output_text);
const slow = await client.responses.create({ model: "policy", input: "Take your time." }, { timeout: 1000 });
tell("slow", slow.output_text);
