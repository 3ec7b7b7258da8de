package rewrite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
)

// A Failure is a failed pass with everything needed to repeat the failure. See
// [Options.Reproduce].
type Failure struct {
	Query string // the query that built the optimizer, see [Options.Query]
	Pass  string
	Rule  string // empty if it was not a node rewriter
	Node  string // the apply that the rule was shown
	Err   error
	// Graph is a copy of the graph before the pass, without features. It is nil if the graph
	// was too damaged for a copy.
	Graph *fgraph.FunctionGraph
}

// String returns the failure as text with one line for each field. Further lines of a field
// start with a tab.
func (f Failure) String() string {
	var b strings.Builder
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "%-8s%s\n", name+":", strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n\t"))
		}
	}
	line("pass", f.Pass)
	line("rule", f.Rule)
	line("node", f.Node)
	if cause := f.cause(); cause != nil {
		line("error", cause.Error())
	}
	line("query", f.Query)
	if f.Graph != nil {
		line("inputs", inputsOf(f.Graph))
		line("graph", f.Graph.String())
	}
	if p := (*PanicError)(nil); errors.As(f.Err, &p) {
		line("stack", string(p.Stack))
	}
	return b.String()
}

// cause returns the error without the location, which has lines of its own.
func (f Failure) cause() error {
	if e := (*Error)(nil); errors.As(f.Err, &e) && e.Pass == f.Pass && e.Rule == f.Rule {
		return e.Err
	}
	return f.Err
}

// inputsOf lists the inputs of a graph with their types.
func inputsOf(g *fgraph.FunctionGraph) string {
	var b strings.Builder
	for i, v := range g.Inputs() {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%v: %v", v, v.Type())
	}
	return b.String()
}

type snapshotKey struct{}

// withSnapshot returns a context with a copy of the graph, if Options.Reproduce is set and there is
// no copy yet.
func withSnapshot(ctx context.Context, g *fgraph.FunctionGraph) context.Context {
	if optionsFrom(ctx).Reproduce == nil || ctx.Value(snapshotKey{}) != nil {
		return ctx
	}
	return context.WithValue(ctx, snapshotKey{}, snapshot(g))
}

// snapshot returns a copy of a graph, or nil if an earlier pass has damaged it.
func snapshot(g *fgraph.FunctionGraph) (copied *fgraph.FunctionGraph) {
	defer func() {
		if recover() != nil {
			copied = nil
		}
	}()
	copied, _ = g.Clone()
	return copied
}

// withoutSnapshot removes the snapshot, so that each member of a sequence takes its own.
func withoutSnapshot(ctx context.Context) context.Context {
	if ctx.Value(snapshotKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, snapshotKey{}, nil)
}

// reproduce passes a failure to Options.Reproduce, once.
func reproduce(ctx context.Context, err *Error) {
	o := optionsFrom(ctx)
	if o.Reproduce == nil || err.reproduced || ctx.Err() != nil {
		return
	}
	err.reproduced = true
	f := Failure{Query: o.Query, Pass: err.Pass, Rule: err.Rule, Node: err.Node, Err: err}
	f.Graph, _ = ctx.Value(snapshotKey{}).(*fgraph.FunctionGraph)
	o.Reproduce(f)
}
