package decodable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nnopt/nnopt/internal/kernel"
)

// A Load is a number of live streams, with random numbers for frames, by which Batcher.Measure
// measures.
type Load struct {
	Streams int
	// Audio is what each stream has.
	Audio time.Duration
	// Rate says how fast frames come: 1 is real time, with a frame every 10 ms, and 2 is twice
	// as fast. 0 means that they are all there from the beginning.
	Rate float64
	// Packet is the number of frames that arrive together, when the last of them is complete. 0
	// means 1.
	Packet int
	// IvectorPeriod is the number of frames after which a stream gets another i-vector. 0 means that
	// it has one.
	IvectorPeriod int
	// GiveUp, if it is not 0, ends the measurement when a stream is that far behind.
	GiveUp time.Duration
}

// A LoadReport is what Batcher.Measure found.
type LoadReport struct {
	Load
	Frames int64 // of all streams
	// Rows came out, and Wanted should have: one for every FrameSubsampling frames, rounded up, of
	// every stream.
	Rows, Wanted int64
	Elapsed      time.Duration
	CPU          time.Duration // of the process; 0 if the system does not tell
	// Latency is the time from the arrival of the last frame that a row needs, context included,
	// to the row. Waiting until the chunk is complete is part of it.
	Latency Latencies
	// OwnLatency is the time from the arrival of the frame that a row is for, to the row: Latency
	// and the time that the context takes to come.
	OwnLatency Latencies
	// StreamBytes is the memory of the largest stream: its state and its buffers.
	StreamBytes int
	// Behind says that the streams came too late (GiveUp).
	Behind bool
}

// errBehind ends a measurement.
var errBehind = errors.New("streams fall too far behind")

// check returns an error unless the load makes sense.
func (l *Load) check() error {
	frames := l.frames()
	switch {
	case l.Streams < 1 || l.Streams > 1<<16:
		return fmt.Errorf("%w: %d streams; there may be 1 to %d", ErrOptions, l.Streams, 1<<16)
	case frames < 1 || frames > 1<<30:
		return fmt.Errorf("%w: %v of audio, with a frame every %v", ErrOptions, l.Audio, frameShift)
	case math.IsNaN(l.Rate) || l.Rate < 0 || l.Rate > 1e6:
		return fmt.Errorf("%w: a rate of %g; it may be 0 to 10⁶", ErrOptions, l.Rate)
	case l.Packet < 0 || l.Packet > maxChunk || l.IvectorPeriod < 0:
		return fmt.Errorf("%w: %d frames in a packet, an i-vector every %d", ErrOptions, l.Packet, l.IvectorPeriod)
	}
	return nil
}

// frameShift is the time from frame to frame.
const frameShift = 10 * time.Millisecond

func (l *Load) frames() int { return int(l.Audio / frameShift) }

// ChunkTime returns the time in which the frames of a chunk come. It is 0 if they are all there.
func (s *Streamer) ChunkTime(l Load) time.Duration {
	if l.Rate == 0 {
		return 0
	}
	return time.Duration(float64(s.chunk) * float64(frameShift) / l.Rate)
}

