package pipeline

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// Chunk says what a request asks for in the terms of decoding. The names are those of Kaldi's options.
type Chunk struct {
	// Frames is the number of frames that the output stands for; a multiple of Subsampling. 0 means 150.
	Frames int
	// Subsampling is the number of frames per row of output; 0 means 1.
	Subsampling int
	// ExtraLeft and ExtraRight are frames of input beyond those that the network needs.
	ExtraLeft, ExtraRight int
	// Sequences is how many chunks are computed at once; 0 means 1.
	Sequences int
	// Outputs are the names of the nodes that are wanted. None means the node "output", or the only one.
	Outputs []string
	// Derivative asks for the gradient of the parameters; every output then comes with a derivative.
	Derivative bool
}

// maxFrames bounds the frames of all sequences together.
const maxFrames = 1 << 24

// NewRequest returns the request for a chunk: the outputs at times 0, Subsampling, ..., and every input-node at all the times
// that they need, but an input called "ivector" at time 0 only, as in decoding with one i-vector for a chunk.
func NewRequest(nn *nnet3.Nnet, c Chunk) (*computation.Request, error) {
	if c.Frames == 0 {
		c.Frames = 150
	}
	c.Subsampling, c.Sequences = max(c.Subsampling, 1), max(c.Sequences, 1)
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

// request makes the request with inputs at the times [first, end).
func (c Chunk) request(nn *nnet3.Nnet, first, end int) *computation.Request {
	req := &computation.Request{NeedModelDerivative: c.Derivative}
	for i := range nn.Nodes {
		if !nn.IsInputNode(i) {
			continue
		}
		spec := computation.IoSpecification{Name: nn.Nodes[i].Name}
		if spec.Name == "ivector" {
			spec.Indexes = grid(c.Sequences, 0, 1, 1)
		} else {
			spec.Indexes = grid(c.Sequences, first, end, 1)
		}
		req.Inputs = append(req.Inputs, spec)
	}
	for _, name := range c.Outputs {
		req.Outputs = append(req.Outputs, computation.IoSpecification{
			Name: name, Indexes: grid(c.Sequences, 0, c.Frames, c.Subsampling), HasDeriv: c.Derivative,
		})
	}
	return req
}

func grid(sequences, first, end, step int) []index.Index {
	var rows []index.Index
	for n := range sequences {
		for t := first; t < end; t += step {
			rows = append(rows, index.Index{N: int32(n), T: int32(t)})
		}
	}
	return rows
}

// chooseOutputs checks the names of outputs, or chooses one where there are none. ["all"] stands for all of them.
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
		return nil, fmt.Errorf("%w: which output is wanted? There are %q", computation.ErrRequest, all)
	}
	if slices.Equal(names, []string{"all"}) {
		return all, nil
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("%w: the network has no output %q, but %q", computation.ErrRequest, name, all)
		}
	}
	return names, nil
}
