// Package bundle is the file format of a bundle: one group of rollouts, or one block of held-out tasks, as columns.
//
// The contract:
//
//  1. Decode(Encode(b)) is b to the bit, for every b that passes Validate; of empty slices it makes nil ones. Encode is
//     deterministic within one build, so whoever repeats the rollouts of an exact engine gets the same file and CID.
//  2. Decoding is bounded by Limits: sizes are checked before anything of that size is allocated, references are
//     counted as the tokens that they stand for, and a zstd frame says its size first and cannot exceed it. Whatever
//     the bytes, decoding returns a valid bundle or an error that wraps wire.ErrMalformed, wire.ErrTooLarge or
//     wire.ErrNewerMajor.
//  3. What comes out shares no memory with what went in, and no two calls share memory. Encode and Decode are safe for
//     concurrent use; a Reader has one user.
//
// # File
//
//	"LSWB"  major, 1 byte  minor, 1 byte  header length, 2 bytes little-endian  header  columns  raw bits
//
// The header is: the digests inside the network's and the environment's CID, 32 bytes each; the policy digest; the
// purpose (1 train, 2 evaluate sampled, 3 evaluate greedy), 1 byte; the form of log-probs, 1 byte; for training the
// peer's ed25519 public key, 32 bytes; then as unsigned varints the policy version, the counter, the number of rollouts
// and the length of the compressed columns. A newer minor may append to the header and add columns; readers ignore
// both. The file ends with the raw bits.
//
// The major is 1, or 2 if a call has a grammar: a reader that does not know grammars would take log-probs for those of the
// whole vocabulary. A file of major 2 has two more columns, and is otherwise the same. The minor is 0, or 1 if a call says
// what was asked: such a file has two more columns, behind those of its major. A version above what a file needs is refused.
//
// The columns are one zstd frame with its content size in its header, compressed with the dictionary that the frame
// names (dictionary/N.zdict) or none. Inside, each column is its length as a varint and its bytes, in this order; v is
// an unsigned varint, s a zigzag varint, f a little-endian float32, text a length v and UTF-8:
//
//	settings            split text, temperature f, top_k v, top_p f, max completion tokens v, engine v
//	names               v agents, each text; v component lists, each v names, each text
//	floats              every distinct reward and component value, f each, referred to by index
//	per rollout:
//	  member            s: difference from the member after the previous rollout's (from 0 at first)
//	  task              s: difference from the previous rollout's task (from 0 at first)
//	  outcome           v
//	  reward            v: index of a float
//	  components        v: index of a component list
//	  component value   v for each name of the list: index of a float
//	  calls             v
//	per call:
//	  copy              v: d > 0 says that the call is that of the same number d rollouts before; nothing more follows
//	  agent             v: index of an agent
//	  finish            v
//	  call reward       v: 0 for none, or 1 + index of a float
//	  prompt source     v: see below
//	  prompt cut        v: tokens at the end of the source that the prompt does not start with
//	  prompt new        v: tokens after those
//	  completion source v
//	  completion shared v: tokens that are the source's
//	  log-probs own     v: how many of these, from the end, have log-probs of their own
//	  completion new    v: tokens after the shared ones
//	prompt tokens       v for each new token of every prompt
//	completion tokens   v for each new token of every completion
//	log-prob class      one byte for each log-prob that is not the source's
//	grammars            every distinct grammar: a length v and bytes (major 2)
//	grammar             v per call that is no copy: 0 for none, or 1 + index of a grammar (major 2)
//	asked texts         every distinct text of what was asked: text (minor 1)
//	asked               v per call that is no copy: 0 for none, or 1 + index of such a text (minor 1)
//
// A source for call number j is 0 for none; 1 to j for the call that many before it in its rollout; above that, j + d
// for call j of the rollout d before. A prompt starts with its source's prompt and completion when that is of its own
// rollout, and with its source's prompt when it is not; a completion starts with its source's completion.
//
// # Log-probs
//
// In form 1 all log-probs are multiples of 2^-16, as an exact engine makes them, and above -256: class 0 is 0, class 1
// is -0, class c from 2 to 25 is -(2^(c-2) + r)/2^16 with r in c-2 raw bits. In form 2 they are any finite float32: the
// class is the biased exponent, and 24 raw bits are the fraction, then, highest, the sign. Raw bits do not compress, so
// they stand outside the frame: fields one after another, each from its lowest bit on, bytes filled from their lowest
// bit on, the last one with zeros.
//
// # Dictionaries
//
// go test ./wire/bundle -run TestDictionary -train makes the newest dictionary from testdata/training, and writes the
// bundles there and in testdata/recorded anew with it; -update then does so with the golden ones. Once bundles of a
// network were written with a dictionary it must not change: add the next number instead.
package bundle
