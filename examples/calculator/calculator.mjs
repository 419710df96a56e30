// The tool of the agents in this folder: integer arithmetic.

const LONGEST = 256;

// calculate is the value of a sum or product of whole numbers, or what is wrong with it.
export function calculate(expression) {
  try {
    if (expression.length > LONGEST) throw new SyntaxError("too long");
    return String(value(expression.match(/\d+|[-+*()]|\S/g) ?? []));
  } catch {
    return "error: not an expression of whole numbers";
  }
}

// value reads symbols by recursive descent.
function value(symbols) {
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
  return value;
}
