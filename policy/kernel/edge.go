//go:build !purego && (amd64 || arm64)

package kernel

// copyTile copies rows x columns elements.
//
//go:norace
func copyTile(dst []float32, ldDst int, src []float32, ldSrc, rows, columns int) {
	for i := range rows {
		copy(dst[i*ldDst:i*ldDst+columns], src[i*ldSrc:i*ldSrc+columns])
	}
}

// flag is how assembly takes a bool.
func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
