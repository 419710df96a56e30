// A calculator agent on OpenAI's library for JavaScript, by Chat Completions.

import { readFileSync } from "node:fs";
import OpenAI from "openai";

import { calculate } from "./calculator.mjs";

const tools = [{
  type: "function",
  function: {
    name: "calculator",
    description: "Integer arithmetic.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  },
}];

function use(call) {
  try {
    return calculate(JSON.parse(call.arguments).expression);
  } catch {
    return 'error: arguments must be {"expression":"..."}';
  }
}

const client = new OpenAI();
const messages = [
  { role: "system", content: "Use the calculator. Answer with the number." },
  { role: "user", content: readFileSync(0, "utf8").trim() },
];
for (;;) {
  const answer = await client.chat.completions.create({ model: "gpt-4o-mini", messages, tools });
  const message = answer.choices[0].message;
  messages.push(message);
  if (!message.tool_calls?.length) {
    console.log(message.content);
    break;
  }
  for (const call of message.tool_calls) {
    messages.push({ role: "tool", tool_call_id: call.id, content: use(call.function) });
  }
}
