// Package grammar says which tokens may come next in a completion that has to have a certain form: JSON, JSON by a
// schema, calls of tools, or text with calls of tools behind it.
//
// A Grammar is a small program over bytes and the chat template's marks, compiled from a Demand. It has a canonical
// encoding, which bundles carry. With a policy's Vocabulary it becomes an Automaton; a Matcher follows one completion
// and gives, before each token, the Mask of those that are allowed.
//
// # The contract
//
//  1. A mask is a pure function of the grammar, the vocabulary, the room (how many tokens the completion may have) and
//     the tokens so far, on every machine. So whoever has a bundle and the policy has the masks that were sampled with.
//  2. Every completion that ends is of the form that was demanded. The token that ends it is allowed exactly where the
//     form is complete.
//  3. There always is a way to the end. The shortest one that is known, counted in tokens, is kept open: a token after
//     which it would not fit the room any more is not allowed. A completion whose room is too small for that gets the
//     tokens that bring the end nearest, and may be cut all the same. Distances are exact for what a schema spells out
//     (names, punctuation, enums) within one rule, and count one token for each symbol elsewhere, so they are bounds:
//     with too little room by this measure a completion may still end in time. A text may be cut wherever its room ends.
//  4. Memory and time are bounded, whatever Parse is given: the program, how deeply its rules call one another, how many
//     ways there are from one symbol to the next, how many ways of understanding a text are followed at a time (of more,
//     the 256 that end soonest are kept, so that 2 and 3 hold still, but not everything of the form can be sampled), and
//     how many states are remembered. Work counts what has been spent, and Bound bounds it.
//
// # JSON
//
// Each value has one spelling, but for numbers: no white space, strings with as few escapes as JSON allows, in their
// shortest form and lower case. Numbers have at most 15 digits before the point and behind it, and at most two in the
// exponent. What may be nested without end, such as any JSON object, is up to 20 levels deep, fewer if references
// call one another on the way. Names may repeat in an object whose names no schema lists.
//
// # JSON schemas
//
// The subset is that of OpenAI's structured outputs, as far as it can be enforced cheaply: type (one or a list),
// properties, required, additionalProperties, items, minItems, maxItems, enum, const, anyOf, $ref to any place in the
// schema, recursion included, $defs; further allOf of one part, minLength, maxLength, pattern, and minimum and maximum of
// integers, both within 1024 of one another or a minimum of 0 or 1 alone. Annotations assert nothing, format among them.
// Everything else, oneOf, multipleOf and the bounds of numbers among it, is refused with an UnsupportedError that names
// the keyword, rather than left out.
//
// A pattern may have literals, classes, groups, alternatives and counts, and ^ and $ at its ends; what looks around it, or
// means different things in different dialects, is refused. What a dot or a class leaves open is printable ASCII.
//
// A completion has an object's members in the schema's order. Members that the schema does not name are written only if
// it names none, or requires them. So of a schema that allows more not everything can be sampled; what is sampled is
// valid by it.
package grammar
