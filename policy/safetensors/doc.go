// Package safetensors reads and writes the safetensors file format: an 8-byte little-endian header length, a JSON
// header that gives every tensor's dtype, shape and byte range, then the raw little-endian values.
//
// Reading is strict and bounded, because files come from other machines: the header's size, the number of tensors,
// names, ranks and dimensions have limits; byte ranges must follow from dtype and shape, lie inside the data and
// cover it exactly, without overlap or gap. Everything is checked before anything is allocated for it, and decoded
// tensors alias the input.
//
// Writing is deterministic: the same tensors and metadata give the same bytes whatever order they are passed in.
// Tensors with larger elements come first, then names in byte order, and the header is padded with spaces to a
// multiple of 8, so that every tensor is aligned to its element's size. This is the order that the reference
// implementation writes too.
//
// The package also owns Tensor, the form in which weights travel between packages, and the exact conversions
// between float32 and bfloat16.
package safetensors
