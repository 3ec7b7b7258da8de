package decodable

import (
	"cmp"
	"fmt"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/descriptor"
)

// The nodes of a simple network.
const (
	inputNode   = "input"
	ivectorNode = "ivector"
	outputNode  = "output"
)

// A Scorer scores utterances with a network. It is safe for concurrent use.
type Scorer struct {
	nn       *nnet3.Nnet
	step     int // frames per row of output
	cutter   cutter
	period   int // frames per row of online i-vectors
	output   outputScale
	features int // columns of the input
	ivector  int // elements of an i-vector, 0 for a network without
	outputs  int // columns of the output
	programs programs
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
// The network may not be changed or used while the Scorer is in use. The error wraps ErrOptions, or
// one of compile.Context.
func New(nn *nnet3.Nnet, opts Options) (*Scorer, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	left, right, err := compile.Context(nn)
	if err != nil {
		return nil, err
	}
	nn.SetTestMode(true)
	for _, c := range nn.Components {
		Pack(c)
	}
	s := &Scorer{
		nn:       nn,
		step:     cmp.Or(opts.FrameSubsampling, 1),
		period:   opts.OnlineIvectorPeriod,
		features: nn.InputNodeDim(inputNode),
		ivector:  max(nn.InputNodeDim(ivectorNode), 0),
		outputs:  nn.OutputNodeDim(outputNode),
	}
	if s.output, err = newOutputScale(opts.Priors, opts.AcousticScale, opts.ApplyExp, s.outputs); err != nil {
		return nil, err
	}
	// Every chunk is computed as if it started at time 0, so its size must be a multiple of the
	// modulus.
	frames := compile.ChunkSize(nn, s.step, cmp.Or(opts.FramesPerChunk, 50))
	if frames > largestChunk {
		return nil, fmt.Errorf("%w: a chunk of %d frames, rounded up to a multiple of %d, has %d frames; at most %d are allowed",
			ErrOptions, opts.FramesPerChunk, descriptor.LCM(nn.Modulus(), s.step), frames, largestChunk)
	}
	s.cutter = cutter{rows: frames / s.step, left: left + opts.ExtraLeftContext, right: right + opts.ExtraRightContext, most: opts.MinibatchSize}
	s.cutter.initial, s.cutter.final = s.cutter.left, s.cutter.right
	if n := opts.ExtraLeftContextInitial; n != nil {
		s.cutter.initial = left + *n
	}
	if n := opts.ExtraRightContextFinal; n != nil {
		s.cutter.final = right + *n
	}
	if s.cutter.most == 0 {
		s.cutter.most = 1
		if isRecurrent(nn) {
			s.cutter.most = defaultMinibatch
		}
	}
	// The limit of a chunk holds for a batch, too.
	most := shape{left: max(s.cutter.left, s.cutter.initial), right: max(s.cutter.right, s.cutter.final), rows: s.cutter.rows}
	s.cutter.most = max(min(s.cutter.most, largestChunk/most.frames(s.step)), 1)
	s.programs = programs{s: s, opt: opts.Optimizer, capacity: cmp.Or(opts.CacheCapacity, 64+s.cutter.rows), entries: make(map[shape]*entry)}
	return s, nil
}

// FramesPerChunk returns the number of frames of the output of a chunk, after rounding.
func (s *Scorer) FramesPerChunk() int { return s.cutter.rows * s.step }

// IvectorDim returns the dimension of i-vectors, or 0 for a network without.
func (s *Scorer) IvectorDim() int { return s.ivector }

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
