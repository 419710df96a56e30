// Package kernel holds the exact float32 arithmetic of Lightswarm's embedded engine.
//
// # The contract
//
// Every function gives the same bits on every machine and on every path: portable Go, AVX2, AVX-512 and NEON.
// (The one exception is the sign and payload of a NaN; whether a value is a NaN never differs.)
// That is what lets one node recompute what another node claims to have computed, so it is worth more than speed:
//
//  1. A matrix product's element is one sequential chain over k: acc = round(acc + round(a[k]*b[k])), k rising from 0.
//     The chain starts from +0, or from C when accumulating. SIMD runs across output columns, never over k; splitting
//     rows, columns or k between calls therefore changes nothing.
//  2. Products are rounded before they are added. No path uses a fused multiply-add. Portable code wraps every product
//     that is added later in an explicit float32 or float64 conversion, because the compiler may otherwise fuse it.
//  3. A reduction that is not a matrix product uses 16 lanes: element i goes to lane i mod 16, rising i, each lane
//     starting from +0 (sum) or -Inf (maximum). Then lane l takes in lane l+8 for l < 8, then l+4 for l < 4, l+2 for
//     l < 2, l+1 for l = 0. Lane 0 is the result.
//  4. A maximum takes x over m when x > m; it therefore skips NaN. (The NaN still reaches the result through the sum.)
//  5. Exponentials, logarithms, sines and cosines are this package's own; math's differ between architectures. Only
//     operations that IEEE 754 defines to the bit are used: + - * / sqrt, comparisons and bit casts.
//
// Threads are expected to run with the default floating-point environment: round to nearest, subnormals kept. Go sets
// it; foreign code in the same process must not change it.
//
// # Shapes and memory
//
// Matrices are row-major; ld* is the distance in elements between the starts of two rows. Every length is checked
// before any assembly runs, and a kernel never reads or writes outside the elements that its documentation names. A
// wrong length is a mistake of the programmer: it panics. Where a comment says that slices may be the same, they must
// be exactly the same or not overlap at all.
//
// # Concurrency
//
// Functions hold no state: any number of goroutines may call them on memory that they do not share. Rows of a product
// are independent, so a caller splits a product by rows and gets the same bits for any number of goroutines. A Packed
// may be read by many goroutines, but packed by one at a time.
//
// The inner loops in Go are marked go:norace: they are arithmetic on their arguments, start no goroutine and know no
// variable that is shared, and the race detector makes them many times slower. It cannot look into the assembly
// either. A caller that shares memory against the rule above is found where it touches that memory itself, and by the
// tests that want the same bits of any number of workers.
//
// # Paths
//
// The fastest path that the processor supports is chosen at start. LIGHTSWARM_KERNEL or [Use] choose another one; the
// build tag purego leaves out all assembly.
package kernel

//go:generate go run ./gen
