// Package calc is a built-in environment: short word problems that are solved with a calculator.
//
// A task is a question such as "Ann has 4 boxes of 37 pens and sells 12. How many left?". The agent has one tool,
// calculator {"expression":"4*37-12"}, and answers with the number. The reward is 1 if the answer is exactly the
// expected number in decimal, else 0. A policy that uses the tool makes two calls: one writes the expression, one
// repeats the result.
//
// A task is a pure function of its split and index: no clock, no shared state, no random source of the language's
// library, so any two builds of this package give the same bytes.
//
// # Splits cannot overlap
//
// The expression that solves a problem decides, by its hash, which split the problem belongs to (see SplitOf), and a
// split's tasks are sampled until one belongs to it. A question determines its expression, so no question, and no
// question with other names or goods around the same arithmetic, is in two splits. Within a split a problem may come
// up under more than one index.
package calc
