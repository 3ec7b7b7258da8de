package decodable_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/kernel"
)

// TestBatcherStats: a batcher counts each chunk once, and tells latencies of the chunks since the last
// time. A stream tells how many frames wait in it.
func TestBatcherStats(t *testing.T) {
	s := streamer(t, "tdnnf.mdl", decodable.Options{FramesPerChunk: 21, FrameSubsampling: 3})
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if got := b.Stats(); got != (decodable.BatcherStats{}) {
		t.Errorf("at the beginning: %+v", got)
	}
	features, ivector := readMatrices(t, "ark:"+compute+"feats.ark")[0].rows, readVectors(t, "ark:"+compute+"ivec.txt")[0].rows
	const streams = 5
	var wait sync.WaitGroup
	for i := range streams {
		wait.Go(func() {
			if _, err := feed(t.Context(), b.NewStream(), features, ivector, 0, 40, rand.New(rand.NewPCG(1, uint64(i)))); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	got := b.Stats()
	chunks := int64(streams * ((features.Rows + s.FramesPerChunk() - 1) / s.FramesPerChunk()))
	if got.Waiting != 0 || got.Computing != 0 || got.Failed != 0 || got.Chunks != chunks || got.Batches < 1 || got.Batches > chunks ||
		got.Busy <= 0 || got.Latency.Median <= 0 || got.Latency.Max < got.Wait.Max || got.Latency.P99 > got.Latency.Max {
		t.Errorf("%+v, want %d chunks", got, chunks)
	}
	if again := b.Stats(); again.Chunks != chunks || again.Latency != (decodable.Latencies{}) || again.Wait != (decodable.Latencies{}) {
		t.Errorf("right after that: %+v", again)
	}

	st := b.NewStream()
	accept := func(frames int) {
		if err := st.Accept(kernel.Rows(features, 0, frames)); err != nil {
			t.Fatal(err)
		}
	}
	if accept(10); st.Buffered() != 10 {
		t.Errorf("%d frames are buffered, want 10", st.Buffered())
	}
	accept(40)
	if err := st.AcceptIvector(ivector.Data); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Rows(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := st.Buffered(); n <= 0 || n >= 50-s.FramesPerChunk() || st.Ready() != (n >= s.FramesPerChunk()) {
		t.Errorf("after a chunk %d frames of 50 are buffered", n)
	}
	if st.Reset(); st.Buffered() != 0 {
		t.Errorf("after Reset %d frames are buffered", st.Buffered())
	}
}

// TestBatcherWaiting: a chunk that waits for others is counted as waiting, and no more once its stream
// is gone.
func TestBatcherWaiting(t *testing.T) {
	s := streamer(t, "lstmp.raw", decodable.Options{})
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 2, MaxWait: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	features, ivector := readMatrices(t, "ark:"+compute+"feats.ark")[0].rows, readVectors(t, "ark:"+compute+"ivec.txt")[0].rows
	st := b.NewStream()
	if err := st.AcceptIvector(ivector.Data); err != nil {
		t.Fatal(err)
	}
	if err := st.Accept(features); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := st.Rows(ctx)
		gone <- err
	}()
	for b.Stats().Waiting == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-gone; err == nil {
		t.Error("a stream that is gone has rows")
	}
	if got := b.Stats(); got.Waiting != 0 || got.Chunks != 0 {
		t.Errorf("%+v", got)
	}
}
