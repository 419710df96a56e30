//go:build unix && !linux

package module

// limitResources does nothing: only on Linux do limits hold for all memory of a process. Those of the module hold everywhere.
func limitResources() {}
