package decodable

import (
	"cmp"
	"fmt"

	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/internal/kernel/elementary"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
)

// The nodes of a simple network.
const (
	inputNode   = "input"
	ivectorNode = "ivector"
	outputNode  = "output"
)

// A Scorer scores utterances with a network. It is safe for concurrent use.
type Scorer struct {
	scored
	nn       *nnet3.Nnet
	cutter   cutter
	period   int // frames per row of online i-vectors
	programs programs
}

// scored is what a Scorer and a Streamer know of their network.
type scored struct {
	step        int // frames per row of output
	chunk       int // frames per chunk
	left, right int // context
	output      outputScale
	features    int // columns of the input
	ivector     int // elements of an i-vector, 0 for a network without
	outputs     int // columns of the output
	threads     int // of a computation
}

// defaultMinibatch is the number of chunks that a recurrent network computes at once.
const defaultMinibatch = 8

// Pack packs the parameters of a component for products and drops them in the form in which they
// were read (component.Releaser), whose memory it returns. New does so with all components; to pack
// each as soon as it is read takes less memory (nnet3.Loader).
func Pack(c component.Component) (spare []float32) {
	if p, ok := c.(component.Preparer); ok {
		p.Prepare()
	}
	if r, ok := c.(component.Releaser); ok {
		return r.Release()
	}
	return nil
}

// New returns a Scorer for a network, puts the network into test mode and packs its parameters.
// Whether it has the statistics for that, nnet3.Nnet.CheckStats says from then on.
// The network may not be changed or used while the Scorer is in use. The error wraps ErrOptions, or
// one of compile.Context.
func New(nn *nnet3.Nnet, opts Options) (*Scorer, error) {
	n, err := opts.prepare(nn, 50)
	if err != nil {
		return nil, err
	}
	s := &Scorer{scored: n, nn: nn, period: opts.OnlineIvectorPeriod, cutter: cutter{
		rows: n.chunk / n.step, left: n.left + opts.ExtraLeftContext, right: n.right + opts.ExtraRightContext, max: opts.MinibatchSize,
	}}
	s.cutter.initial, s.cutter.final = s.cutter.left, s.cutter.right
	if extra := opts.ExtraLeftContextInitial; extra != nil {
		s.cutter.initial = n.left + *extra
	}
	if extra := opts.ExtraRightContextFinal; extra != nil {
		s.cutter.final = n.right + *extra
	}
	if s.cutter.max == 0 {
		s.cutter.max = 1
		if isRecurrent(nn) {
			s.cutter.max = defaultMinibatch
		}
	}
	// The limit of a chunk also holds for a batch of the widest chunks.
	widest := shape{left: max(s.cutter.left, s.cutter.initial), right: max(s.cutter.right, s.cutter.final), rows: s.cutter.rows}
	s.cutter.max = max(min(s.cutter.max, maxChunk/widest.frames(s.step)), 1)
	s.programs = programs{s: s, opt: opts.Optimizer, capacity: cmp.Or(opts.CacheCapacity, 64+s.cutter.rows), entries: make(map[shape]*entry)}
	return s, nil
}

// prepare checks the options, puts the network into test mode and packs its parameters. chunk is the
// default of FramesPerChunk.
func (o *Options) prepare(nn *nnet3.Nnet, chunk int) (s scored, err error) {
	if err := o.check(); err != nil {
		return s, err
	}
	if s.left, s.right, err = compile.Context(nn); err != nil {
		return s, err
	}
	nn.SetTestMode(true)
	for _, c := range nn.Components {
		Pack(c)
	}
	s.threads = o.Threads
	s.step = cmp.Or(o.FrameSubsampling, 1)
	s.features, s.outputs = nn.InputNodeDim(inputNode), nn.OutputNodeDim(outputNode)
	s.ivector = max(nn.InputNodeDim(ivectorNode), 0)
	if s.output, err = newOutputScale(o.Priors, o.AcousticScale, o.ApplyExp, s.outputs); err != nil {
		return s, err
	}
	// Every chunk is computed as if it started at time 0. What the network computes may depend on the
	// time modulo its modulus, so a chunk must begin at a multiple of it, and its size is one.
	s.chunk = compile.ChunkSize(nn, s.step, cmp.Or(o.FramesPerChunk, chunk))
	if s.chunk > maxChunk {
		return s, fmt.Errorf("%w: a chunk of %d frames, rounded up to a multiple of %d, has %d frames; at most %d are allowed",
			ErrOptions, o.FramesPerChunk, compile.ChunkSize(nn, s.step, 1), s.chunk, maxChunk)
	}
	return s, nil
}

