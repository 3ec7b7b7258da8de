package compile

import (
	"fmt"
	"slices"
	"sort"

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

// CheckSimple returns nil for a simple network: its inputs are an input-node "input" and perhaps an
// input-node "ivector", and it has an output-node "output". Otherwise it says what is missing, in
// an error that wraps nnet3.ErrNetwork. Decoders work with simple networks.
func CheckSimple(nn *nnet3.Nnet) error {
	if i := nn.NodeIndex(outputName); i < 0 || !nn.IsOutputNode(i) {
		return fmt.Errorf("%w: it has no output-node %q", nnet3.ErrNetwork, outputName)
	}
	if i := nn.NodeIndex(inputName); i < 0 || !nn.IsInputNode(i) {
		return fmt.Errorf("%w: it has no input-node %q", nnet3.ErrNetwork, inputName)
	}
	for i := range nn.Nodes {
		if name := nn.Nodes[i].Name; nn.IsInputNode(i) && name != inputName && name != ivectorName {
			return fmt.Errorf("%w: it has an input-node %q", nnet3.ErrNetwork, name)
		}
	}
	return nil
}

// The number of input frames on each side of an output that Context tries at first and at most.
const (
	firstWindow = 40
	lastWindow  = 5120
)

// Bounds of the work to find the context: the rows of a graph, not counting 16 of each node, and
// the number of graphs of that size.
const (
	contextRows   = 1 << 18
	contextGraphs = 16
)

// Context returns how many input frames before and after the time of an output a network needs to
// compute all the named outputs: the maximum over all times modulo nn.Modulus. Without names it is
// the output of a simple network; see CheckSimple.
//
// Each side is counted with unlimited frames on the other. Frames that the network can do without,
// as in a recurrence, don't count, nor do those of an input "ivector". Statistics pooling needs
// only a single frame on either side, so a chunk of a few frames may need more than its context;
// see SmallestChunk.
//
// The error wraps ErrNotComputable if no context suffices, ErrUnbounded if the search takes too
// long.
func Context(nn *nnet3.Nnet, outputs ...string) (left, right int, err error) {
	p, err := newProber(nn, outputs)
	if err != nil {
		return 0, 0, err
	}
	return p.context()
}

// SmallestChunk returns the smallest number of consecutive times, wherever they start, for which
// the named outputs can be computed from the frames at these times and the context (see Context).
// It is 1 for nearly every network. Errors are those of Context.
func SmallestChunk(nn *nnet3.Nnet, outputs ...string) (int, error) {
	p, err := newProber(nn, outputs)
	if err != nil {
		return 0, err
	}
	frames, _, _, err := p.smallestChunk()
	return frames, err
}

// A prober finds out which frames suffice to compute outputs.
type prober struct {
	net     *network
	outputs []string
	nodes   []int32 // of the outputs
	modulus int
	bounds  bounds
	work    int // rows and dependencies of all graphs so far
	err     error
}

func newProber(nn *nnet3.Nnet, outputs []string) (*prober, error) {
	if len(outputs) == 0 {
		if err := CheckSimple(nn); err != nil {
			return nil, err
		}
		outputs = []string{outputName}
	}
	net, err := newNetwork(nn)
	if err != nil {
		return nil, err
	}
	return net.prober(outputs)
}

func (net *network) prober(outputs []string) (*prober, error) {
	p := &prober{net: net, outputs: outputs, modulus: net.nn.Modulus(), bounds: newBounds(net)}
	req := &computation.Request{}
	for _, name := range outputs {
		req.Outputs = append(req.Outputs, computation.IoSpecification{Name: name, Indexes: make([]index.Index, 1)})
		p.nodes = append(p.nodes, int32(net.nn.NodeIndex(name)))
	}
	return p, net.checkRequest(req)
}

// context is Context.
func (p *prober) context() (left, right int, err error) {
	if p.modulus > lastWindow {
		return 0, 0, fmt.Errorf("%w: the network treats times differently modulo %d; at most %d are tried", ErrNotComputable, p.modulus, lastWindow)
	}
	// Find a window that suffices at all, then shrink each side by bisection with the other one
	// wide. More frames never hurt, so bisection is right.
	window := firstWindow
	for t := 0; t < p.modulus; t++ {
		for !p.computable(t, 1, window, window) {
			if p.err != nil {
				return 0, 0, p.err
			}
			if window == lastWindow {
				return 0, 0, fmt.Errorf("%w: outputs %q are not computable from %d frames of input before and after, at time %d modulo %d",
					ErrNotComputable, p.outputs, lastWindow, t, p.modulus)
			}
			window = min(4*window, lastWindow)
		}
		left = least(left, window, func(n int) bool { return p.computable(t, 1, n, window) })
		right = least(right, window, func(n int) bool { return p.computable(t, 1, window, n) })
	}
	return left, right, p.err
}

// smallestChunk is SmallestChunk, with the context.
func (p *prober) smallestChunk() (frames, left, right int, err error) {
	if left, right, err = p.context(); err != nil {
		return 0, 0, 0, err
	}
	ok := func(frames int) bool {
		for t := range p.modulus {
			if !p.computable(t, frames, left, right) {
				return false
			}
		}
		return true
	}
	last := 1
	// Doubling first, because the answer is nearly always 1 or a small number, and graphs of long
	// chunks are expensive.
	for ; p.err == nil && !ok(last); last *= 2 {
		if last > lastWindow {
			return 0, 0, 0, fmt.Errorf("%w: outputs %q are not computable for %d frames with a context of %d and %d", ErrNotComputable, p.outputs, last, left, right)
		}
	}
	return least(last/2+1, last, ok), left, right, p.err
}

// least returns the least number from first to last for which ok holds. It holds for last, and for
// every number after one for which it holds.
func least(first, last int, ok func(int) bool) int {
	if first >= last || ok(first) {
		return first
	}
	first++
	return first + sort.Search(last-first, func(i int) bool { return ok(first + i) })
}

// computable reports whether all outputs are computable at a number of times from t on, with left
// frames of input before the first and right frames after the last.
func (p *prober) computable(t, times, left, right int) bool {
	rows := contextRows + 16*len(p.net.nodes)
	if work := p.work + p.bounds.looks; p.err == nil && work > contextGraphs*rows {
		p.err = fmt.Errorf("%w: it takes more than %d steps to find the context of outputs %q, which differs between times modulo %d", ErrUnbounded, work, p.outputs, p.modulus)
	}
	if p.err != nil {
		return false
	}
	b := newBuilder(p.net, 1, newLimits(Options{MaxCindexes: rows}, 0, 0, len(p.net.nodes)), 1<<10)
	// All frames between the bounds are given, without a vertex for each: only those that are asked
	// for become part of the graph.
	b.frames, b.bounds = true, p.bounds
	for i := range p.net.nodes {
		if p.net.nodes[i].kind == inputNode {
			given := span{int64(t - left), int64(t + times + right - 1)}
			if p.net.name(int32(i)) == ivectorName {
				// Usually only the i-vector at time 0 is needed, or those at multiples of a period.
				given.first = min(given.first-int64(p.modulus), 0)
			}
			b.bounds.given[i] = given
		}
	}
	b.bounds.find()
	p.bounds = b.bounds // to reuse its memory
	for _, node := range p.nodes {
		for i := range times {
			b.addOutput(node, index.Index{T: int32(t + i)})
		}
	}
	wanted := slices.Clone(b.queue)
	if p.err = b.build(); p.err != nil {
		return false
	}
	p.work += len(b.graph.vertices) + len(b.graph.deps)
	return !slices.ContainsFunc(wanted, func(v int32) bool { return b.graph.vertices[v].status != computable })
}
