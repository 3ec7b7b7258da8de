package decodable

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"
)

// BatcherOptions are options of Streamer.NewBatcher.
type BatcherOptions struct {
	// MaxStreams is the largest number of streams that are computed at once, at most 64. 0 means as
	// many as have about 2,000 frames in a chunk: with more, the values of a network of a thousand
	// units leave the second-level cache.
	MaxStreams int
	// MaxWait is how long a chunk may wait for chunks of other streams before it is computed. With
	// 0 it waits for a free worker only.
	MaxWait time.Duration
	// Workers is the number of computations at a time, each in a goroutine and memory of its own. 0
	// means 1.
	Workers int
}

// A Batcher computes chunks of many streams together: 1, 2, 4 or more at once, whichever have a
// chunk ready. Rows of a stream have the same bits in any company. Streams come and go at
// any time. A Batcher is safe for concurrent use; each of its streams is for one goroutine.
type Batcher struct {
	s    *Streamer
	opts BatcherOptions

	mu      sync.Mutex
	changed *sync.Cond   // a queue, or closed
	queues  []phaseQueue // by phase
	stats   batcherStats
	closed  bool
	timer   *time.Timer // wakes workers when a chunk has waited long enough
	workers sync.WaitGroup
}

// A phaseQueue is the streams that wait at a phase, those that have waited longest first.
type phaseQueue struct {
	streams []*Stream
}

// waiting is the part of a stream that concerns its batcher.
type waiting struct {
	done  chan error
	since time.Time
}

// ErrClosed is the error for a stream whose batcher is closed.
var ErrClosed = errors.New("the batcher is closed")

// NewBatcher returns a batcher and starts its workers, which run until Close. It makes the
// computations for all numbers of streams at once. The error wraps ErrOptions, or is one of
// compile.Looped or the optimizer.
func (s *Streamer) NewBatcher(ctx context.Context, opts BatcherOptions) (*Batcher, error) {
	if opts.MaxStreams < 0 || opts.MaxStreams > maxSequences || opts.Workers < 0 || opts.MaxWait < 0 {
		return nil, fmt.Errorf("%w: %d streams at once (1 to %d, or 0), %d workers, a wait of %v", ErrOptions, opts.MaxStreams, maxSequences, opts.Workers, opts.MaxWait)
	}
	if opts.MaxStreams == 0 {
		opts.MaxStreams = min(max(2048/s.chunk, 1), maxSequences)
	}
	// Compile for all sizes now. A worker that met a size for the first time would keep all streams
	// waiting for the compiler.
	for log := 0; 1<<log <= opts.MaxStreams; log++ {
		if _, err := s.loop(ctx, log); err != nil {
			return nil, err
		}
	}
	b := newBatcher(s, opts, len(s.loops[0].chunks))
	for range max(opts.Workers, 1) {
		b.workers.Go(b.work)
	}
	return b, nil
}

// newBatcher returns a batcher without workers.
func newBatcher(s *Streamer, opts BatcherOptions, phases int) *Batcher {
	b := &Batcher{s: s, opts: opts, queues: make([]phaseQueue, phases), stats: newBatcherStats()}
	b.changed = sync.NewCond(&b.mu)
	b.timer = time.AfterFunc(time.Hour, b.wake)
	b.timer.Stop()
	return b
}

// wake wakes all workers. A worker that sets the timer holds the lock until it waits, so it can't
// miss a timer that runs out at once.
func (b *Batcher) wake() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.changed.Broadcast()
}

// NewStream returns a stream whose chunks the batcher computes. Its method Rows waits for them.
func (b *Batcher) NewStream() *Stream { return b.s.newStream(b.compute) }

// Close ends the workers after the chunks that they are computing. Streams that wait get ErrClosed,
// and so do later calls.
func (b *Batcher) Close() {
	b.mu.Lock()
	b.closed = true
	for i := range b.queues {
		for _, st := range b.queues[i].streams {
			st.wait.done <- ErrClosed
		}
		b.queues[i].streams = nil
	}
	b.changed.Broadcast()
	b.mu.Unlock()
	b.timer.Stop()
	b.workers.Wait()
}

