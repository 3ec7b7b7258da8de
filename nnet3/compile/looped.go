package compile

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// LoopedConfig says how to run a simple network over endless input, chunk after chunk.
type LoopedConfig struct {
	// FramesPerChunk is the number of input frames of a chunk; see ChunkSize.
	FramesPerChunk int
	// FrameSubsampling is the distance in frames between outputs; 0 means 1.
	FrameSubsampling int
	// IvectorPeriod is the number of frames per i-vector; 0 means FramesPerChunk.
	IvectorPeriod int
	// LeftContext counts frames before the first chunk, RightContext those after each chunk.
	LeftContext, RightContext int
	// Sequences is the number of sequences to run side by side; 0 means 1.
	Sequences int
}

// ChunkSize returns the smallest chunk of at least advised frames for looping a network: a multiple
// of its modulus and of the subsampling factor.
func ChunkSize(nn *nnet3.Nnet, subsampling, advised int) int {
	m := descriptor.LCM(nn.Modulus(), max(subsampling, 1))
	return max((advised+m-1)/m, 1) * m
}

// WithIvectorPeriod returns a network that takes a new i-vector every period frames, where nn takes
// the one at time 0 for all frames: in the inputs of components, ReplaceIndex(ivector, t, 0)
// becomes Round(ivector, period). The network shares the components of nn. It may be nn itself.
func WithIvectorPeriod(nn *nnet3.Nnet, period int) (*nnet3.Nnet, error) {
	if period <= 0 {
		return nil, fmt.Errorf("%w: an i-vector period of %d frames", errBadRequest, period)
	}
	changed := false
	replace := func(f descriptor.Forward) descriptor.Forward {
		if f.Kind == descriptor.ReplaceT && f.Value == 0 {
			changed = true
			return descriptor.Forward{Kind: descriptor.Round, Modulus: int32(period), Src: f.Src}
		}
		return f
	}
	other := &nnet3.Nnet{Nodes: slices.Clone(nn.Nodes), Components: nn.Components, ComponentNames: nn.ComponentNames}
	for i := range other.Nodes {
		if nn.IsComponentInputNode(i) {
			other.Nodes[i].Descriptor = other.Nodes[i].Descriptor.Map(replace)
		}
	}
	if !changed {
		return nn, nil
	}
	return other, nil
}

// maxLoopedFrames bounds the frames of all sequences in a chunk, including context.
const maxLoopedFrames = 1 << 24

// LoopedRequests returns the requests for the first three chunks. The first has the left context,
// the others have only new frames. If the network has i-vectors, each has the new ones, at
// multiples of the period. Rows are ordered by sequence, then time.
func LoopedRequests(nn *nnet3.Nnet, cfg LoopedConfig) ([3]*computation.Request, error) {
	var requests [3]*computation.Request
	step, sequences := max(cfg.FrameSubsampling, 1), max(cfg.Sequences, 1)
	chunk := cfg.FramesPerChunk
	period := cfg.IvectorPeriod
	if period == 0 {
		period = chunk
	}
	if err := CheckSimple(nn); err != nil {
		return requests, err
	}
	if chunk <= 0 || chunk%step != 0 || period < 0 || cfg.LeftContext < 0 || cfg.RightContext < 0 {
		return requests, fmt.Errorf("%w: chunks of %d frames with every %d. wanted, i-vectors every %d, context %d and %d",
			errBadRequest, chunk, step, period, cfg.LeftContext, cfg.RightContext)
	}
	if frames := cfg.LeftContext + chunk + cfg.RightContext; max(frames, sequences, chunk, cfg.LeftContext, cfg.RightContext) > maxLoopedFrames || frames*sequences > maxLoopedFrames {
		return requests, fmt.Errorf("%w: %d sequences of %d frames; at most %d frames in all can go into a chunk", errBadRequest, sequences, frames, maxLoopedFrames)
	}
	hasIvector := nn.NodeIndex(ivectorName) >= 0
	spec := func(name string, times []int) computation.IoSpecification {
		s := computation.IoSpecification{Name: name, Indexes: make([]index.Index, 0, sequences*len(times))}
		for n := range sequences {
			for _, t := range times {
				s.Indexes = append(s.Indexes, index.Index{N: int32(n), T: int32(t)})
			}
		}
		return s
	}
	begin, lastIvector := -cfg.LeftContext, 0
	for i := range requests {
		end := (i+1)*chunk + cfg.RightContext
		var frames, outputs, ivectors []int
		for t := begin; t < end; t++ {
			frames = append(frames, t)
			// An i-vector comes with the first frame that it is for.
			if at := roundDown(t, period); i == 0 && t == begin || at > lastIvector {
				ivectors, lastIvector = append(ivectors, at), at
			}
		}
		for t := i * chunk; t < (i+1)*chunk; t += step {
			outputs = append(outputs, t)
		}
		requests[i] = &computation.Request{
			Inputs:  []computation.IoSpecification{spec(inputName, frames)},
			Outputs: []computation.IoSpecification{spec(outputName, outputs)},
		}
		if hasIvector && len(ivectors) > 0 {
			requests[i].Inputs = append(requests[i].Inputs, spec(ivectorName, ivectors))
		}
		begin = end
	}
	return requests, nil
}

// roundDown returns the largest multiple of m that is at most t.
func roundDown(t, m int) int { return t - ((t%m)+m)%m }

// maxSegments bounds the segments in which Looped searches for a loop.
const maxSegments = 400

