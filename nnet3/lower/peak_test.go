package lower

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// TestPeakTree holds the tree against a slice.
func TestPeakTree(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "events")
		tree, list := newPeakTree(n), make([]int64, n)
		for range rapid.IntRange(0, 30).Draw(t, "additions") {
			first := rapid.IntRange(0, n-1).Draw(t, "first")
			last := rapid.IntRange(first, n-1).Draw(t, "last")
			bytes := rapid.Int64Range(-50, 100).Draw(t, "bytes")
			tree.add(int32(first), int32(last), bytes)
			for i := first; i <= last; i++ {
				list[i] += bytes
			}
			// Events that the tree has beyond the last one count as zero.
			want := slices.Max(list)
			if tree.n > n {
				want = max(want, 0)
			}
			if tree.max() != want {
				t.Fatalf("peak %d, want %d", tree.max(), want)
			}
		}
	})
}
