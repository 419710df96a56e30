// Package transformer is Lightswarm's embedded model: a decoder-only transformer of the Llama family's shape (RMSNorm,
// rotary positions in half-split layout, grouped-query attention, SwiGLU, optionally tied embeddings) in float32, with
// cached decoding and a hand-written backward pass. Weights carry the names of Hugging Face's Llama checkpoints.
//
// # The contract
//
// Everything here is exact. Package kernel defines each operation to the bit; this package adds an order of operations
// that does not depend on how the work is arranged. As long as activations are finite:
//
//  1. The log-prob of a token given those before it has the same bits from Decoder.Step, in a batch of any composition,
//     with the sequence cut into steps in any way and any part of its cache copied; from Trainer.Forward; and from
//     Trainer.Accumulate; on every machine, every kernel path, and with any number of threads.
//  2. Gradients, updates, and the bytes of Trainer.State have the same bits for the same sequences in the same order, on
//     every machine, every kernel path, with any number of workers, and however the sequences were divided among calls of
//     Accumulate.
//  3. Every pass uses bf16 weights, which is what a release holds. A trainer rounds its float32 masters after each step.
//
// Two rules keep this true. Every sum is a chain in a fixed order: over rising positions in attention, over the batch's
// rows in a weight's gradient, continued from what was accumulated before; sums of gains are cut into blocks that begin
// with each sequence. And goroutines share work by rows, heads or columns, never inside a sum.
//
// # Use
//
// ParseConfig and FromTensors read a checkpoint. NewModel packs its weights for inference; a Decoder runs steps over
// Caches. NewTrainer keeps masters and optimiser state. Models are immutable and shared; decoders, caches and trainers
// belong to one goroutine at a time. No goroutine outlives the call that started it.
package transformer
