package pipeline

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/internal/fileio"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Chunk describes a request in the terms of decoding. The names are those of Kaldi's options.
type Chunk struct {
	// Frames is the number of frames of the output, a multiple of Subsampling. 0 means 150.
	Frames int
	// Subsampling is the number of frames per row of output. 0 means 1.
	Subsampling int
	// ExtraLeft and ExtraRight are frames of input beyond those that the network needs.
	ExtraLeft, ExtraRight int
	// Sequences is the number of chunks in the request. 0 means 1.
	Sequences int
	// Outputs are names of output nodes, or "all". None means the node "output", or the only one.
	Outputs []string
	// Derivative asks for the gradient of the parameters. Every output then has a derivative.
	Derivative bool
}

// maxFrames bounds the frames of all sequences together.
const maxFrames = 1 << 24

// NewRequest returns the request for a chunk: the outputs at times 0, Subsampling, ..., and every
// input node at all times that they need. An input called "ivector" has time 0 only, as in decoding
// with one i-vector per chunk.
func NewRequest(nn *nnet3.Nnet, c Chunk) (*computation.Request, error) {
	if c.Frames == 0 {
		c.Frames = 150
	}
	c.Subsampling, c.Sequences = max(c.Subsampling, 1), max(c.Sequences, 1)
	// Each number is bounded by itself before they are added and multiplied, which could overflow.
	if c.Frames < 0 || c.ExtraLeft < 0 || c.ExtraRight < 0 || max(c.Frames, c.ExtraLeft, c.ExtraRight, c.Sequences) > maxFrames ||
		int64(c.Frames+c.ExtraLeft+c.ExtraRight)*int64(c.Sequences) > maxFrames {
		return nil, fmt.Errorf("%w: %d sequences of %d frames with %d and %d more; none may be negative, and there may be %d frames in all",
			computation.ErrRequest, c.Sequences, c.Frames, c.ExtraLeft, c.ExtraRight, maxFrames)
	}
	var err error
	if c.Outputs, err = chooseOutputs(nn, c.Outputs); err != nil {
		return nil, err
	}
	left, right, err := compile.Context(nn, c.Outputs...)
	if err != nil {
		return nil, err
	}
	return c.request(nn, -left-c.ExtraLeft, c.Frames+right+c.ExtraRight), nil
}

// request returns the request with inputs at the times [first, end).
func (c Chunk) request(nn *nnet3.Nnet, first, end int) *computation.Request {
	req := &computation.Request{NeedModelDerivative: c.Derivative}
	for i := range nn.Nodes {
		switch name := nn.Nodes[i].Name; {
		case !nn.IsInputNode(i):
		case name == "ivector":
			req.Inputs = append(req.Inputs, Grid(name, c.Sequences, 0, 1, 1))
		default:
			req.Inputs = append(req.Inputs, Grid(name, c.Sequences, first, end, 1))
		}
	}
	for _, name := range c.Outputs {
		spec := Grid(name, c.Sequences, 0, c.Frames, c.Subsampling)
		spec.HasDeriv = c.Derivative
		req.Outputs = append(req.Outputs, spec)
	}
	return req
}

// Grid returns the specification of a node for some sequences at the times first, first+step, ...
// before end, ordered by sequence, then time.
func Grid(name string, sequences, first, end, step int) computation.IoSpecification {
	rows := make([]index.Index, 0, sequences*max((end-first+step-1)/step, 0))
	for n := range sequences {
		for t := first; t < end; t += step {
			rows = append(rows, index.Index{N: int32(n), T: int32(t)})
		}
	}
	return computation.IoSpecification{Name: name, Indexes: rows}
}

// chooseOutputs checks the names of outputs, or chooses one if there are none. ["all"] means all of
// them.
func chooseOutputs(nn *nnet3.Nnet, names []string) ([]string, error) {
	var all []string
	for i := range nn.Nodes {
		if nn.IsOutputNode(i) {
			all = append(all, nn.Nodes[i].Name)
		}
	}
	if len(names) == 0 {
		if slices.Contains(all, "output") {
			return []string{"output"}, nil
		}
		if len(all) == 1 {
			return all, nil
		}
		return nil, fmt.Errorf("%w: which output? The network has %s", computation.ErrRequest, fileio.Excerpt(fmt.Sprintf("%q", all), 0))
	}
	if slices.Equal(names, []string{"all"}) {
		return all, nil
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%w: the network has no output %q, only %s", computation.ErrRequest, fileio.Excerpt(name, 0), fileio.Excerpt(fmt.Sprintf("%q", all), 0))
		}
	}
	return names, nil
}
