package decodable

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
)

// ErrFinished is the error for frames or i-vectors after the end of a stream.
var ErrFinished = errors.New("the stream is finished")

// A Stream is a live utterance. Its methods are for one goroutine at a time.
//
//	for frames := range source {
//		err := stream.Accept(frames)
//		...
//		for {
//			y, err := stream.Rows(ctx)
//			if err != nil || y.Rows == 0 {
//				break // y.Rows == 0: more frames are needed
//			}
//			...
//		}
//	}
//	stream.Finish() // Rows returns the rest, and then io.EOF
//
// Frames before the first one repeat it, and frames after the last one repeat that, as the context
// of the network demands. Rows don't depend on the pieces in which frames come. Once its buffers
// have grown to the largest piece, a stream allocates nothing.
type Stream struct {
	s       *Streamer
	compute func(context.Context, *Stream) error // computes the next chunk

	frames   []float32 // not needed in full any more: those from frame number first on
	first    int
	total    int // frames so far
	finished bool
	failed   error

	ivectors []float32 // one after the other
	since    []int     // by i-vector: the number of frames before it

	chunk int       // the number of the next chunk
	phase int       // its number in the loop
	state []float32 // what it takes
	out   kernel.Matrix
	wait  waiting
}

// NewStream returns a stream that computes in the calls of Rows, in memory of its own.
func (s *Streamer) NewStream() *Stream {
	return newEngine(s).newStream()
}

// newStream returns a stream that the engine computes.
func (e *engine) newStream() *Stream {
	return e.s.newStream(func(ctx context.Context, st *Stream) error {
		e.streams[0] = st
		return e.compute(ctx, e.streams[:1])
	})
}

func (s *Streamer) newStream(compute func(context.Context, *Stream) error) *Stream {
	return &Stream{s: s, compute: compute, state: make([]float32, s.loops[0].stateSize()), wait: waiting{done: make(chan error, 1)}}
}

// Accept adds frames, a row each. It copies them. The error wraps ErrDim or ErrFinished.
func (st *Stream) Accept(frames kernel.Matrix) error {
	switch {
	case st.finished:
		return ErrFinished
	case !kernel.Valid(frames):
		return errInvalid("frames", frames)
	case frames.Rows == 0:
		return nil
	case frames.Cols != st.s.features:
		return fmt.Errorf("%w: frames have %d columns, but the network wants %d", ErrDim, frames.Cols, st.s.features)
	}
	st.dropFrames()
	for i := range frames.Rows {
		st.frames = append(st.frames, kernel.Row(frames, i)...)
	}
	st.total += frames.Rows
	return nil
}

// AcceptIvector sets the i-vector for the frames that come from now on. The first one serves the
// frames before it, too. A chunk has a single i-vector: the last one that was set before a frame came
// that the chunk does not read. The frames that it reads include the context of its output. A
// network without i-vectors ignores it. The error wraps ErrDim or ErrFinished.
func (st *Stream) AcceptIvector(v []float32) error {
	switch {
	case st.finished:
		return ErrFinished
	case st.s.ivector == 0:
		return nil
	case len(v) != st.s.ivector:
		return fmt.Errorf("%w: an i-vector of %d elements, but the network wants %d", ErrDim, len(v), st.s.ivector)
	}
	st.dropIvectors()
	if n := len(st.since); n > 0 && st.since[n-1] == st.total {
		copy(st.ivectors[(n-1)*st.s.ivector:], v)
		return nil
	}
	st.ivectors = append(st.ivectors, v...)
	st.since = append(st.since, st.total)
	return nil
}

// Finish says that no more frames come. It may be called again.
func (st *Stream) Finish() { st.finished = true }

// Reset prepares the stream for another utterance. I-vectors are forgotten, too.
func (st *Stream) Reset() {
	st.frames, st.ivectors, st.since = st.frames[:0], st.ivectors[:0], st.since[:0]
	st.first, st.total, st.finished, st.failed, st.chunk, st.phase = 0, 0, false, nil, 0, 0
}

