package decodable

import (
	"context"
	"math/bits"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
)

// An engine computes chunks of streams, for one goroutine.
type engine struct {
	s         *Streamer
	workspace exec.Workspace
	computers [][]*exec.Computer // by the logarithm of the number of streams, and by phase; nil if not made
	streams   [maxSequences]*Stream
	buffer    []float32 // of the inputs of a chunk
	used      int       // elements of it
}

func newEngine(s *Streamer) *engine {
	return &engine{s: s, computers: make([][]*exec.Computer, len(s.loops))}
}

// compute computes the next chunk of streams, which are at the same phase. Their number is a power
// of two.
func (e *engine) compute(ctx context.Context, streams []*Stream) error {
	log := bits.Len(uint(len(streams))) - 1
	l, err := e.s.loop(ctx, log)
	if err != nil {
		return err
	}
	phase := streams[0].phase
	c, err := e.computer(l, log, phase)
	if err != nil {
		return err
	}
	// Reset returns the memory to the workspace, which all computers of the engine share. So the
	// engine needs the memory of its largest chunk, not that of all chunks and sizes together.
	defer c.Reset()
	chunk := &l.chunks[phase]
	if err := e.accept(c, chunk, streams); err != nil {
		return err
	}
	lent, err := e.lendRows(c, chunk, streams)
	if err != nil {
		return err
	}
	if err := c.Run(ctx); err != nil {
		return err
	}
	y, err := c.OutputAt(chunk.ports.output)
	if err != nil {
		return err
	}
	// The state is saved in the layout of the chunk that will read it, since phases may carry
	// different rows. Only then do the streams advance: if anything failed so far, they are as
	// before the call and can compute the chunk again.
	next := phase + 1
	if next == len(l.chunks) {
		next = l.start
	}
	if err := l.chunks[next].keep(c, chunk.given, streams); err != nil {
		return err
	}
	rows := y.Rows / len(streams)
	// The rows of the output are ordered by sequence, so each stream has a consecutive part.
	for n, st := range streams {
		if !lent {
			st.makeRows(rows, y.Cols)
		}
		e.s.output.finish(st.out, kernel.Rows(y, n*rows, rows))
		st.advance()
	}
	return nil
}

// lendRows lets the computation write the rows of a single stream where the stream has them. It
// reports whether they will be there.
func (e *engine) lendRows(c *exec.Computer, chunk *loopChunk, streams []*Stream) (bool, error) {
	if len(streams) > 1 {
		return false, nil
	}
	st := streams[0]
	st.makeRows(chunk.rows, e.s.outputs)
	return c.LendOutput(chunk.ports.output, st.out)
}

// computer returns the computer for a chunk of a loop.
func (e *engine) computer(l *loop, log, phase int) (*exec.Computer, error) {
	if e.computers[log] == nil {
		e.computers[log] = make([]*exec.Computer, len(l.chunks))
	}
	if c := e.computers[log][phase]; c != nil {
		return c, nil
	}
	c, err := l.chunks[phase].program.NewComputer(exec.ComputerOptions{Workspace: &e.workspace, Threads: e.s.threads})
	if err != nil {
		return nil, err
	}
	e.computers[log][phase] = c
	return c, nil
}

// accept hands in the inputs of a chunk: frames, i-vectors, and what the chunks before left. They
// are gathered in the engine's buffer, where the computation uses them. The streams keep theirs until
// it has finished: if it is cancelled, the chunk is computed again.
func (e *engine) accept(c *exec.Computer, chunk *loopChunk, streams []*Stream) error {
	n, s := len(streams), e.s
	e.begin(n*(chunk.frames*s.features+chunk.ivectors*s.ivector+chunk.size) + (2+len(chunk.taken))*alignment)
	// Inputs are ordered by sequence and then by time, which is the order of the indexes of looped
	// requests.
	input := e.matrix(n*chunk.frames, s.features)
	for i, st := range streams {
		st.copyFrames(input.Data[i*chunk.frames*s.features:][:chunk.frames*s.features])
	}
	if err := c.Lend(chunk.ports.input, input); err != nil {
		return err
	}
	if chunk.ivectors > 0 {
		ivectors := e.matrix(n*chunk.ivectors, s.ivector)
		for i, st := range streams {
			v := st.ivectors[st.usedIvector()*s.ivector:][:s.ivector]
			for k := range chunk.ivectors {
				copy(kernel.Row(ivectors, i*chunk.ivectors+k), v)
			}
		}
		if err := c.Lend(chunk.ports.ivector, ivectors); err != nil {
			return err
		}
	}
	for j := range chunk.taken {
		t := &chunk.taken[j]
		m := e.matrix(t.total, t.cols)
		for i, st := range streams {
			for r, row := range t.rows[i] {
				copy(m.Data[int(row)*t.cols:][:t.cols], st.state[t.at+r*t.cols:])
			}
		}
		if err := c.Lend(t.port, m); err != nil {
			return err
		}
	}
	return nil
}

// alignment is that of matrices in the buffer, in elements: a cache line.
const alignment = 16

// begin makes room for matrices of a chunk with the given number of elements in all.
func (e *engine) begin(size int) {
	e.buffer = resize(e.buffer, size)
	e.used = 0
}

// matrix returns the next matrix in the buffer.
func (e *engine) matrix(rows, cols int) kernel.Matrix {
	data := e.buffer[e.used:][:rows*cols]
	e.used += (rows*cols + alignment - 1) / alignment * alignment
	return kernel.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// keep copies what chunk takes to the states of the streams.
func (chunk *loopChunk) keep(c *exec.Computer, given []int, streams []*Stream) error {
	for j := range chunk.taken {
		t := &chunk.taken[j]
		m, err := c.OutputAt(given[j])
		if err != nil {
			return err
		}
		for i, st := range streams {
			for r, row := range t.rows[i] {
				copy(st.state[t.at+r*t.cols:][:t.cols], kernel.Row(m, int(row)))
			}
		}
	}
	return nil
}