// Measure runs a load on the batcher. Streams begin at different times within a chunk. Times are
// those of a real clock, and arrival is when a frame was due, also if its stream was still waiting
// for earlier rows.
func (b *Batcher) Measure(ctx context.Context, l Load) (*LoadReport, error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	rnd := rand.New(rand.NewPCG(17, 18))
	source := kernel.New(1000, max(b.s.features, b.s.ivector))
	for i := range source.Data {
		source.Data[i] = float32(rnd.NormFloat64())
	}
	all := make([]loadStream, l.Streams)
	var group sync.WaitGroup
	cpu := cpuTime()
	start := time.Now()
	for i := range all {
		st := &all[i]
		*st = loadStream{load: &l, st: b.NewStream(), source: source, first: i * 37}
		st.start = start.Add(b.s.ChunkTime(l) * time.Duration(i) / time.Duration(l.Streams))
		group.Go(func() {
			if err := st.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	r := &LoadReport{Load: l, Elapsed: time.Since(start), CPU: cpuTime() - cpu, Wanted: int64(l.Streams) * int64((l.frames()+b.s.step-1)/b.s.step)}
	var latency, own histogram
	for i := range all {
		st := &all[i]
		r.Frames += int64(st.sent)
		r.Rows += int64(st.rows)
		r.StreamBytes = max(r.StreamBytes, st.st.bytes())
		latency.add(&st.latency)
		own.add(&st.own)
	}
	r.Latency, r.OwnLatency = latency.latencies(), own.latencies()
	err := context.Cause(ctx)
	if errors.Is(err, errBehind) {
		r.Behind, err = true, nil
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// loadStream is a stream of a load.
type loadStream struct {
	load         *Load
	st           *Stream
	source       kernel.Matrix // of random numbers
	first        int           // row of the source for the first frame
	start        time.Time
	sent         int // frames
	rows         int
	latency, own histogram
}

// run sends all frames, each packet when it is due, and takes rows as soon as there are any.
func (s *loadStream) run(ctx context.Context) error {
	total, packet := s.load.frames(), cmp.Or(s.load.Packet, 1)
	if s.load.Rate == 0 {
		packet = max(packet, s.st.s.chunk) // all frames are there; a stream buffers a chunk of them
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for s.sent < total {
		n := min(packet, total-s.sent)
		if wait := time.Until(s.due(s.sent + n - 1)); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		} else if s.load.GiveUp > 0 && wait < -s.load.GiveUp {
			return errBehind
		}
		if err := s.send(n); err != nil {
			return err
		}
		if err := s.take(ctx); err != nil {
			return err
		}
	}
	s.st.Finish()
	if err := s.take(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// due returns when a frame arrives: with the last one of its packet. Without a rate all arrive at
// the beginning, but their latency counts from when the stream takes them.
func (s *loadStream) due(frame int) time.Time {
	if s.load.Rate == 0 {
		return s.start
	}
	packet := cmp.Or(s.load.Packet, 1)
	last := min((frame/packet+1)*packet, s.load.frames())
	return s.start.Add(time.Duration(float64(last) * float64(frameShift) / s.load.Rate))
}

// send hands n frames to the stream, and the i-vectors that come before them.
func (s *loadStream) send(n int) error {
	features, dim := s.st.s.features, s.st.s.ivector
	for range n {
		period := s.load.IvectorPeriod
		row := kernel.Row(s.source, (s.first+s.sent)%s.source.Rows)
		if s.sent == 0 || period > 0 && s.sent%period == 0 {
			if err := s.st.AcceptIvector(row[:dim]); err != nil {
				return err
			}
		}
		if err := s.st.Accept(kernel.Matrix{Rows: 1, Cols: features, Stride: features, Data: row[:features]}); err != nil {
			return err
		}
		s.sent++
	}
	return nil
}

// take takes the rows that are ready.
func (s *loadStream) take(ctx context.Context) error {
	begin := time.Now()
	for {
		y, err := s.st.Rows(ctx)
		if err != nil || y.Rows == 0 {
			return err
		}
		now := time.Now()
		for range y.Rows {
			frame := s.rows * s.st.s.step
			needed, own := begin, begin
			if s.load.Rate > 0 {
				needed, own = s.due(min(frame+s.st.s.right, s.load.frames()-1)), s.due(frame)
			}
			s.latency.count(now.Sub(needed))
			s.own.count(now.Sub(own))
			s.rows++
		}
	}
}

// bytes returns the memory of the stream: its state, and its buffers for frames, i-vectors and rows.
func (st *Stream) bytes() int {
	return 4*(cap(st.state)+cap(st.frames)+cap(st.ivectors)+cap(st.out.Data)) + 8*cap(st.since)
}

// slack is how much longer than a chunk rows may take in a load that MostStreams accepts: 99 of 100
// have to come within that.
const slack = 50 * time.Millisecond

// Holds reports whether the batcher bore the load: nothing is lost, and 99 of 100 rows came at most
// slack after the time of a chunk.
func (r *LoadReport) Holds(s *Streamer) bool {
	return !r.Behind && r.Rows == r.Wanted && r.Latency.P99 <= s.ChunkTime(r.Load)+slack
}

// MostStreams looks for the largest number of streams that the batcher holds, to two percent, and
// returns its report. It measures a load of l.Audio for every number that it tries, and calls tried
// with each. There is no report if a single stream is too much.
func (b *Batcher) MostStreams(ctx context.Context, l Load, tried func(*LoadReport)) (*LoadReport, error) {
	if l.Rate == 0 {
		return nil, fmt.Errorf("%w: with a rate of 0, streams of any number come as fast as they can", ErrOptions)
	}
	fast := l
	fast.Streams, fast.Rate, fast.Audio = b.opts.MaxStreams, 0, 4*time.Duration(b.s.chunk)*frameShift
	first, err := b.Measure(ctx, fast)
	if err != nil {
		return nil, err
	}
	// More than the processor can compute is too much for certain.
	perSecond := float64(first.Frames) / first.Elapsed.Seconds()
	estimate := perSecond * frameShift.Seconds() / l.Rate
	low, high := 0, min(int(2*estimate)+2, 1<<16)
	var best *LoadReport
	l.GiveUp = b.s.ChunkTime(l) + time.Second
	for l.Streams = min(max(int(0.7*estimate), 1), high-1); high-low > max(low/50, 1); l.Streams = (low + high) / 2 {
		r, err := b.Measure(ctx, l)
		if err != nil {
			return nil, err
		}
		if tried != nil {
			tried(r)
		}
		if r.Holds(b.s) {
			low, best = l.Streams, r
		} else {
			high = l.Streams
		}
	}
	return best, nil
}
