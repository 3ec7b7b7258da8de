package lower

import "math/bits"

// peakTree keeps the number of bytes in use at every event. It is a segment tree: adding bytes to a
// range of events takes logarithmic time, and reading the peak constant time.
type peakTree struct {
	n    int
	most []int64 // by node: the peak of its range, without the additions to ranges of its ancestors
	plus []int64 // by node: what was added to its whole range
}

func newPeakTree(events int) *peakTree {
	n := 1 << bits.Len(uint(max(events, 1)-1))
	return &peakTree{n: n, most: make([]int64, 2*n), plus: make([]int64, 2*n)}
}

// max returns the peak.
func (t *peakTree) max() int64 { return t.most[1] }

// add adds bytes to the events first to last, both included. The nodes with whole ranges included
// hang between the paths from both ends to the root: left children of the right path, right
// children of the left.
func (t *peakTree) add(first, last int32, bytes int64) {
	l, r := int(first)+t.n, int(last)+t.n
	t.cover(l, bytes)
	if r != l {
		t.cover(r, bytes)
	}
	// Both paths go up together. Where they are not yet in one subtree, the siblings between them
	// lie wholly within the range; a path's own node is recomputed from its children, and gets back
	// what was added to it as a whole.
	for l > 1 {
		if l/2 != r/2 {
			if l%2 == 0 {
				t.cover(l+1, bytes)
			}
			if r%2 == 1 {
				t.cover(r-1, bytes)
			}
		}
		if l, r = l/2, r/2; r != l {
			t.most[r] = t.plus[r] + max(t.most[2*r], t.most[2*r+1])
		}
		t.most[l] = t.plus[l] + max(t.most[2*l], t.most[2*l+1])
	}
}

// cover adds bytes to the whole range of a node.
func (t *peakTree) cover(node int, bytes int64) {
	t.most[node] += bytes
	t.plus[node] += bytes
}
