// Package alloctest measures what code allocates, for tests that bound it.
package alloctest

import (
	"math"
	"runtime/metrics"
	"testing"
)

// Start starts counting the bytes that the program allocates. The function that it
// returns returns their number.
func Start() func() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	return func() uint64 {
		metrics.Read(sample)
		return sample[0].Value.Uint64() - before
	}
}

// Bytes returns the number of bytes that the program allocates while f runs.
func Bytes(f func()) uint64 {
	used := Start()
	f()
	return used()
}

// Least returns how many bytes f allocates. Other goroutines count, too, so it repeats
// f while the result exceeds most.
func Least(most uint64, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for try := 0; try < 20 && least > most; try++ {
		least = min(least, Bytes(f))
	}
	return least
}

// Bound returns the number of bytes that reading an input of the given size may
// allocate, for every reader of this module.
func Bound(size int) uint64 { return 16*uint64(size) + 64<<20 }

// Check runs f and fails the test if it allocates more than an input of the given size
// allows.
func Check(t testing.TB, what string, size int, f func()) {
	t.Helper()
	if used := Bytes(f); used > Bound(size) {
		t.Errorf("%s: %d bytes allocated for %d", what, used, size)
	}
}
