package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/nnet3/compile"
	"github.com/nnopt/nnopt/nnet3/computation"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
)

// A Loop is a network over endless input, as a computation for each chunk. What a chunk needs of
// those before it comes in through nodes and leaves through nodes, so it can be kept while other
// sequences are computed, and chunks of different sequences can be computed together.
type Loop struct {
	// Net is the network with a node for everything that is carried from chunk to chunk.
	Net *nnet3.Nnet
	// Chunks has the computations for the first chunks. The last one is followed by Start.
	Chunks []LoopChunk
	Start  int
}

// A LoopChunk is the computation for a chunk.
type LoopChunk struct {
	Computation *computation.Computation // nil in a loop of divideLoop
	program     *lower.Program           // the values of the computation; nil in a loop of BuildLoop
	Request     *computation.Request     // without what is carried; times are those of an early chunk
	Taken       []LoopCarry              // what it needs of earlier chunks
	Given       []string                 // by number in Taken of the next chunk: the output for it
}

// A LoopCarry is a matrix that is carried from one chunk to the next.
type LoopCarry struct {
	Node string         // the input
	Rows []index.Cindex // the meaning of its rows; times are those of an early chunk
	Cols int
}

// BuildLoop compiles a loop for the requests of the first three chunks, see compile.Looped, and
// optimizes each computation by itself. opt may be nil.
func BuildLoop(ctx context.Context, nn *nnet3.Nnet, requests [3]*computation.Request, opt *optdb.Optimizer) (*Loop, error) {
	l, err := divideLoop(nn, requests)
	if err != nil {
		return nil, err
	}
	for k := range l.Chunks {
		chunk := &l.Chunks[k]
		if chunk.Computation, err = emit(ctx, chunk.program, opt); err != nil {
			return nil, fmt.Errorf("chunk %d: %w", k+1, err)
		}
		chunk.program = nil
	}
	return l, nil
}

// divideLoop compiles a loop for the requests of the first three chunks, see compile.Looped, as a
// program of values for each chunk.
func divideLoop(nn *nnet3.Nnet, requests [3]*computation.Request) (*Loop, error) {
	c, err := compile.Looped(nn, requests, compile.Options{DebugInfo: true})
	if err != nil {
		return nil, err
	}
	// A chunk ends where the caller takes its output and hands in new input, so that is where the loop has to
	// turn.
	c = startAtMarker(c)
	chain, err := lower.LowerChain(c, nn)
	if err != nil {
		return nil, err
	}
	if chain.Loop < 1 {
		return nil, errors.New("the computation has no chunk before its loop")
	}
	// The carrier adds nodes. They go into a list of its own, since others use the network.
	l := &Loop{Net: &nnet3.Nnet{Nodes: slices.Clone(nn.Nodes), Components: nn.Components, ComponentNames: nn.ComponentNames}}
	taken, err := chain.Divide(l.carrier(c))
	if err != nil {
		return nil, err
	}
	steady := steadyState{c: c, taken: taken, loop: chain.Loop, chunk: requests[2].Outputs[0].Indexes[0].T - requests[1].Outputs[0].Indexes[0].T}
	l.Start = steady.first()
	order := steady.order(l.Start)
	for k, p := range chain.Programs {
		if k >= l.Start && k < chain.Loop {
			continue // the loop does the same
		}
		chunk := LoopChunk{program: p, Request: requests[min(k, len(requests)-1)]}
		for _, t := range taken[k] {
			carry := LoopCarry{Node: carryName(t.Matrix), Cols: int(t.Cols)}
			for _, r := range t.Rows {
				carry.Rows = append(carry.Rows, c.MatrixDebugInfo[t.Matrix].Cindexes[r])
			}
			chunk.Taken = append(chunk.Taken, carry)
		}
		next := k + 1
		if next == len(chain.Programs) {
			next = chain.Loop
		}
		for _, t := range taken[next] {
			chunk.Given = append(chunk.Given, carryName(t.Matrix))
		}
		// The chunk that would follow was left out for the first one of the loop, which takes the same rows,
		// but in an order of its own.
		if next == l.Start && next != chain.Loop {
			given := chunk.Given
			chunk.Given = make([]string, len(given))
			for i, n := range order {
				chunk.Given[i] = given[n]
			}
		}
		l.Chunks = append(l.Chunks, chunk)
	}
	return l, nil
}

// emit optimizes a program and turns it into commands.
func emit(ctx context.Context, p *lower.Program, opt *optdb.Optimizer) (*computation.Computation, error) {
	if opt != nil {
		if err := opt.Rewrite(ctx, p.Graph, nil); err != nil {
			return nil, err
		}
	}
	if _, ok := lower.StorageOf(p.Graph); !ok {
		if _, err := lower.PlanStorage(p); err != nil {
			return nil, err
		}
	}
	return lower.Emit(p)
}

