// Package wire holds the types that cross from one machine to another: content ids, signatures, size limits and
// typed messages. It does no I/O and knows no network.
//
// The contract:
//
//  1. Bytes are the identity. A CID is taken over the exact bytes that were stored or sent, and a signature covers
//     sha256(domain || 0x00 || payload). Nothing is ever re-encoded to be verified, so a reader that ignores unknown
//     fields still verifies and forwards them.
//  2. A decoder looks at the total size first, then decodes (protobuf allocates in proportion to its input), then
//     counts and validates. What it returns is valid: it passed the same Validate that the encoder ran.
//  3. Encoding is deterministic: equal values give equal bytes.
//  4. A message whose major is newer than this build knows is refused with ErrNewerMajor, whose text says what to
//     upgrade. The envelope (Signed) is the exception to ignoring unknown fields: nothing signs the envelope itself,
//     so it has exactly one accepted encoding; otherwise anyone could give one statement many CIDs.
//  5. Everything here is a value. Decoded messages share no memory with their input, except Raw, which is a copy of
//     it. All functions are safe for concurrent use.
//
// The field-by-field meaning is in proto/lightswarm.proto; Go types repeat it in Go's terms. Each signed message M
// has a struct M with Validate, SignM, OpenM and a SignedM that carries the value, its signer and its exact bytes.
package wire
