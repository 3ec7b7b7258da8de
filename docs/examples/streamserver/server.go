package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/exec/decodable"
	"github.com/nnopt/nnopt/kernel"
)

// A server answers POST /stream with the rows of a stream, GET / with what streams are like, and GET
// /metrics with what the server does. It is safe for concurrent use.
type server struct {
	http.Handler
	streamer *decodable.Streamer
	batcher  *decodable.Batcher
	slots    chan struct{} // one for each stream that may be open
	idle     time.Duration
	refused  atomic.Int64 // streams that were too many

	ended      context.Context // done when streams are to end
	endStreams context.CancelFunc
}

// newServer returns a server of at most most streams at a time. A stream that sends nothing, or reads
// nothing, for the time idle is cut off.
func newServer(streamer *decodable.Streamer, batcher *decodable.Batcher, most int, idle time.Duration) *server {
	mux := http.NewServeMux()
	s := &server{Handler: mux, streamer: streamer, batcher: batcher, slots: make(chan struct{}, most), idle: idle}
	s.ended, s.endStreams = context.WithCancel(context.Background())
	mux.HandleFunc("GET /{$}", s.describe)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("POST /stream", s.stream)
	mux.HandleFunc("PUT /stream", s.stream) // what curl -T sends
	return s
}

// An input is a line of a request. An i-vector serves the frames of its line and those after it.
type input struct {
	Frames  [][]float32 `json:"frames,omitempty"`
	Ivector []float32   `json:"ivector,omitempty"`
}

// An output is a line of a response. The last line has Done or an Error.
type output struct {
	Rows  [][]float32 `json:"rows,omitempty"`
	Done  bool        `json:"done,omitempty"`
	Error string      `json:"error,omitempty"`
}

// maxLine bounds the bytes of a line of a request: some 10,000 frames.
const maxLine = 4 << 20

func (s *server) describe(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]int{
		"frame": s.streamer.InputDim(), "ivector": s.streamer.IvectorDim(), "row": s.streamer.OutputDim(),
		"frames_per_chunk": s.streamer.FramesPerChunk(), "streams": len(s.slots), "max_streams": cap(s.slots),
	})
}

// metrics writes what the batcher has done as Prometheus reads it. Latencies are of the chunks since
// the last time.
func (s *server) metrics(w http.ResponseWriter, _ *http.Request) {
	b := s.batcher.Stats()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	for _, m := range []struct {
		name, kind string
		value      float64
	}{
		{"streams", "gauge", float64(len(s.slots))},
		{"streams_refused_total", "counter", float64(s.refused.Load())},
		{"chunks_waiting", "gauge", float64(b.Waiting)},
		{"chunks_computing", "gauge", float64(b.Computing)},
		{"chunks_total", "counter", float64(b.Chunks)},
		{"chunks_failed_total", "counter", float64(b.Failed)},
		{"batches_total", "counter", float64(b.Batches)},
		{"busy_seconds_total", "counter", b.Busy.Seconds()},
	} {
		fmt.Fprintf(w, "# TYPE nnopt_%s %s\nnnopt_%[1]s %[3]g\n", m.name, m.kind, m.value)
	}
	fmt.Fprintln(w, "# TYPE nnopt_latency_seconds gauge")
	for _, q := range []struct {
		quantile string
		latency  time.Duration
	}{{"0.5", b.Latency.Median}, {"0.95", b.Latency.P95}, {"0.99", b.Latency.P99}, {"1", b.Latency.Max}} {
		fmt.Fprintf(w, "nnopt_latency_seconds{quantile=%q} %g\n", q.quantile, q.latency.Seconds())
	}
}

// stream handles a stream. A fault before the first row has a status of its own; one after it is the
// last line.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	default:
		s.refused.Add(1)
		http.Error(w, "too many streams", http.StatusServiceUnavailable)
		return
	}
	conn := http.NewResponseController(w)
	if err := conn.EnableFullDuplex(); err != nil && r.ProtoMajor < 2 {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	out := &reply{w: w, conn: conn, idle: s.idle}
	err := s.score(r.Context(), r.Body, out)
	switch {
	case err == nil:
		out.line(output{Done: true})
	case out.begun:
		out.line(output{Error: err.Error()})
	case errors.Is(err, decodable.ErrClosed), errors.Is(err, errEnded):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
	if err != nil && !errors.Is(err, errEnded) && conn.Flush() == nil && deadline(conn.SetReadDeadline, s.idle) == nil {
		io.CopyN(io.Discard, r.Body, 4*maxLine) // a client that can't send may not look at the response
	}
}

// errEnded ends a stream that has sent no end.
var errEnded = errors.New("the server stops; these are the rows of all frames that have come")

// score reads a request and writes its rows. It reads a line when the rows of those before are written,
// so a client that sends faster than the network computes has to wait.
func (s *server) score(ctx context.Context, body io.Reader, out *reply) error {
	defer context.AfterFunc(s.ended, func() { out.conn.SetReadDeadline(time.Now()) })()
	stream := s.batcher.NewStream()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for n := 1; ; n++ {
		if err := deadline(out.conn.SetReadDeadline, s.idle); err != nil {
			return err
		}
		if s.ended.Err() != nil || !lines.Scan() || lines.Err() != nil { // a line may be a part of one
			break
		}
		if err := accept(stream, lines.Bytes()); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		if err := rows(ctx, stream, out); err != nil && err != io.EOF {
			return err
		}
	}
	err := lines.Err()
	if s.ended.Err() != nil {
		err = errEnded
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), farewell) // a read past its deadline ends ctx
		defer cancel()
	} else if err != nil {
		return err
	}
	stream.Finish()
	if err := rows(ctx, stream, out); err != io.EOF {
		return err
	}
	return err
}

// accept hands a line to the stream.
func accept(stream *decodable.Stream, line []byte) error {
	var in input
	if err := json.Unmarshal(line, &in); err != nil {
		return err
	}
	if in.Ivector != nil {
		if err := stream.AcceptIvector(in.Ivector); err != nil {
			return err
		}
	}
	for _, frame := range in.Frames {
		if err := stream.Accept(kernel.Matrix{Rows: 1, Cols: len(frame), Stride: len(frame), Data: frame}); err != nil {
			return err
		}
	}
	return nil
}

// rows writes the rows that are there. It returns io.EOF after the last one of a stream.
func rows(ctx context.Context, stream *decodable.Stream, out *reply) error {
	for {
		y, err := stream.Rows(ctx)
		if err != nil || y.Rows == 0 {
			return err
		}
		list := make([][]float32, y.Rows)
		for i := range list {
			list[i] = kernel.Row(y, i)
		}
		if err := out.line(output{Rows: list}); err != nil {
			return err
		}
	}
}

// A reply writes lines and sends each at once.
type reply struct {
	w     http.ResponseWriter
	conn  *http.ResponseController
	idle  time.Duration // how long the client may not read
	begun bool
}

func (o *reply) line(l output) error {
	data, err := json.Marshal(l) // which refuses numbers that are not finite
	if err != nil {
		return err
	}
	if !o.begun {
		o.w.Header().Set("Content-Type", "application/jsonl")
		o.begun = true
	}
	if err := deadline(o.conn.SetWriteDeadline, o.idle); err != nil {
		return err
	}
	if _, err := o.w.Write(append(data, '\n')); err != nil {
		return err
	}
	return o.conn.Flush()
}

// deadline sets a deadline where there can be one.
func deadline(set func(time.Time) error, idle time.Duration) error {
	if err := set(time.Now().Add(idle)); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}
