package networks

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/networks/internal/display"
)

// streamFlags are the flags of bench stream.
type streamFlags struct {
	streams, packet, period, initial, batch, workers int
	seconds, rate                                    float64
	wait                                             time.Duration
	find                                             bool
}

func declareStream(fs *flag.FlagSet) *streamFlags {
	f := new(streamFlags)
	fs.IntVar(&f.streams, "streams", 64, "Number of streams at a time")
	f.seconds, f.rate = 10, 1
	fs.Var(real{&f.seconds, 0.01, 1e6}, "seconds", "Seconds of audio of each stream, at 100 frames a second")
	fs.Var(real{&f.rate, 0, 1e6}, "rate", "How fast frames come: 1 is real time, 2 twice as fast; with 0 they are all there from the beginning")
	fs.IntVar(&f.packet, "packet", 10, "Frames that arrive together")
	fs.IntVar(&f.period, "online-ivector-period", 0, "Frames after which a stream gets another i-vector; 0 for one only")
	fs.IntVar(&f.initial, "extra-left-context-initial", 0, "Extra frames before the first one")
	fs.IntVar(&f.batch, "max-streams", 0, "Largest number of streams in one computation; 0 for as many as have about 2,000 frames in a chunk, at most 64")
	fs.IntVar(&f.workers, "workers", 1, "Number of computations at a time")
	fs.DurationVar(&f.wait, "max-wait", 0, "How long a chunk may wait for chunks of other streams, such as 20ms")
	fs.BoolVar(&f.find, "find", false, "Look for the most streams whose rows are late by less than a chunk and 50 ms in 99 of 100 cases")
	return f
}

// benchStream measures live streams.
func benchStream(ctx context.Context, c *tool.Console, net *networkFlags, f *streamFlags, model string, threads int, asJSON bool) error {
	if model == "" {
		return tool.Usagef("--model expected")
	}
	if net.request != "" {
		return tool.Usagef("streams have no --request")
	}
	query, opt, err := net.passes.BuildFor(net.vocabulary())
	if err != nil {
		return err
	}
	nn, _, err := net.network(c, model, net.seed)
	if err != nil {
		return err
	}
	if nn, err = nn.For("output"); err != nil {
		return fmt.Errorf("%s: %w", model, err)
	}
	s, err := decodable.NewStreamer(ctx, nn, decodable.Options{
		FramesPerChunk: net.chunk.Frames, FrameSubsampling: net.chunk.Subsampling, ExtraLeftContextInitial: &f.initial, Optimizer: opt, Threads: threads,
	})
	switch {
	case errors.Is(err, decodable.ErrOptions):
		return tool.Usagef("%w", err)
	case err != nil:
		return fmt.Errorf("%s: %w", model, err)
	}
	b, err := s.NewBatcher(ctx, decodable.BatcherOptions{MaxStreams: f.batch, MaxWait: f.wait, Workers: f.workers})
	if err != nil {
		return specifierUsage(err)
	}
	defer b.Close()
	r := &streamReport{Model: model, Query: query, FramesPerChunk: s.FramesPerChunk(), StateBytes: s.StateBytes(), Workers: f.workers, Threads: threads}
	load := decodable.Load{
		Streams: f.streams, Audio: time.Duration(f.seconds * float64(time.Second)), Rate: f.rate, Packet: f.packet, IvectorPeriod: f.period,
	}
	var found *decodable.LoadReport
	if f.find {
		found, err = b.MostStreams(ctx, load, func(r *decodable.LoadReport) {
			holds := "too many"
			if r.Holds(s) {
				holds = "held"
			}
			c.Say("%s streams: %s, 99 of 100 rows within %s", display.Thousands(r.Streams), holds, display.Duration(r.Latency.P99))
		})
	} else {
		found, err = b.Measure(ctx, load)
	}
	if err != nil {
		return specifierUsage(err)
	}
	if found == nil {
		return errors.New("not even one stream is in time")
	}
	r.add(found, s)
	if asJSON {
		err = tool.WriteJSON(c.Stdout, r)
	} else {
		r.print(c)
	}
	if err == nil && found.Rows != found.Wanted {
		err = fmt.Errorf("%d of %d rows are lost", found.Wanted-found.Rows, found.Wanted)
	}
	return err
}