// compute puts a stream into the queue of its phase and waits until its chunk is computed.
func (b *Batcher) compute(ctx context.Context, st *Stream) error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrClosed
	}
	st.wait.since = time.Now()
	q := &b.queues[st.phase]
	q.streams = append(q.streams, st)
	b.mu.Unlock()
	b.changed.Signal()
	select {
	case err := <-st.wait.done:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	// The context ended. If the stream still waits, no worker knows of it, and it may go. Otherwise
	// a worker is writing to its buffers, and returning now would let the caller change them under
	// the worker's hands. So wait for the result, which takes one batch.
	left := q.remove(st)
	b.mu.Unlock()
	if left {
		return context.Cause(ctx)
	}
	return <-st.wait.done // it is being computed
}

// remove takes a stream out of the queue. It reports whether it was there.
func (q *phaseQueue) remove(st *Stream) bool {
	i := slices.Index(q.streams, st)
	if i < 0 {
		return false
	}
	q.streams = slices.Delete(q.streams, i, i+1)
	return true
}

// work computes batches until the batcher is closed.
func (b *Batcher) work() {
	e := newEngine(b.s)
	for {
		streams := b.next(e.streams[:0])
		if len(streams) == 0 {
			return
		}
		begun := time.Now()
		b.mu.Lock()
		b.stats.begin(streams, begun)
		b.mu.Unlock()
		err := e.try(streams)
		b.mu.Lock()
		b.stats.end(streams, begun, time.Now(), err)
		b.mu.Unlock()
		for _, st := range streams {
			st.wait.done <- err
		}
		// The array belongs to the engine. Streams that have gone must not be kept alive by it.
		clear(streams)
	}
}

// try computes a batch. A panic becomes an error.
func (e *engine) try(streams []*Stream) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(p)
		}
	}()
	return e.compute(context.Background(), streams)
}

// next waits for a batch that is large enough or has waited long enough, and appends it to dst. It
// returns nothing if the batcher is closed.
func (b *Batcher) next(dst []*Stream) []*Stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	// Three things delay a batch, in this order: there is no chunk at all; the oldest may still
	// wait for company (MaxWait); or streams that have just got rows have not yet had a processor
	// to hand in their next frames. After each wait everything is looked at anew, because another
	// worker may have taken the batch in between.
	asked := false // whether streams that can go on have had their turn
	for !b.closed {
		q := b.oldest()
		if q == nil {
			b.changed.Wait()
			continue
		}
		n := 1
		// Batches are powers of two, so that there is one computation per power, not one per number
		// of streams. The rest of a queue is the head of the next batch; no stream is passed over
		// by one that came later.
		for n*2 <= min(len(q.streams), b.opts.MaxStreams) {
			n *= 2
		}
		if rest := b.opts.MaxWait - time.Since(q.streams[0].wait.since); n*2 <= b.opts.MaxStreams && rest > 0 {
			b.timer.Reset(rest)
			b.changed.Wait()
			continue
		}
		if !asked && n*2 <= b.opts.MaxStreams {
			// The first stream wakes the worker, and others may have a chunk ready but no processor
			// to say so: those that the batch before has just given their rows.
			b.mu.Unlock()
			runtime.Gosched()
			b.mu.Lock()
			asked = true
			continue
		}
		dst = append(dst, q.streams[:n]...)
		q.streams = slices.Delete(q.streams, 0, n)
		return dst
	}
	return nil
}

// oldest returns the queue whose first stream has waited longest, or a full one if that stream may
// wait. It returns nil if no stream waits. Full queues may not keep others waiting for ever: those
// of later chunks are full all the time when there are many streams.
func (b *Batcher) oldest() *phaseQueue {
	var oldest, full *phaseQueue
	for i := range b.queues {
		q := &b.queues[i]
		if len(q.streams) == 0 {
			continue
		}
		if oldest == nil || q.streams[0].wait.since.Before(oldest.streams[0].wait.since) {
			oldest = q
		}
		if full == nil && len(q.streams) >= b.opts.MaxStreams {
			full = q
		}
	}
	// A full queue gains nothing by waiting and goes first, but only while the oldest stream is
	// within MaxWait. Otherwise the streams of a rare phase, such as first chunks, would starve
	// behind phases that refill as fast as they are computed.
	if full != nil && time.Since(oldest.streams[0].wait.since) < b.opts.MaxWait {
		return full
	}
	return oldest
}
