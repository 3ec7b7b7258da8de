package decodable_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
)

// TestMeasure: every stream has all its frames and rows, at any rate, and what is impossible is
// an error.
func TestMeasure(t *testing.T) {
	s := streamer(t, "tdnnf.mdl", decodable.Options{FramesPerChunk: 21, FrameSubsampling: 3})
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 8, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for _, l := range []decodable.Load{
		{Streams: 1, Audio: time.Second},
		{Streams: 11, Audio: 1234 * time.Millisecond, IvectorPeriod: 10},
		{Streams: 5, Audio: 2 * time.Second, Rate: 50, Packet: 7, IvectorPeriod: 10},
		{Streams: 3, Audio: time.Second, Rate: 1e6},
		{Streams: 2, Audio: 10 * time.Millisecond, Rate: 1},
	} {
		r, err := b.Measure(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		frames := int64(l.Audio / (10 * time.Millisecond))
		n := int64(l.Streams)
		if r.Frames != n*frames || r.Rows != n*((frames+2)/3) || r.Wanted != r.Rows || r.Behind || r.Elapsed <= 0 || r.StreamBytes < s.StateBytes() {
			t.Errorf("%+v", r)
		}
		for _, p := range []decodable.Latencies{r.Latency, r.OwnLatency} {
			if p.Median <= 0 || p.Median > p.P95 || p.P95 > p.P99 || p.P99 > p.Max {
				t.Errorf("%+v", p)
			}
		}
		if r.OwnLatency.Max < r.Latency.Max {
			t.Errorf("a row comes later after what it needs than after its frame: %+v", r)
		}
		if l.Rate > 0 && r.Elapsed < time.Duration(float64(l.Audio)/l.Rate) {
			t.Errorf("%v of audio at %g times real time took %v", l.Audio, l.Rate, r.Elapsed)
		}
	}
	r, err := b.Measure(t.Context(), decodable.Load{Streams: 1, Audio: time.Minute, Rate: 1e6, GiveUp: 1})
	if err != nil || !r.Behind || r.Holds(s) {
		t.Errorf("a stream that is too late: %+v, %v", r, err)
	}
	for _, l := range []decodable.Load{{}, {Streams: 1}, {Streams: -1, Audio: time.Second}, {Streams: 1, Audio: time.Second, Rate: -1}, {Streams: 1, Audio: time.Second, Rate: math.NaN()},
		{Streams: 1 << 20, Audio: time.Second}, {Streams: 1, Audio: time.Second, Packet: -1}, {Streams: 1, Audio: time.Second, IvectorPeriod: -1}} {
		if _, err := b.Measure(t.Context(), l); !errors.Is(err, decodable.ErrOptions) {
			t.Errorf("%+v: %v", l, err)
		}
	}
	if _, err := b.MostStreams(t.Context(), decodable.Load{Streams: 1, Audio: time.Second}, nil); !errors.Is(err, decodable.ErrOptions) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	time.AfterFunc(20*time.Millisecond, func() { cancel(enough) })
	if _, err := b.Measure(ctx, decodable.Load{Streams: 3, Audio: time.Hour, Rate: 1}); !errors.Is(err, enough) {
		t.Error(err)
	}
}

// TestMostStreams: the search ends with a report that holds, or with none.
func TestMostStreams(t *testing.T) {
	s := streamer(t, "tdnnf.mdl", decodable.Options{FramesPerChunk: 21, FrameSubsampling: 3})
	b, err := s.NewBatcher(t.Context(), decodable.BatcherOptions{MaxStreams: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	most := 0
	best, err := b.MostStreams(t.Context(), decodable.Load{Audio: time.Second, Rate: 20}, func(r *decodable.LoadReport) {
		if r.Holds(s) {
			most = max(most, r.Streams)
		}
	})
	if err != nil || best == nil && most > 0 || best != nil && (best.Streams != most || !best.Holds(s)) {
		t.Errorf("%+v, most %d, %v", best, most, err)
	}
}
