package compile

import (
	"fmt"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
)

// The names of the nodes of a simple network.
const (
	inputName   = "input"
	ivectorName = "ivector"
	outputName  = "output"
)

// IsSimple returns nil for a network whose inputs are an input-node "input" and perhaps an input-node "ivector", and which
// has an output-node "output", and otherwise an error that says why it is none. Decoders work with such networks.
func IsSimple(nn *nnet3.Nnet) error {
	if i := nn.NodeIndex(outputName); i < 0 || !nn.IsOutputNode(i) {
		return fmt.Errorf("%w: it has no output-node %q", ErrNetwork, outputName)
	}
	if i := nn.NodeIndex(inputName); i < 0 || !nn.IsInputNode(i) {
		return fmt.Errorf("%w: it has no input-node %q", ErrNetwork, inputName)
	}
	for i := range nn.Nodes {
		if name := nn.Nodes[i].Name; nn.IsInputNode(i) && name != inputName && name != ivectorName {
			return fmt.Errorf("%w: it has an input-node %q", ErrNetwork, name)
		}
	}
	return nil
}

// The number of input frames that Context tries, first and at most.
const (
	firstWindow = 40
	lastWindow  = 5120
)

// contextEdges bounds the dependencies that Context follows. Rows that need as many as lastWindow others, all of them, are far below.
const contextEdges = 1 << 26

// SimpleContext returns the context (see Context) of the output of a simple network.
func SimpleContext(nn *nnet3.Nnet) (left, right int, err error) {
	if err := IsSimple(nn); err != nil {
		return 0, 0, err
	}
	return Context(nn, []string{outputName})
}

// Context returns how many frames before and after the time of an output a network needs of its inputs, so that all the
// named outputs can be computed: the most over all times modulo nn.Modulus. Frames that it can do without, as those of
// recurrence, don't count, nor do those of an input "ivector". The error wraps ErrNotComputable if no context suffices.
func Context(nn *nnet3.Nnet, outputs []string) (left, right int, err error) {
	net, err := newNetwork(nn)
	if err != nil {
		return 0, 0, err
	}
	modulus := nn.Modulus()
	for window := firstWindow; window <= lastWindow; window *= 2 {
		left, right = 0, 0
		ok := modulus <= lastWindow
		for start := 0; ok && start < modulus; start++ {
			var l, r int
			if l, r, ok, err = net.contextOf(outputs, start, window, modulus); err != nil {
				return 0, 0, err
			}
			left, right = max(left, l), max(right, r)
		}
		if ok {
			return left, right, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: outputs %q are not computable from %d frames of input at all times modulo %d", ErrNotComputable, outputs, lastWindow, modulus)
}

// contextOf finds out at which times the outputs are computable from window frames of input from start on. It reports false
// if they are too few to tell.
func (net *network) contextOf(outputs []string, start, window, modulus int) (left, right int, ok bool, err error) {
	frames := func(first, last int) []index.Index {
		list := make([]index.Index, 0, last-first)
		for t := first; t < last; t++ {
			list = append(list, index.Index{T: int32(t)})
		}
		return list
	}
	req := &computation.Request{}
	given := frames(start, start+window)
	for i := range net.nodes {
		if net.nodes[i].kind != inputNode {
			continue
		}
		spec := computation.IoSpecification{Name: net.name(int32(i)), Indexes: given}
		if spec.Name == ivectorName {
			// Nearly always only the one at time 0 is needed, or those at multiples of a period.
			spec.Indexes = frames(min(start-min(modulus, window), 0), start+window)
		}
		req.Inputs = append(req.Inputs, spec)
	}
	for _, name := range outputs {
		req.Outputs = append(req.Outputs, computation.IoSpecification{Name: name, Indexes: given})
	}
	computable, err := net.computable(req)
	if err != nil {
		return 0, 0, false, err
	}
	// What counts is the longest run: a network that looks at even and odd times differently may also be able to compute
	// single outputs near the ends.
	end := 0
	for first := 0; first < window; first++ {
		last := first
		for last < window && computable[last] {
			last++
		}
		if last-first > end-left {
			left, end = first, last
		}
		first = last
	}
	return left, window - end, end-left >= min(modulus, window), nil
}

// computable reports for which rows all outputs of a request, which have equal rows, are computable.
func (net *network) computable(req *computation.Request) ([]bool, error) {
	if err := net.checkRequest(req); err != nil {
		return nil, err
	}
	b := newBuilder(net, Options{}, 1, 1<<10)
	b.maxEdges = contextEdges
	_, outputs, err := b.addSegment(req, lanes{0})
	if err != nil {
		return nil, err
	}
	if err := b.build(); err != nil {
		return nil, err
	}
	list := make([]bool, len(req.Outputs[0].Indexes))
	for i := range list {
		list[i] = true
		for k := range outputs {
			list[i] = list[i] && b.graph.vertices[outputs[k].rows.vertices[i]].status == computable
		}
	}
	return list, nil
}
