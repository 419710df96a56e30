// A calculator agent on OpenAI's library for JavaScript, by Chat Completions.

import { readFileSync } from "node:fs";
import OpenAI from "openai";

const tools = [{
  type: "function",
  function: {
    name: "calculator",
    description: "Integer arithmetic.",
    parameters: { type: "object", properties: { expression: { type: "string" } }, required: ["expression"] },
  },
}];

// calculate is the value of an expression of whole numbers, by recursive descent.
function calculate(expression) {
  const symbols = expression.match(/\d+|[-+*()]|\S/g) ?? [];
  const sum = () => {
    let value = product();
    while (symbols[0] === "+" || symbols[0] === "-") value = symbols.shift() === "+" ? value + product() : value - product();
    return value;
  };
  const product = () => {
    let value = factor();
    while (symbols[0] === "*") value = symbols.shift() && value * factor();
    return value;
  };
  const factor = () => {
    const symbol = symbols.shift() ?? "";
    if (symbol === "-") return -factor();
    if (symbol !== "(") return BigInt(symbol || "nothing");
    const value = sum();
    if (symbols.shift() !== ")") throw new SyntaxError("a parenthesis is not closed");
    return value;
  };
  const value = sum();
  if (symbols.length > 0) throw new SyntaxError("something follows");
  return String(value);
}

function use(call) {
  try {
    return calculate(JSON.parse(call.arguments).expression);
  } catch {
    return "error: not an expression of whole numbers";
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
