// Package policy defines what a policy is and how it is run.
//
// A policy is a model, its tokenizer, its chat template and its generation config, hashed together: change any of
// them and it behaves differently, so all four make up its Digest. A Snapshot is a policy in memory. It travels as a
// manifest block, a tokenizer block and blocks of one safetensors file (Encode, Assemble) and lies on disk as a
// folder in Hugging Face's layout (WriteDir, ReadDir). Both ways back verify everything that they read.
//
// Engine and Session are how a policy answers; package embedded implements them in pure Go.
//
// # Digests
//
// They are defined here so that any program can compute them. Integers are 8 bytes little-endian; a text is its
// length in bytes as an integer, then its bytes; all parts follow each other without separators.
//
// The state digest identifies the weights. It is sha256 over
//
//	"lightswarm/state/1", the byte 0
//	integer: number of tensors; then for each, in byte order of the names:
//	    text: name
//	    text: dtype, "BF16" or "F32"
//	    integer: rank; then each dimension as an integer
//	    32 bytes: sha256 of the elements, row-major, little-endian
//
// so that it follows from a manifest's list of tensors before any weight is fetched.
//
// The policy digest identifies the policy. It is sha256 over
//
//	"lightswarm/policy/1", the byte 0
//	text: config.json, byte for byte
//	32 bytes: the tokenizer's digest (see package tokenizer)
//	text: name of the chat template
//	integer: number of stop tokens; then each, ascending, as an integer
//	32 bytes: state digest
package policy
