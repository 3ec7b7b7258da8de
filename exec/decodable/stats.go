package decodable

import (
	"math/bits"
	"time"
)

// BatcherStats are what a Batcher has done since it was made, and what it has to do.
type BatcherStats struct {
	// Waiting is the number of streams that wait for their chunk to be computed, Computing that of
	// those whose chunk is being computed.
	Waiting, Computing int
	// Chunks is the number of chunks that were computed, in Batches batches.
	Chunks, Batches int64
	// Failed is the number of chunks that could not be computed.
	Failed int64
	// Busy is the time that workers have computed, all together.
	Busy time.Duration
	// Wait is the time from the call of Rows that asks for a chunk until the computation begins,
	// and Latency the time until there are rows. They are of the chunks since the call of Stats
	// before, all zero if there are none.
	Wait, Latency Latencies
}

// batcherStats counts what a batcher does. The mutex of the batcher guards it.
type batcherStats struct {
	BatcherStats  // without Waiting, Wait and Latency
	wait, latency histogram
}

// expectedBins are enough for latencies of an hour. Counting longer ones allocates memory.
const expectedBins = 5120

func newBatcherStats() batcherStats {
	bins := func() histogram { return histogram{bins: make([]uint64, 0, expectedBins)} }
	return batcherStats{wait: bins(), latency: bins()}
}

// begin counts a batch that is being computed from now on.
func (s *batcherStats) begin(streams []*Stream, now time.Time) {
	s.Computing += len(streams)
	for _, st := range streams {
		s.wait.count(now.Sub(st.wait.since))
	}
}

// end counts a batch that was computed, since begun.
func (s *batcherStats) end(streams []*Stream, begun, now time.Time, err error) {
	s.Computing -= len(streams)
	s.Batches++
	s.Busy += now.Sub(begun)
	if err != nil {
		s.Failed += int64(len(streams))
		return
	}
	s.Chunks += int64(len(streams))
	for _, st := range streams {
		s.latency.count(now.Sub(st.wait.since))
	}
}

// Stats returns what the batcher has done, for the metrics of a server.
func (b *Batcher) Stats() BatcherStats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := &b.stats
	all := s.BatcherStats
	all.Wait, all.Latency = s.wait.latencies(), s.latency.latencies()
	for i := range b.queues {
		all.Waiting += len(b.queues[i].streams)
	}
	s.wait.reset()
	s.latency.reset()
	return all
}

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
