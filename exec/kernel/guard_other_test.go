//go:build !linux

package kernel

import "testing"

func guardedFloats(t *testing.T, n int) []float32 { return make([]float32, n) }
