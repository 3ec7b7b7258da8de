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
	Query                    string
}

// Reduce returns a case that is as small as possible and fails in the same way as c: the same kind of
// failure, in the same pass and rule. It leaves out outputs and applies, makes inputs of what is
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
	r.query()
	r.tell()
	if err := r.begin(); err != nil {
		return nil, err
	}
	for before := -1; before != r.accepted && !r.ended(); {
		before = r.accepted
		r.steps()
	}
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
	run, err := c.prepare(r.ctx)
	if err != nil {
		return false
	}
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
		r.opts.Progress(Progress{Runs: r.runs, Applies: g.NumApplies(), Inputs: len(g.Inputs()), Outputs: len(g.Outputs()), Query: r.best.Query.String()})
	}
}

// begin makes the sketch of the graph, with the values of all variables if they can be had.
func (r *reducer) begin() error {
	c := &r.best
	if c.Failure.Kind.early() {
		r.s = sketchOf(c.Graph, c.Values, nil)
		return nil
	}
	run, err := c.prepare(r.ctx)
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
	for a := range g.Ordered() {
		for _, v := range a.Outputs() {
			if c.World.Outputs(v.Type()) {
				vars = append(vars, v)
			}
		}
	}
	values, err := c.World.Record(r.ctx, g, run.values, vars)
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

// window finds the shortest beginning of the order that fails, and the shortest end of that.
func (r *reducer) window() {
	for lo, hi := 0, len(r.s.nodes); hi-lo > 1; {
		mid := lo + (hi-lo)/2
		s := r.s.copied()
		s.prefix(r.best.World, mid)
		if r.accepts(s) {
			hi = min(mid, len(r.s.nodes))
			lo = min(lo, hi-1)
		} else {
			lo = mid
		}
	}
	for lo, hi := 0, len(r.s.nodes); hi-lo > 1; {
		mid := lo + (hi-lo)/2
		s := r.s.copied()
		before := len(r.s.nodes)
		s.cut(r.best.World, func(i int) bool { return i < mid })
		if r.accepts(s) {
			lo, hi = 0, hi-(before-len(r.s.nodes)) // other nodes may be gone, too
			continue
		}
		hi = mid
	}
}

// minimize drops parts of a list of n elements, large parts first. try drops some elements, given in
// ascending order, and reports whether that fails in the same way; the others then move up.
func minimize(n int, try func(drop []int) bool) {
	for size := n; size > 0; size /= 2 {
		for first := 0; first < n; {
			last := min(first+size, n)
			part := make([]int, 0, last-first)
			for i := first; i < last; i++ {
				part = append(part, i)
			}
			if try(part) {
				n -= len(part)
			} else {
				first = last
			}
		}
	}
}

// dropOutputs leaves out outputs.
func (r *reducer) dropOutputs() {
	minimize(len(r.s.outputs), func(drop []int) bool {
		s := r.s.copied()
		s.outputs = slices.Delete(s.outputs, drop[0], drop[len(drop)-1]+1)
		return r.accepts(s)
	})
}

// eachPart calls try with parts of the nodes, from the last to the first, large parts first.
func (r *reducer) eachPart(try func(first, last int) bool) {
	for size := len(r.s.nodes); size > 0; size /= 2 {
		for last := len(r.s.nodes); last > 0 && !r.ended(); {
			first := max(last-size, 0)
			if try(first, last) {
				last = min(first, len(r.s.nodes)) // nodes before may be gone, too
			} else {
				last = first
			}
		}
	}
}

// cutNodes makes inputs of what nodes compute.
func (r *reducer) cutNodes() {
	r.eachPart(func(first, last int) bool {
		s := r.s.copied()
		s.cut(r.best.World, func(i int) bool { return first <= i && i < last })
		return r.accepts(s)
	})
}

// bypass replaces nodes by operands of the same type.
func (r *reducer) bypass() {
	r.eachPart(func(first, last int) bool {
		for choice := 0; ; choice++ {
			s, again := r.s.copied(), false
			for _, n := range r.s.nodes[first:last] {
				more, ok := s.replaceByOperand(n, choice)
				again = again || more
				if !ok && last-first == 1 {
					return false
				}
			}
			if r.accepts(s) {
				return true
			}
			if !again || last-first > 1 {
				return false
			}
		}
	})
}

// replaceByOperand replaces the result of a node by the operand of that number among those that can
// take its place. It reports whether there are more of them.
func (s *sketch) replaceByOperand(n node, choice int) (more, ok bool) {
	if len(n.out) != 1 {
		return false, false
	}
	for _, v := range n.in {
		if v != n.out[0] && s.vars[n.out[0]].typ.Accepts(s.vars[v].typ) {
			if choice == 0 && !ok {
				s.substitute(n.out[0], v)
				ok = true
			} else if ok {
				return true, true
			}
			choice--
		}
	}
	return false, ok
}

// simplify makes ops simpler.
func (r *reducer) simplify() {
	for k := 0; k < len(r.s.nodes) && !r.ended(); k++ {
		for again := true; again && k < len(r.s.nodes); {
			again = r.simplifyNode(k)
		}
	}
}

// simplifyNode tries the simpler ops for a node until one is accepted.
func (r *reducer) simplifyNode(k int) bool {
	b, err := r.s.build(r.best.World, r.best.Graph)
	if err != nil {
		return false
	}
	for a := range r.best.World.Simpler(b.applies[k]) {
		s := r.s.copied()
		n := &s.nodes[k]
		n.op = a.Op()
		old := n.in
		n.in = make([]int, len(a.Inputs()))
		for i, v := range a.Inputs() {
			at := slices.Index(b.applies[k].Inputs(), v)
			if at < 0 {
				return false
			}
			n.in[i] = old[at]
		}
		s.compact()
		if r.replaces(s) {
			return true
		}
		if r.ended() {
			break
		}
	}
	return false
}

// mergeInputs makes one input of two.
func (r *reducer) mergeInputs() {
	for i := 0; i < len(r.s.inputs) && !r.ended(); i++ {
		for k := len(r.s.inputs) - 1; k > i; k-- {
			if v, w := r.s.inputs[i], r.s.inputs[k]; r.s.vars[v].typ == r.s.vars[w].typ {
				s := r.s.copied()
				s.substitute(w, v)
				if r.accepts(s) {
					k = min(k, len(r.s.inputs))
				}
			}
		}
	}
}

// shrink makes values smaller.
func (r *reducer) shrink() {
	for again := true; again && !r.ended(); {
		again = false
		c := r.best
		for small := range c.World.Shrink(c.Graph, c.Values) {
			if r.ended() {
				return
			}
			next := c
			next.Graph, next.Values = small.Graph, small.Values
			if attachLike(c.World, next.Graph, c.Graph) == nil && r.fails(next) {
				again = true
				break
			}
		}
		if again && r.begin() == nil {
			r.tell()
		}
	}
}

// plainValues tries random values in place of particular ones, and no budget.
func (r *reducer) plainValues() {
	if c := r.best; c.Budget != nil {
		c.Budget = nil
		r.fails(c)
	}
	if c := r.best; c.Values != nil {
		c.Values = nil
		r.fails(c)
	}
	r.tell()
}
