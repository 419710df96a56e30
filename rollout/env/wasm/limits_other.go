//go:build !unix

package wasm

// limitResources does nothing: this system has no such limits. Those of each episode hold everywhere.
func limitResources(uint64) {}
