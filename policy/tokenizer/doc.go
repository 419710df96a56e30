// Package tokenizer turns text into token ids and back: byte-level byte-pair encoding.
//
// Encoding is lossless. Text is cut into pieces (see Pattern), a piece becomes its bytes' tokens, and then the
// adjacent pair with the lowest merge rank is merged, leftmost first, until none is left. Since every one of the 256
// bytes has a token, each byte string has an encoding and Decode gives exactly that byte string back, valid UTF-8
// or not.
//
// Special tokens, such as the marks of a chat template, have ids but no place in encoding: Encode never yields one,
// whatever the text says. Only code that means it can put a special token into a prompt.
//
// A tokenizer is stored as JSON in the shape of Hugging Face's tokenizer.json (model.type "BPE", byte-level
// alphabet, merges in order of rank, added_tokens), so that other tools can load ours; Load reads any such file
// whose parts are the ones described here and refuses the others by name. Digest is defined over the content, not
// over the JSON.
//
// What is a letter or a number is decided by the Unicode tables of the Go release that built the program; text in
// characters that a later Unicode version added may be cut differently by an older build.
package tokenizer
