package kernel

import "testing"

// TestFourDots: four scalar products have the bits of a loop, with every set of kernels.
func TestFourDots(t *testing.T) {
	defer func(s kernelSet) { bestSet = s }(bestSet)
	r := newRand()
	for _, bestSet = range supportedSets() {
		for n := range 70 {
			m, x := guarded(t, r, 4, n, r.IntN(3), n%3 == 0), guarded(t, r, 1, n, 0, n%5 == 0).Data
			got := FourDots(Row(m, 0), Row(m, 1), Row(m, 2), Row(m, 3), x)
			for i, g := range got {
				var want float32
				for j, v := range x {
					want += float32(Row(m, i)[j] * v)
				}
				if !sameBits(g, want) {
					t.Fatalf("%s, %d elements: row %d is %v, want %v", bestSet, n, i, g, want)
				}
			}
		}
	}
}