// carryName is the name of the node for a matrix. No node of a model is called that.
func carryName(matrix int32) string { return fmt.Sprintf("carried/%d", matrix) }

// carrier returns a function that adds a node for a matrix to the network.
func (l *Loop) carrier(c *computation.Computation) func(matrix int32) int32 {
	nodes := make(map[int32]int32)
	return func(matrix int32) int32 {
		n, ok := nodes[matrix]
		if !ok {
			n = int32(len(l.Net.Nodes))
			nodes[matrix] = n
			l.Net.Nodes = append(l.Net.Nodes, nnet3.Node{Kind: nnet3.InputNode, Name: carryName(matrix), Dim: int(c.Matrices[matrix].Cols)})
		}
		return n
	}
}

// startAtMarker returns the computation with a loop that begins right after a marker. As compiled,
// a loop begins where the input of a chunk has been accepted.
func startAtMarker(c *computation.Computation) *computation.Computation {
	last := len(c.Commands) - 1
	if last < 0 || c.Commands[last].Type != computation.GotoLabel {
		return c
	}
	label := int(c.Commands[last].Target())
	marker := last
	for c.Commands[marker].Type != computation.NoOperationMarker {
		if marker--; marker <= label {
			return c // no chunk ends in the loop
		}
	}
	turned := *c
	// What stands between label and marker now runs once before the loop and again at its end, so the sequence
	// of commands stays the same. The label moves to the place of the marker.
	turned.Commands = slices.Concat(c.Commands[:label], c.Commands[label+1:marker+1], c.Commands[label:label+1],
		c.Commands[marker+1:last], c.Commands[label+1:marker+1], c.Commands[last:])
	turned.Commands[len(turned.Commands)-1] = computation.NewCommand(computation.GotoLabel, int32(marker))
	return &turned
}

// steadyState finds the chunk from which on all take the same from the one before. As compiled a
// loop begins later, because whole matrices are compared, and not what is read of them.
type steadyState struct {
	c     *computation.Computation
	taken [][]lower.Carry // by program
	loop  int
	chunk int32 // frames
}

// first returns the first chunk that takes what the first one in the loop does.
func (s *steadyState) first() int {
	first := s.loop
	for first > 1 && s.order(first-1) != nil {
		first--
	}
	return first
}

// order returns, for everything that the loop takes over, its number in what chunk k takes over, or
// nil if they are different.
func (s *steadyState) order(k int) []int {
	loop, other := s.taken[s.loop], s.taken[k]
	if len(loop) != len(other) {
		return nil
	}
	order := make([]int, len(loop))
	used := make([]bool, len(other))
	for i := range loop {
		n := slices.IndexFunc(other, func(o lower.Carry) bool {
			// What is carried moves on with the chunks, or stays where it is, like an i-vector.
			return s.same(&o, &loop[i], int32(s.loop-k)*s.chunk) || s.same(&o, &loop[i], 0)
		})
		if n < 0 || used[n] {
			return nil
		}
		order[i], used[n] = n, true
	}
	return order
}

// same reports whether the rows of b are those of a, later.
func (s *steadyState) same(a, b *lower.Carry, later int32) bool {
	x, y := s.c.MatrixDebugInfo[a.Matrix], s.c.MatrixDebugInfo[b.Matrix]
	if a.Cols != b.Cols || x.IsDeriv != y.IsDeriv || len(a.Rows) != len(b.Rows) {
		return false
	}
	for i := range a.Rows {
		r := x.Cindexes[a.Rows[i]]
		if r.Index.T += later; r != y.Cindexes[b.Rows[i]] {
			return false
		}
	}
	return true
}

// BySequence returns, for each of n sequences, the numbers of the rows that belong to it, in the
// order of x and time. The sequences must have the same rows.
func (c *LoopCarry) BySequence(n int) ([][]int32, error) {
	rows := make([][]int32, n)
	for r, ix := range c.Rows {
		if ix.Index.N < 0 || int(ix.Index.N) >= n {
			return nil, fmt.Errorf("pipeline: %s: row %d belongs to sequence %d of %d", c.Node, r, ix.Index.N, n)
		}
		rows[ix.Index.N] = append(rows[ix.Index.N], int32(r))
	}
	for s := range rows {
		slices.SortStableFunc(rows[s], func(a, b int32) int {
			x, y := c.Rows[a].Index, c.Rows[b].Index
			return cmp.Or(cmp.Compare(x.X, y.X), cmp.Compare(x.T, y.T))
		})
		if !slices.EqualFunc(rows[s], rows[0], func(a, b int32) bool {
			x, y := c.Rows[a].Index, c.Rows[b].Index
			return x.X == y.X && x.T == y.T
		}) {
			return nil, fmt.Errorf("pipeline: %s: sequences 0 and %d have different rows", c.Node, s)
		}
	}
	return rows, nil
}
