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
	// Inputs lists the inputs of the graph with their types, and Graph its outputs before
	// the pass, in the notation of [fgraph.FunctionGraph.String]. A front end for that
	// notation can read them back.
	Inputs, Graph string
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
	line("inputs", f.Inputs)
	line("graph", f.Graph)
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

// snapshot is a graph as text.
type snapshot struct{ inputs, graph string }

type snapshotKey struct{}

// withSnapshot returns a context with a snapshot of the graph, if Options.Reproduce is set and
// there is no snapshot yet.
func withSnapshot(ctx context.Context, g *fgraph.FunctionGraph) context.Context {
	if optionsFrom(ctx).Reproduce == nil || ctx.Value(snapshotKey{}) != nil {
		return ctx
	}
	var inputs strings.Builder
	for i, v := range g.Inputs() {
		if i > 0 {
			inputs.WriteString("; ")
		}
		fmt.Fprintf(&inputs, "%v: %v", v, v.Type())
	}
	return context.WithValue(ctx, snapshotKey{}, &snapshot{inputs.String(), g.String()})
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
	if s, ok := ctx.Value(snapshotKey{}).(*snapshot); ok {
		f.Inputs, f.Graph = s.inputs, s.graph
	}
	o.Reproduce(f)
}
