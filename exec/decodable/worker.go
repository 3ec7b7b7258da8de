package decodable

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/internal/kernel"
)

// An Utterance has features and, for a network with an input for them, i-vectors.
type Utterance struct {
	Key      string
	Features kernel.Matrix // a row per frame
	// Ivector serves all chunks. Without it, a chunk uses the row of OnlineIvectors for its middle.
	// A network without i-vectors ignores both.
	Ivector        []float32
	OnlineIvectors kernel.Matrix // a row every Options.OnlineIvectorPeriod frames

	tables *Tables // that it is from, or nil
}

// A worker scores utterances, one at a time. It reuses memory.
type worker struct {
	s         *Scorer
	workspace exec.Workspace
	computers map[*exec.Program]*exec.Computer
	features  []float32 // of the chunks of a batch, if they can't be read in place
	ivectors  []float32
	busy      time.Duration
}

// maxComputers bounds the computers of a worker. A long stream of utterances reaches it, because
// their last chunks have many shapes.
const maxComputers = 16

// newWorker returns a worker for one goroutine.
func (s *Scorer) newWorker() *worker {
	return &worker{s: s, computers: make(map[*exec.Program]*exec.Computer)}
}

// accepts returns an error if an utterance doesn't fit a network with a number of features and
// elements of an i-vector, with online i-vectors every period frames.
func accepts(u *Utterance, features, dim, period int) error {
	switch {
	case !kernel.Valid(u.Features):
		return errInvalid("features", u.Features)
	case !kernel.Valid(u.OnlineIvectors):
		return errInvalid("online i-vectors", u.OnlineIvectors)
	case u.Features.Rows == 0:
		return ErrEmpty
	case u.Features.Cols != features:
		return fmt.Errorf("%w: features have %d columns, but the network wants %d", ErrDim, u.Features.Cols, features)
	case dim == 0:
		return nil
	}
	ivector := len(u.Ivector)
	if u.OnlineIvectors.Rows > 0 {
		switch {
		case ivector > 0:
			return fmt.Errorf("%w: there is an i-vector for the utterance, and online i-vectors, too", ErrOptions)
		case period <= 0:
			return fmt.Errorf("%w: online i-vectors need online-ivector-period", ErrOptions)
		}
		ivector = u.OnlineIvectors.Cols
	}
	switch ivector {
	case dim:
		return nil
	case 0:
		return fmt.Errorf("%w, but the network wants one of %d elements", ErrIvector, dim)
	}
	return fmt.Errorf("%w: an i-vector of %d elements, but the network wants %d", ErrDim, ivector, dim)
}

// errInvalid returns the error for a matrix without all elements of its shape.
func errInvalid(what string, m kernel.Matrix) error {
	return fmt.Errorf("%w: %s of %dx%d (stride %d) have %d elements", ErrDim, what, m.Rows, m.Cols, m.Stride, len(m.Data))
}

// notFinite returns an ErrNotFinite that names the first NaN or infinity of an utterance, or nil.
func notFinite(u *Utterance) error {
	for _, part := range []struct {
		what string
		m    kernel.Matrix
	}{
		{"feature", u.Features}, {"online i-vector", u.OnlineIvectors},
		{"i-vector", kernel.Matrix{Rows: 1, Cols: len(u.Ivector), Stride: len(u.Ivector), Data: u.Ivector}},
	} {
		for i := range part.m.Rows {
			for j, v := range kernel.Row(part.m, i) {
				if v-v != 0 {
					return fmt.Errorf("%w: the %s in row %d, column %d is %g", ErrNotFinite, part.what, i, j, v)
				}
			}
		}
	}
	return nil
}

// cut returns the batches of an utterance.
func (s *Scorer) cut(u *Utterance) ([]batch, error) { return s.appendCut(u, nil) }

