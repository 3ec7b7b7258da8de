//go:build !linux

package kernel

import (
	"testing"
	"unsafe"
)

// guardedBytes returns size bytes. They are aligned for every type.
func guardedBytes(t testing.TB, size int) []byte {
	v := make([]float64, size/8)
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), size)
}

func guardedFloats(t *testing.T, n int) []float32 { return make([]float32, n) }
