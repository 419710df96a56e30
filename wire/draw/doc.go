// Package draw is the public randomness of a network: which task a peer runs next, with which random numbers its
// tokens are sampled, and in which order it measures held-out tasks. Every function is pure, so no peer hands out
// work, no peer can pick easy tasks or retry until a sample looks good, and anyone can check a draw.
//
// This page is enough for a second implementation; testdata/vectors.json has examples.
//
// # Keys
//
// A key is the SHA-256 digest of
//
//	label || 0x00 || field || field || …
//
// where label is ASCII and the fields, in the order of the table, are encoded as: CID, its 36-byte binary form; peer,
// the 38 bytes of its id; version, counter, task, 8 bytes big-endian; member, call, 4 bytes big-endian.
//
//	function          label                                 fields
//	Train             lightswarm/draw/task/1                network version peer counter
//	TrainKey          lightswarm/draw/sample/train/1        network version peer counter member call
//	EvaluateKey       lightswarm/draw/sample/evaluate/1     network version environment task call
//	EvaluationOrder   lightswarm/draw/evaluation-order/1    network version peer
//
// # Streams
//
// A key's stream is the keystream of ChaCha with 8 rounds in Bernstein's original layout: 256-bit key, 64-bit block
// counter from 0 in words 12 and 13 (low word first), 64-bit zero nonce in words 14 and 15. It is read as 32-bit words
// w(0), w(1), …, 16 to a block, each little-endian.
//
//   - Float32(key, i) is (w(i) >> 8) / 2^24: a multiple of 2^-24 in [0, 1).
//   - below(n), for n from 1 to 2^64-1, takes x = w(j) + 2^32·w(j+1) from the stream, two words at a time from where the
//     previous below stopped (the first starts at w(0)), skips every x ≥ 2^64 - (2^64 mod n), and returns x mod n. It
//     is uniform without bias.
//
// # Draws
//
//   - Train: r = below(sum of all environments' weights); the environment is the first whose weight, added to the
//     weights before it, exceeds r; the index is below(its train_tasks), from the same stream.
//   - EvaluationOrder: start from 0, 1, …, n-1; for i from n-1 down to 1, swap elements i and below(i+1).
//   - EvaluationBlock: each environment has ⌈tasks / block_tasks⌉ blocks; they are numbered through all environments
//     in the charter's order. Inside an environment, block b has the tasks b·block_tasks up to, not including, the
//     smaller of (b+1)·block_tasks and tasks.
package draw