// Looped compiles a computation that serves the first request, then the second, then the third, and
// so on forever. Each further request is the previous one moved in time as the third is from the
// second. The commands end in a jump, so that a computer takes inputs and provides outputs without
// end. Matrices are allocated before their first use and freed after their last one. A pass
// exchanges the matrices that it leaves to the next pass with those that it found (SwapMatrix).
//
// Errors are those of Compile. ErrUnbounded also means that a node depends on itself at later times,
// as in a bidirectional LSTM, or that passes did not become alike, for example because the network
// looks at a growing past.
func Looped(nn *nnet3.Nnet, requests [3]*computation.Request, opts Options) (*computation.Computation, error) {
	shift, err := shiftBetween(requests[1], requests[2])
	if err != nil {
		return nil, err
	}
	net, err := newNetwork(nn)
	if err != nil {
		return nil, err
	}
	if err := net.checkFuture(requests[0]); err != nil {
		return nil, err
	}
	opts.DebugInfo = true // to identify matrices
	// What is in use at a segment shows only in later segments, up to the horizon. So at least that
	// many are compiled behind the last one that can be compared, and twice as many in the next
	// try.
	horizon, farthest := net.horizon(requests[0], int(shift))
	if 2*horizon+4 > maxSegments {
		return nil, fmt.Errorf("%w: rows are used up to %d chunks of %d frames later (those of node %q depend on others that are %d frames away; times count modulo %d); use longer chunks",
			ErrUnbounded, horizon, shift, net.name(farthest), net.nodes[farthest].reach(), nn.Modulus())
	}
	segmentCount := 2*horizon + 4
	for ; segmentCount <= maxSegments; segmentCount *= 2 {
		segments := []*computation.Request{requests[0], requests[1], requests[2]}
		for len(segments) < segmentCount {
			segments = append(segments, shifted(segments[len(segments)-1], shift))
		}
		c, err := net.compile(context.Background(), segments, opts)
		if err != nil {
			return nil, err
		}
		if closeLoop(c, shift, horizon) {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%w: after %d chunks of %d frames, chunks still pass on different matrices", ErrUnbounded, segmentCount/2, shift)
}

// horizon bounds for how many segments after its own a row may be used, except for rows at fixed
// times. A row is computed at most the right context before its time, and used directly by rows
// that are at most reach frames away. horizon also returns the node whose rows look farthest.
func (net *network) horizon(first *computation.Request, chunk int) (segments int, farthest int32) {
	reach := 0
	for i := range net.nodes {
		if r := net.nodes[i].reach(); r > reach {
			reach, farthest = r, int32(i)
		}
	}
	end := func(specs []computation.IoSpecification) (t int) {
		for i := range specs {
			for k, ix := range specs[i].Indexes {
				if i == 0 && k == 0 || int(ix.T) > t {
					t = int(ix.T)
				}
			}
		}
		return t
	}
	right := max(end(first.Inputs)-end(first.Outputs), 0)
	return (reach+right+net.nn.Modulus()+chunk-1)/chunk + 2, farthest
}

// reach returns the largest difference between the time of a row and the times of its dependencies,
// as far as it does not depend on the time itself.
func (n *node) reach() int {
	most := 0
	switch n.kind {
	case generalNode:
		for _, ix := range n.general.InputIndexes(index.Index{}, nil) {
			most = max(most, abs(int(ix.T)))
		}
	case outputNode, hiddenNode:
		for i := range n.terms.leaves {
			most = max(most, forwardReach(n.terms.leaves[i].forward))
		}
	}
	return most
}

func abs(x int) int { return max(x, -x) }

// forwardReach adds up the offsets and moduli on the way to a node. A fixed time has no reach.
func forwardReach(f *descriptor.Forward) int {
	type place struct {
		f     *descriptor.Forward
		reach int
	}
	most := 0
	stack := []place{{f, 0}}
	for len(stack) > 0 {
		p := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		switch p.f.Kind {
		case descriptor.Node:
			most = max(most, p.reach)
		case descriptor.Offset:
			p.reach += abs(int(p.f.Shift.T))
		case descriptor.Round:
			p.reach += int(p.f.Modulus)
		case descriptor.ReplaceT:
			continue
		}
		for i := range p.f.Src {
			stack = append(stack, place{&p.f.Src[i], p.reach})
		}
	}
	return most
}

// shiftBetween returns the distance in time between two requests that are otherwise the same.
func shiftBetween(a, b *computation.Request) (int32, error) {
	if a == nil || b == nil || len(a.Outputs) == 0 || len(b.Outputs) == 0 || len(a.Outputs[0].Indexes) == 0 || len(b.Outputs[0].Indexes) == 0 {
		return 0, fmt.Errorf("%w: a loop needs requests with outputs", errBadRequest)
	}
	shift := b.Outputs[0].Indexes[0].T - a.Outputs[0].Indexes[0].T
	if shift <= 0 || !b.Equal(shifted(a, shift)) {
		return 0, fmt.Errorf("%w: in a loop the third request must be the second one at a later time", errBadRequest)
	}
	return shift, nil
}

// shifted returns a request moved in time.
func shifted(req *computation.Request, shift int32) *computation.Request {
	move := func(specs []computation.IoSpecification) []computation.IoSpecification {
		moved := make([]computation.IoSpecification, len(specs))
		for i, s := range specs {
			moved[i] = computation.IoSpecification{Name: s.Name, HasDeriv: s.HasDeriv, Indexes: slices.Clone(s.Indexes)}
			for k := range moved[i].Indexes {
				moved[i].Indexes[k] = moved[i].Indexes[k].Add(index.Index{T: shift})
			}
		}
		return moved
	}
	return &computation.Request{Inputs: move(req.Inputs), Outputs: move(req.Outputs),
		NeedModelDerivative: req.NeedModelDerivative, StoreComponentStats: req.StoreComponentStats}
}