func (s *Scorer) appendCut(u *Utterance, dst []batch) ([]batch, error) {
	if err := accepts(u, s.features, s.ivector, s.period); err != nil {
		return dst, err
	}
	dst = s.cutter.cut(s.rows(u.Features.Rows), dst)
	if s.ivector > 0 && u.OnlineIvectors.Rows > 0 {
		last := dst[len(dst)-1]
		if _, err := s.ivectorRow(u, last, last.sequences-1); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

func (s *Scorer) outputShape(frames int) (rows, cols int) { return s.rows(frames), s.outputs }
func (s *Scorer) newStaff() staff                         { return s.newWorker() }
func (s *Scorer) window(workers int) int                  { return 2*workers + 1 }

// begin makes the programs for all pieces of an utterance, if they can be kept together.
func (w *worker) begin(ctx context.Context, pieces []batch) error {
	var shapes [8]shape
	n := 0
	for _, b := range pieces {
		if slices.Contains(shapes[:n], b.shape) {
			continue
		}
		if n == min(len(shapes), w.s.programs.capacity) {
			return nil
		}
		shapes[n] = b.shape
		n++
	}
	for _, s := range shapes[:n] {
		if err := w.s.programs.ensure(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) used() (busy time.Duration, bytes int64) { return w.busy, w.workspace.MaxBytes() }

// score computes the chunks of a batch into out.
func (w *worker) score(ctx context.Context, u *Utterance, b batch, out kernel.Matrix) error {
	p, c, err := w.computer(ctx, b.shape)
	if err != nil {
		return err
	}
	defer c.Reset()
	if _, err := c.LendOutput(p.Port(outputNode), out); err != nil {
		return err
	}
	if err := c.AcceptInput(inputNode, w.input(u.Features, b)); err != nil {
		return err
	}
	if w.s.ivector > 0 {
		v, err := w.ivector(u, b)
		if err != nil {
			return err
		}
		if err := c.AcceptInput(ivectorNode, v); err != nil {
			return err
		}
	}
	start := time.Now()
	err = c.Run(ctx)
	w.busy += time.Since(start)
	if err != nil {
		return err
	}
	y, err := c.Output(outputNode)
	if err != nil {
		return err
	}
	w.s.output.finish(out, y)
	return nil
}

// computer returns the program for chunks of a shape, and a computer for it.
func (w *worker) computer(ctx context.Context, s shape) (*exec.Program, *exec.Computer, error) {
	p, err := w.s.programs.get(ctx, s, false)
	if err != nil {
		return nil, nil, err
	}
	if c := w.computers[p]; c != nil {
		return p, c, nil
	}
	if len(w.computers) == maxComputers {
		clear(w.computers)
		w.workspace.Trim()
	}
	c, err := p.NewComputer(exec.ComputerOptions{Workspace: &w.workspace, Threads: w.s.threads})
	if err != nil {
		return nil, nil, err
	}
	w.computers[p] = c
	return p, c, nil
}

// input returns the features of the chunks of a batch, one below the other. The first and the last
// frame of the utterance are repeated beyond its ends.
func (w *worker) input(features kernel.Matrix, b batch) kernel.Matrix {
	first, frames := b.first*w.s.step-b.left, b.frames(w.s.step)
	if b.sequences == 1 && first >= 0 && first+frames <= features.Rows {
		return kernel.Rows(features, first, frames)
	}
	cols := features.Cols
	w.features = resize(w.features, b.sequences*frames*cols)
	dst := w.features
	for n := range b.sequences {
		t := first + n*b.rows*w.s.step
		for end := t + frames; t < end; t++ {
			copy(dst[:cols], kernel.Row(features, min(max(t, 0), features.Rows-1)))
			dst = dst[cols:]
		}
	}
	return kernel.Matrix{Rows: b.sequences * frames, Cols: cols, Stride: cols, Data: w.features}
}

// lateIvector is the largest delay of an i-vector in frames. Windows may end half a second early; a
// longer delay means that the i-vectors don't belong to the utterance.
const lateIvector = 50

// ivector returns an i-vector for each chunk of a batch: that of the utterance, or the latest one
// in the middle of the chunk.
func (w *worker) ivector(u *Utterance, b batch) (kernel.Matrix, error) {
	dim := w.s.ivector
	w.ivectors = resize(w.ivectors, b.sequences*dim)
	for n := range b.sequences {
		v := u.Ivector
		if u.OnlineIvectors.Rows > 0 {
			row, err := w.s.ivectorRow(u, b, n)
			if err != nil {
				return kernel.Matrix{}, err
			}
			v = kernel.Row(u.OnlineIvectors, row)
		}
		copy(w.ivectors[n*dim:], v)
	}
	return kernel.Matrix{Rows: b.sequences, Cols: dim, Stride: dim, Data: w.ivectors}, nil
}

// ivectorRow returns the row of the online i-vectors for chunk n of a batch.
func (s *Scorer) ivectorRow(u *Utterance, b batch, n int) (int, error) {
	frame := (b.first+n*b.rows)*s.step + (b.rows-1)*s.step/2
	return latestIvector(u, frame, s.period)
}

// latestIvector returns the row of the online i-vectors for a frame.
func latestIvector(u *Utterance, frame, period int) (int, error) {
	row, last := frame/period, u.OnlineIvectors.Rows-1
	if (row-last)*period > lateIvector {
		return 0, fmt.Errorf("%w for frame %d: there are %d, one every %d frames (is online-ivector-period right?)", ErrIvector, frame, last+1, period)
	}
	return min(row, last), nil
}

// resize returns a slice of n elements with undefined contents.
func resize(s []float32, n int) []float32 {
	if cap(s) < n {
		return make([]float32, n)
	}
	return s[:n]
}
