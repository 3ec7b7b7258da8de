package compile

import (
	"context"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// limits bound the computation graph in proportion to the request.
type limits struct {
	rows, edges int
	steps       int // how often a dependency was looked at again
	wanted      int
	seen        []bool // by node, whether one of its rows was expanded
}

// Bounds on the rows and dependencies of a graph. A row takes some 130 bytes with its dependencies.
const (
	leastRows    = 1 << 19
	maxRows      = 1 << 27
	edgesPerRow  = 8
	maxEdges     = 1 << 28
	stepsPerEdge = 16
)

// newLimits returns the limits for a request with the given numbers of rows.
func newLimits(opts Options, given, wanted, nodes int) limits {
	l := limits{rows: opts.MaxCindexes, seen: make([]bool, nodes)}
	if l.rows <= 0 {
		// Rows that are computed are about as many in each node as are given or wanted, and context
		// adds to that. Four times as many is generous for any network that ends; only endless
		// dependencies come near it.
		l.rows, l.wanted = min(leastRows+4*(given+wanted)*nodes, maxRows), wanted
	}
	l.edges = min(edgesPerRow*l.rows, maxEdges)
	return l
}

// expanded records a row with the given number of dependencies.
func (l *limits) expanded(node int32, edges int) {
	if !l.seen[node] {
		l.seen[node] = true
		l.edges = min(l.edges+4*l.wanted*edges, maxEdges)
	}
}

// reached reports whether the graph has grown too large.
func (l *limits) reached(g *graph) bool {
	return len(g.vertices) > l.rows || len(g.deps) > l.edges || l.steps > stepsPerEdge*l.edges
}

// unbounded returns the error for a graph that is too large, with the node that has most rows.
func (b *builder) unbounded() error {
	counts, times := make([]int, len(b.net.nodes)), slices.Repeat([]span{never}, len(b.net.nodes))
	given, most := 0, int32(0)
	for i := range b.graph.vertices {
		v := &b.graph.vertices[i]
		if v.given {
			given++
			continue
		}
		counts[v.Node]++
		times[v.Node] = times[v.Node].or(span{int64(v.Index.T), int64(v.Index.T)})
		if counts[v.Node] > counts[most] {
			most = v.Node
		}
	}
	hint := ""
	switch {
	case b.net.epochs[b.net.nodes[most].epoch].recurrent:
		hint = "; the node depends on itself, and its recurrence must end at rows that are given or can't be computed"
	case b.limits.rows >= maxRows:
		hint = "; ask for fewer rows at once"
	}
	return fmt.Errorf("%w: more than %d rows with %d dependencies to look at, with %d rows given; most are of node %q: %d, t from %d to %d%s",
		ErrUnbounded, len(b.graph.vertices)-1, len(b.graph.deps)-1, given, b.net.name(most), counts[most], times[most].first, times[most].last, hint)
}

func countRows(specs []computation.IoSpecification) int {
	n := 0
	for i := range specs {
		n += len(specs[i].Indexes)
	}
	return n
}

// An interrupt tells the loops of a compilation that its context is done. The zero value has none.
type interrupt struct {
	ctx   context.Context
	calls uint
	err   error
}

// came reports whether to stop. It checks the context once in 256 calls, so it may be called for
// every row. Once true it stays true, and err is set, so a loop without an error result may just
// end.
func (i *interrupt) came() bool {
	if i.calls++; i.calls%256 == 1 && i.err == nil && i.ctx != nil && i.ctx.Err() != nil {
		i.err = fmt.Errorf("compiling: %w", context.Cause(i.ctx))
	}
	return i.err != nil
}