// FramesPerChunk returns the number of frames of the output of a chunk, after rounding.
func (s *scored) FramesPerChunk() int { return s.chunk }

// IvectorDim returns the dimension of i-vectors, or 0 for a network without.
func (s *scored) IvectorDim() int { return s.ivector }

// rows returns the number of rows of output for an utterance with the given number of frames.
func (s *Scorer) rows(frames int) int { return (frames + s.step - 1) / s.step }

// isRecurrent reports whether some node depends on itself. It repeatedly removes nodes whose
// dependencies are all removed.
func isRecurrent(nn *nnet3.Nnet) bool {
	users := make([][]int, len(nn.Nodes))
	missing := make([]int, len(nn.Nodes))
	var ready, deps []int
	for n := range nn.Nodes {
		deps = nn.Dependencies(n, deps[:0])
		missing[n] = len(deps)
		for _, d := range deps {
			users[d] = append(users[d], n)
		}
		if len(deps) == 0 {
			ready = append(ready, n)
		}
	}
	// This is Kahn's algorithm without the order: nodes that never become ready are on a cycle or
	// behind one, and cycles are recurrence. It needs no recursion, so the depth of the network
	// doesn't matter.
	done := 0
	for ; done < len(ready); done++ {
		for _, n := range users[ready[done]] {
			if missing[n]--; missing[n] == 0 {
				ready = append(ready, n)
			}
		}
	}
	return done < len(nn.Nodes)
}

// A shape is the shape of the chunks of a program. Times are relative to the first output of the
// chunk.
type shape struct {
	left, right int // frames of input before the first output and after the last one
	rows        int // of output
	sequences   int // chunks that are computed at once
}

// frames returns the number of frames of input of a chunk. Rows of output are step frames apart.
func (s shape) frames(step int) int { return s.left + (s.rows-1)*step + 1 + s.right }

// A batch is a sequence of chunks of an utterance that are computed at once.
type batch struct {
	shape
	first int // the first row of output
}

// A cutter cuts utterances into chunks.
type cutter struct {
	rows        int // of output of every chunk but the last
	left, right int // context
	initial     int // left context of the first chunk
	final       int // right context of the last chunk
	max         int // the largest number of chunks in a batch
}

// cut appends the chunks of an utterance with the given number of rows of output to dst, in order.
// The sizes of batches are the largest possible powers of two, so that few programs suffice for
// utterances of all lengths.
func (c *cutter) cut(rows int, dst []batch) []batch {
	for first := 0; first < rows; {
		s := c.at(first, rows)
		same := 1 // chunks of this shape from here on
		for same < c.max && first+same*s.rows < rows && c.at(first+same*s.rows, rows) == s {
			same++
		}
		s.sequences = 1
		for s.sequences*2 <= same {
			s.sequences *= 2
		}
		dst = append(dst, batch{shape: s, first: first})
		first += s.sequences * s.rows
	}
	return dst
}

// at returns the shape of the chunk that starts at row first, as a batch of its own.
func (c *cutter) at(first, rows int) shape {
	s := shape{left: c.left, right: c.right, rows: min(c.rows, rows-first), sequences: 1}
	if first == 0 {
		s.left = c.initial
	}
	if first+s.rows == rows {
		s.right = c.final
	}
	return s
}

// An outputScale is what happens to the output of the network.
type outputScale struct {
	scale  float32
	offset []float32 // added to the output before scaling: minus the logarithms of the priors, or nil
	exp    bool
}

func newOutputScale(priors []float32, scale float32, exp bool, cols int) (outputScale, error) {
	o := outputScale{scale: cmp.Or(scale, 1), exp: exp}
	if len(priors) == 0 {
		return o, nil
	}
	if len(priors) != cols {
		return o, fmt.Errorf("%w: %d priors for %d columns of output", ErrOptions, len(priors), cols)
	}
	o.offset = lists.Map(priors, func(p float32) float32 { return -float32(elementary.Log(float64(p))) })
	return o, nil
}

// finish copies the output y of a computation to out, unless it is there already, and applies priors,
// scale and exponential. Priors come before the scale, to round as in Kaldi.
func (o *outputScale) finish(out, y kernel.Matrix) {
	scale := o.scale
	if o.offset != nil {
		scale = 1
	}
	if &out.Data[0] == &y.Data[0] {
		kernel.Scale(out, scale)
	} else {
		kernel.CopyScaled(out, scale, y)
	}
	if o.offset != nil {
		kernel.AddRow(out, 1, o.offset)
		kernel.Scale(out, o.scale)
	}
	if !o.exp {
		return
	}
	for i := range out.Rows {
		row := kernel.Row(out, i)
		kernel.ExpVec(row, row, 0)
	}
}
