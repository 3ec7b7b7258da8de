package repro

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
)

// ReduceOptions are options of Reduce. The zero value is the default.
type ReduceOptions struct {
	// Runs is the most runs of the optimizer, not counting those to find the place of a failure. 0
	// means 5,000.
	Runs int
	// Time ends the search for smaller cases. 0 means ten minutes.
	Time time.Duration
	// Progress, unless nil, is told about every step forward.
	Progress func(Progress)
}

// A Progress is a state of Reduce.
type Progress struct {
	Runs                     int
	Applies, Inputs, Outputs int
	query                    string
}

// Reduce returns a case that is as small as possible and fails in the same way as c: the same kind
// of failure, in the same pass and rule. It leaves out outputs and applies, makes inputs of what is
// computed, replaces applies by their operands, makes ops simpler and values smaller, and shortens
// the query. If a limit is reached, the result is the smallest case so far. The error is an ErrCase
// if c does not fail.
func Reduce(ctx context.Context, c *Case, opts ReduceOptions) (*Case, error) {
	r := &reducer{ctx: ctx, opts: opts, until: time.Now().Add(cmp.Or(opts.Time, 10*time.Minute)), best: *c}
	r.opts.Runs = cmp.Or(opts.Runs, 5000)
	r.best.Build = remembering(c.Build)
	f, err := Check(ctx, &r.best)
	switch {
	case err != nil:
		return nil, err
	case f.Kind == None:
		return nil, fmt.Errorf("%w: it does not fail", ErrCase)
	case c.Failure.Kind != None && !f.Same(c.Failure):
		return nil, fmt.Errorf("%w: it fails in another way: %v instead of %v", ErrCase, f, c.Failure)
	}
	r.best.Failure = f
	// The query goes first: the fewer passes run, the faster is each of the thousands of runs that
	// follow, and the fewer rewrites are there that could fail in another way.
	r.query()
	r.tell()
	if err := r.begin(); err != nil {
		return nil, err
	}
	// Every step can make room for others: without an output, nodes are not needed; without a node,
	// two inputs may be merged. So all are repeated until a whole round accepts nothing. That is a
	// local minimum: no single step leads on from it.
	for before := -1; before != r.accepted && !r.ended(); {
		before = r.accepted
		r.steps()
	}
	// A smaller graph may need fewer passes. Values go last: while the graph changes, those that
	// were recorded keep the failure alive, and only the final graph has to fail without them.
	r.query()
	r.plainValues()
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	return r.result(c.Build)
}

// result returns the best case, with what happens in it.
func (r *reducer) result(build func(optdb.Query) (*optdb.Optimizer, error)) (*Case, error) {
	best, want := r.best, r.best.Failure
	best.Failure = Failure{} // so that the place of the rewrite is found anew
	f, err := Check(r.ctx, &best)
	if err != nil {
		return nil, err
	}
	if best.Failure, best.Build = f, build; !f.Same(want) {
		want.Node = "" // the rewrite is one of several
		best.Failure = want
	}
	return &best, nil
}

// remembering returns a builder that builds the optimizer of a query once.
func remembering(build func(optdb.Query) (*optdb.Optimizer, error)) func(optdb.Query) (*optdb.Optimizer, error) {
	known := make(map[string]*optdb.Optimizer)
	return func(q optdb.Query) (*optdb.Optimizer, error) {
		text := q.String()
		if opt := known[text]; opt != nil {
			return opt, nil
		}
		opt, err := build(q)
		if err == nil {
			known[text] = opt
		}
		return opt, err
	}
}

// A reducer makes a case smaller.
type reducer struct {
	ctx      context.Context
	opts     ReduceOptions
	until    time.Time
	best     Case // Budget, Query and Values included
	s        *sketch
	runs     int
	accepted int // steps forward
}

// ended reports whether a limit is reached.
func (r *reducer) ended() bool {
	return r.runs >= r.opts.Runs || r.ctx.Err() != nil || time.Now().After(r.until)
}

// fails reports whether a case fails in the same way, and remembers it then.
func (r *reducer) fails(c Case) bool {
	if r.ended() {
		return false
	}
	r.runs++
	run, err := c.prepare()
	if err != nil {
		return false
	}
	// Where the optimizer itself fails, what the graph computes doesn't matter, and is not
	// computed.
	run.earlyOnly = c.Failure.Kind.early()
	f, err := run.failure(r.ctx)
	if err != nil || !f.Same(c.Failure) {
		return false
	}
	c.Failure = f
	r.best = c
	r.accepted++
	return true
}

// tell reports progress.
func (r *reducer) tell() {
	if r.opts.Progress != nil {
		g := r.best.Graph
		r.opts.Progress(Progress{Runs: r.runs, Applies: g.NumApplies(), Inputs: len(g.Inputs()), Outputs: len(g.Outputs()), query: r.best.Query.String()})
	}
}

// begin makes the sketch of the graph, with the values of all variables if they can be had.
func (r *reducer) begin() error {
	c := &r.best
	// When a node is cut off, its results become inputs. For a failure that shows only in the
	// numbers, they have to keep the values that they had: with random ones, a log of a negative
	// number or an index out of range would take the place of the failure. So all values are
	// recorded in a run of the graph without optimization.
	if c.Failure.Kind.early() {
		r.s = sketchOf(c.Graph, c.Values, nil)
		return nil
	}
	run, err := c.prepare()
	if err == nil {
		err = run.compute(r.ctx)
	}
	if err != nil {
		return err
	}
	g, err := run.copied()
	if err != nil {
		return err
	}
	var vars []*fgraph.Variable
	limits := part[Limiter](c.World, defaults{})
	for a := range g.Ordered() {
		for _, v := range a.Outputs() {
			if limits.Outputs(v.Type()) {
				vars = append(vars, v)
			}
		}
	}
	values, err := record(r.ctx, c.World, g, run.values, vars)
	if err != nil || values == nil {
		r.s = sketchOf(c.Graph, c.Values, nil) // new inputs have random values
		return r.ctx.Err()
	}
	recorded := make([]any, g.NumVariableIDs())
	for i, v := range vars {
		recorded[v.ID()] = values[i]
	}
	r.s = sketchOf(g, run.values, func(v *fgraph.Variable) any { return recorded[v.ID()] })
	return nil
}

// accepts tries a smaller sketch, and keeps it if it fails in the same way.
func (r *reducer) accepts(s *sketch) bool {
	s.compact()
	// Only a strictly smaller sketch is run. The order of sizes is well-founded, so the reduction
	// terminates, and no run is wasted on a step that cut nothing off.
	return slices.Compare(s.size(), r.s.size()) < 0 && r.replaces(s)
}

// replaces tries a sketch, and keeps it if it fails in the same way.
func (r *reducer) replaces(s *sketch) bool {
	if len(s.outputs) == 0 || r.ended() {
		return false
	}
	b, err := s.build(r.best.World, r.best.Graph)
	if err != nil {
		return false
	}
	c := r.best
	c.Graph, c.Values = b.graph, b.values
	if !r.fails(c) {
		return false
	}
	// The smaller graph replaces the one before, also as the place from which features are copied:
	// see Attacher.
	// The graph is what further inputs and outputs refer to.
	s = s.copied()
	for i, n := range s.inputs {
		s.vars[n].source = i
	}
	for i := range s.outputs {
		s.outputs[i].source = i
	}
	r.s = s
	r.tell()
	return true
}

// steps tries everything once.
func (r *reducer) steps() {
	r.window()
	r.dropOutputs()
	r.cutNodes()
	r.bypass()
	r.simplify()
	r.mergeInputs()
	r.shrink()
}
