package lower

// peakTree keeps the bytes in use at every event, under additions to ranges of events, and knows the largest.
// It is a segment tree: both take time in the logarithm of the number of events.
type peakTree struct {
	n    int
	most []int64 // of the node's range, without what lies on the nodes above
	plus []int64 // added to the whole range
}

func newPeakTree(events int) *peakTree {
	n := 1
	for n < events {
		n *= 2
	}
	return &peakTree{n: n, most: make([]int64, 2*n), plus: make([]int64, 2*n)}
}

// max is the peak.
func (t *peakTree) max() int64 { return t.most[1] }

// add adds bytes to the events first to last, both included. Going up from both ends, a node that lies between them with all of
// its range is the left child of the path on the right, or the right child of the path on the left.
func (t *peakTree) add(first, last int32, bytes int64) {
	l, r := int(first)+t.n, int(last)+t.n
	t.cover(l, bytes)
	if r != l {
		t.cover(r, bytes)
	}
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

// cover adds bytes to all of a node's range.
func (t *peakTree) cover(node int, bytes int64) {
	t.most[node] += bytes
	t.plus[node] += bytes
}
