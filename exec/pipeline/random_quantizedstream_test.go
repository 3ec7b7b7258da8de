package pipeline_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/optdb"
)

// company is how many streams TestQuantizedStreams computes together.
const company = 5

// TestQuantizedStreams feeds wide random networks chunk by chunk, in integers, and expects that a stream
// has the same bits alone as among others, which feed other pieces.
func TestQuantizedStreams(t *testing.T) {
	opts, tried := quantizing(t), 0
	for i := range uint64(longtest.Of(min(6, cases()), cases())) {
		seed := *firstSeed + i
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			c, _ := newWide(t, seed)
			if c.ordersByRows() || compile.CheckSimple(c.Net) != nil {
				return
			}
			for k, p := range precisions {
				if p.byRequest {
					continue
				}
				if !streamsAlike(t, c, opts[k], seed, p.name) {
					return
				}
				tried++
			}
		})
	}
	if longtest.Enabled() && cases() >= 40 && tried < cases()/4 {
		t.Errorf("only %d streams of %d networks were tried", tried, cases())
	}
}

// streamsAlike compares a stream alone and among others. It reports false if the network can't be fed
// chunk by chunk.
func streamsAlike(t *testing.T, c *Case, opt *optdb.Optimizer, seed uint64, name string) bool {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 6))
	opts := decodable.Options{FramesPerChunk: 1 + rnd.IntN(12), FrameSubsampling: 1 + rnd.IntN(3), ExtraLeftContextInitial: new(rnd.IntN(4)), Optimizer: opt}
	s, err := decodable.NewStreamer(t.Context(), c.Net, opts)
	if errors.Is(err, compile.ErrNotComputable) || errors.Is(err, compile.ErrUnbounded) {
		return false
	} else if err != nil {
		t.Fatalf("%v\n%s", err, c.Config)
	}
	u := utterance{chunks: 3 + rnd.IntN(4), streamer: s, opts: opts}
	want := u.streamed(t, rnd)
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 4, MaxWait: time.Millisecond})
	if err != nil {
		t.Fatalf("%v\n%s", err, c.Config)
	}
	defer b.Close()
	var group sync.WaitGroup
	for n := range uint64(company) {
		group.Go(func() {
			got := u.feed(t, b.NewStream(), rand.New(rand.NewPCG(seed, n)))
			if d := apart(got, want); got.Rows != want.Rows || equalBits(got.Data, want.Data) != len(want.Data) {
				t.Errorf("%s, %s: among others a stream differs by %.2g of its norm\n%s", c.Family, name, d, c.Config)
			}
		})
	}
	group.Wait()
	return true
}