// Rows returns the output for the next chunk, a row per Options.FrameSubsampling frames. It
// returns no rows if frames are missing, and io.EOF after the last row of a finished stream. The
// matrix is valid until the next call of a method. Other errors wrap ErrIvector, come from
// exec.Computer, or are the cause of the context. After the cause of the context, Rows may be called
// again; after any other error the stream needs a Reset.
func (st *Stream) Rows(ctx context.Context) (kernel.Matrix, error) {
	switch {
	case st.failed != nil:
		return kernel.Matrix{}, fmt.Errorf("%w: an earlier chunk failed: %w", exec.ErrState, st.failed)
	case st.finished && st.chunk*st.s.chunk >= st.total:
		return kernel.Matrix{}, io.EOF
	// The chunk looks at frames that have not come. At the end of the stream the last frame is
	// repeated instead, as Kaldi does.
	case !st.finished && st.end() > st.total:
		return kernel.Matrix{}, nil
	case st.s.ivector > 0 && len(st.since) == 0:
		return kernel.Matrix{}, fmt.Errorf("%w, but the network wants one of %d elements (AcceptIvector)", ErrIvector, st.s.ivector)
	}
	if err := st.compute(ctx, st); err != nil {
		if ctx.Err() == nil {
			st.failed = err
		}
		return kernel.Matrix{}, err
	}
	y := st.out
	if st.finished {
		// The last chunk is computed in full, with repeated frames. Its rows beyond the last frame
		// are dropped.
		y = kernel.Rows(y, 0, min(y.Rows, (st.total-(st.chunk-1)*st.s.chunk+st.s.step-1)/st.s.step))
	}
	return y, nil
}

// Ready reports whether Rows has something to return without further frames: rows, io.EOF or an
// error.
func (st *Stream) Ready() bool { return st.finished || st.failed != nil || st.end() <= st.total }

// Buffered returns the number of frames that Accept has taken and that no chunk has used yet. A caller
// that takes the rows as soon as there are any has at most a chunk and the context of the network
// besides the last piece.
func (st *Stream) Buffered() int { return max(st.total-max(st.begin(), 0), 0) }

// begin and end return the new frames of the next chunk, context included.
func (st *Stream) begin() int {
	if st.chunk == 0 {
		return -st.s.left
	}
	return st.chunk*st.s.chunk + st.s.right
}

func (st *Stream) end() int { return (st.chunk+1)*st.s.chunk + st.s.right }

// dropFrames drops frames that have been computed, all but the last one of the stream.
func (st *Stream) dropFrames() {
	// The last frame stays even if all are used: Finish may come next, and the padding repeats it.
	keep := min(max(st.begin(), 0), st.total-1)
	// Moving the rest to the front costs a copy. It is done once at least half is dead, so each
	// frame is copied at most once on average, and the buffer is at most twice what is needed.
	if n := keep - st.first; n > 0 && n*2 >= st.total-st.first {
		cols := st.s.features
		st.frames = st.frames[:copy(st.frames, st.frames[n*cols:])]
		st.first = keep
	}
}

// dropIvectors drops i-vectors that no chunk uses any more.
func (st *Stream) dropIvectors() {
	used := st.usedIvector()
	if used <= 0 {
		return
	}
	st.since = st.since[:copy(st.since, st.since[used:])]
	st.ivectors = st.ivectors[:copy(st.ivectors, st.ivectors[used*st.s.ivector:])]
}

// usedIvector returns the number of the i-vector for the next chunk.
func (st *Stream) usedIvector() int {
	used := len(st.since) - 1
	// Take the last i-vector that was set before a frame came that the chunk does not read. So the
	// result doesn't depend on how far the accepted frames run ahead of the chunk.
	for used > 0 && st.since[used] > st.end() {
		used--
	}
	return used
}

// copyFrames copies the new frames of the next chunk, context included, to dst. Beyond the ends of
// the stream they are the first or the last one.
func (st *Stream) copyFrames(dst []float32) {
	cols := st.s.features
	begin := st.begin()
	end := begin + len(dst)/cols
	frame := func(t int) []float32 { return st.frames[(t-st.first)*cols:] }
	for t := begin; t < min(end, 0); t++ {
		dst = dst[copy(dst[:cols], frame(0)):]
	}
	if lo, hi := max(begin, 0), min(end, st.total); lo < hi {
		dst = dst[copy(dst[:(hi-lo)*cols], frame(lo)):]
	}
	for len(dst) > 0 {
		dst = dst[copy(dst[:cols], frame(st.total-1)):]
	}
}

// makeRows makes room for the rows of a chunk.
func (st *Stream) makeRows(rows, cols int) {
	st.out = kernel.Matrix{Rows: rows, Cols: cols, Stride: cols, Data: resize(st.out.Data, rows*cols)}
}

// advance moves the stream to the next chunk.
func (st *Stream) advance() {
	st.chunk++
	if st.phase++; st.phase == len(st.s.loops[0].chunks) {
		st.phase = st.s.loops[0].start
	}
}
