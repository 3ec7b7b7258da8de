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

// add adds bytes to the events first to last, both included.
func (t *peakTree) add(first, last int32, bytes int64) {
	t.update(1, 0, t.n, int(first), int(last)+1, bytes)
}

// update recurses to the depth of the tree, the logarithm of the number of events.
func (t *peakTree) update(node, lo, hi, a, b int, bytes int64) {
	if b <= lo || hi <= a {
		return
	}
	if a <= lo && hi <= b {
		t.most[node] += bytes
		t.plus[node] += bytes
		return
	}
	mid := (lo + hi) / 2
	t.update(2*node, lo, mid, a, b, bytes)
	t.update(2*node+1, mid, hi, a, b, bytes)
	t.most[node] = t.plus[node] + max(t.most[2*node], t.most[2*node+1])
}
