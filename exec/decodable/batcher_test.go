package decodable

import (
	"testing"
	"time"
)

// TestBatcherFairness: full queues come first while others may wait, and not when others have waited
// long enough.
func TestBatcherFairness(t *testing.T) {
	now := time.Now()
	stream := func(age time.Duration) *Stream {
		return &Stream{wait: waiting{since: now.Add(-age)}}
	}
	for _, c := range []struct {
		name  string
		wait  time.Duration
		age   time.Duration // of the first chunk of a stream; later chunks fill their queue
		first bool          // it is next
	}{
		{"young", time.Hour, 5 * time.Minute, false},
		{"old", time.Hour, 2 * time.Hour, true},
		{"without waiting", 0, 5 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := stream(c.age)
			b := &Batcher{opts: BatcherOptions{MaxStreams: 2, MaxWait: c.wait}, queues: []phaseQueue{
				{streams: []*Stream{first}}, {streams: []*Stream{stream(time.Minute), stream(time.Minute)}}}}
			if got := b.next(nil); (got[0] == first) != c.first {
				t.Errorf("the first chunk of a stream, %v old, is next: %v, want %v", c.age, !c.first, c.first)
			}
		})
	}
}

// TestBatcherTimer: a worker hears of a timer that runs out before the worker waits.
func TestBatcherTimer(t *testing.T) {
	b := newBatcher(nil, BatcherOptions{}, 1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer.Reset(1)
	time.Sleep(50 * time.Millisecond)
	b.changed.Wait()
}