// A streamReport is the output of bench stream --json.
type streamReport struct {
	Model          string  `json:"model"`
	Query          string  `json:"query"`
	Streams        int     `json:"streams"`
	AudioSeconds   float64 `json:"audio_seconds"` // of each stream
	Rate           float64 `json:"rate"`
	Packet         int     `json:"packet"`
	FramesPerChunk int     `json:"frames_per_chunk"`
	ChunkSeconds   float64 `json:"chunk_seconds"` // the time in which a chunk comes, at this rate
	Frames         int64   `json:"frames"`
	Rows           int64   `json:"rows"`
	RowsWanted     int64   `json:"rows_wanted"`
	ElapsedSeconds float64 `json:"elapsed_seconds"`
	// CPUSeconds is the processor time of the whole process while it ran, the source of the frames
	// included; SecondsPerFrame is that for each frame of each stream.
	CPUSeconds      float64 `json:"cpu_seconds"`
	SecondsPerFrame float64 `json:"seconds_per_frame"`
	// Latency is from the arrival of the last frame that a row needs, OwnLatency from that of its
	// own frame.
	Latency     latencyFigures `json:"latency"`
	OwnLatency  latencyFigures `json:"own_latency"`
	Holds       bool           `json:"holds"` // Latency.P99 is at most ChunkSeconds and 50 ms, and nothing is lost
	StreamBytes int            `json:"stream_bytes"`
	StateBytes  int            `json:"state_bytes"`
	Workers     int            `json:"workers"`
	Threads     int            `json:"threads"`
}

// latencyFigures are percentiles in seconds.
type latencyFigures struct {
	Median float64 `json:"median"`
	P95    float64 `json:"p95"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func latencySeconds(l decodable.Latencies) latencyFigures {
	return latencyFigures{l.Median.Seconds(), l.P95.Seconds(), l.P99.Seconds(), l.Max.Seconds()}
}

// add adds what was measured.
func (r *streamReport) add(l *decodable.LoadReport, s *decodable.Streamer) {
	r.Streams, r.AudioSeconds, r.Rate, r.Packet = l.Streams, l.Audio.Seconds(), l.Rate, l.Packet
	r.ChunkSeconds = s.ChunkTime(l.Load).Seconds()
	r.Frames, r.Rows, r.RowsWanted = l.Frames, l.Rows, l.Wanted
	r.ElapsedSeconds, r.CPUSeconds = l.Elapsed.Seconds(), l.CPU.Seconds()
	// Processor time is what a server can be planned with: elapsed time includes the waiting for
	// frames, which come by the clock.
	used := r.CPUSeconds
	if used == 0 { // the system does not tell
		used = r.ElapsedSeconds
	}
	r.SecondsPerFrame = used / float64(max(l.Frames, 1))
	r.Latency, r.OwnLatency = latencySeconds(l.Latency), latencySeconds(l.OwnLatency)
	r.Holds = l.Rate > 0 && l.Holds(s)
	r.StreamBytes = l.StreamBytes
}

// print prints the report for people.
func (r *streamReport) print(c *tool.Console) {
	seconds := func(s float64) string { return display.Duration(time.Duration(s * 1e9)) }
	switch r.Rate {
	case 0:
		c.Print("%s streams of %s, as fast as they go; latencies are those of chunks in a queue that is always full\n", display.Thousands(r.Streams), seconds(r.AudioSeconds))
	case 1:
		c.Print("%s streams of %s in real time\n", display.Thousands(r.Streams), seconds(r.AudioSeconds))
	default:
		c.Print("%s streams of %s at %g times real time: as many frames as %.1f streams in real time, with latencies of chunks that come in %s\n",
			display.Thousands(r.Streams), seconds(r.AudioSeconds), r.Rate, float64(r.Streams)*r.Rate, seconds(r.ChunkSeconds))
	}
	c.Print("%s frames in chunks of %d, %s of %s rows, in %s\n", display.Thousands(r.Frames), r.FramesPerChunk, display.Thousands(r.Rows), display.Thousands(r.RowsWanted), seconds(r.ElapsedSeconds))
	c.Print("a frame takes %s; %s frames/s came\n", seconds(r.SecondsPerFrame), display.Thousands(int64(float64(r.Frames)/r.ElapsedSeconds)))
	c.Print("\n%-34s %10s %10s %10s %10s\n", "latency of a row", "median", "95 %", "99 %", "most")
	for _, l := range []struct {
		what string
		f    latencyFigures
	}{{"from the last frame that it needs", r.Latency}, {"from its own frame", r.OwnLatency}} {
		c.Print("%-34s %10s %10s %10s %10s\n", l.what, seconds(l.f.Median), seconds(l.f.P95), seconds(l.f.P99), seconds(l.f.Max))
	}
	if r.Rate > 0 {
		verdict := "more than"
		if r.Holds {
			verdict = "within"
		}
		c.Print("99 %% are %s a chunk of %s and 50 ms\n", verdict, seconds(r.ChunkSeconds))
	}
	c.Print("\nmemory of a stream: %s, of which %s are its state\n", display.Bytes(int64(r.StreamBytes)), display.Bytes(int64(r.StateBytes)))
}
