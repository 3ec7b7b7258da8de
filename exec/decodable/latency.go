package decodable

import (
	"math/bits"
	"time"
)

// Latencies are percentiles. They are at most one percent too large.
type Latencies struct{ Median, P95, P99, Max time.Duration }

// A histogram counts latencies, in constant memory: by their first eight bits.
type histogram struct {
	bins []uint64
	n    uint64
	max  time.Duration
}

// binOf returns the bin of a latency. Bins up to 255 have one nanosecond, and the next 128 each
// time are twice as wide as those before.
func binOf(d time.Duration) int {
	n := uint64(max(d, 0))
	shift := max(bits.Len64(n)-8, 0)
	return shift<<7 + int(n>>shift)
}

// lastOf returns the greatest latency in a bin.
func lastOf(bin int) time.Duration {
	shift := max(bin>>7-1, 0)
	return time.Duration(bin-shift<<7+1)<<shift - 1
}

// count adds a latency.
func (h *histogram) count(d time.Duration) {
	bin := binOf(d)
	for len(h.bins) <= bin {
		h.bins = append(h.bins, 0)
	}
	h.bins[bin]++
	h.n++
	h.max = max(h.max, d)
}

// add adds what another histogram has counted.
func (h *histogram) add(other *histogram) {
	for len(h.bins) < len(other.bins) {
		h.bins = append(h.bins, 0)
	}
	for i, n := range other.bins {
		h.bins[i] += n
	}
	h.n += other.n
	h.max = max(h.max, other.max)
}

// reset forgets all latencies. It keeps the memory.
func (h *histogram) reset() { h.bins, h.n, h.max = h.bins[:0], 0, 0 }

func (h *histogram) latencies() Latencies {
	return Latencies{h.percentile(50), h.percentile(95), h.percentile(99), h.max}
}

// percentile returns a latency that a given percentage does not exceed.
func (h *histogram) percentile(percent uint64) time.Duration {
	below := uint64(0)
	for bin, n := range h.bins {
		if below += n; n > 0 && below*100 >= h.n*percent {
			return min(lastOf(bin), h.max)
		}
	}
	return 0
}
