package rewrite

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
)

// A Commuter is an op that may be commutative: if Commutes returns true, the result does not
// depend on the order of the inputs.
type Commuter interface {
	Commutes() bool
}

// Unmergeable is implemented by ops for which two applies to the same inputs are not the same
// computation, because they draw random numbers or represent memory that is written to.
type Unmergeable interface {
	Unmergeable() bool
}

// Merge eliminates common subexpressions: it unites applies of equal ops to the same inputs, and
// equal constants. It keeps the result with the more specific type, or else the one that comes
// first in the graph. The cost is linear in the size of the graph.
type Merge struct {
	Name string
	// Commutative also unites applies of a [Commuter] whose two inputs differ in order. Theano
	// does not do this.
	Commutative bool
	// AnyOrder does so for more than two inputs, too. What is the sum of three floats depends on their
	// order, so this may change last bits.
	AnyOrder bool
}

// Describe returns a description with m.Name or, if that is empty, Theano's name.
func (m *Merge) Describe() Description {
	return Description{Name: cmp.Or(m.Name, profile.ClassMerge), Doc: "the same computation twice becomes one", Class: profile.ClassMerge}
}

// AddRequirements does nothing.
func (m *Merge) AddRequirements(*fgraph.FunctionGraph) error { return nil }

// Apply merges.
func (m *Merge) Apply(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error {
	rec.SetClass("", profile.ClassMerge)
	rec.Nodes(g.NumApplies())
	r := &merging{Merge: m, Handle: newHandle(ctx, g, rec, passFrom(ctx, m.Name, profile.ClassMerge)), ctx: ctx}
	defer r.report()
	r.destroys, _ = fgraph.FeatureOf[destroyers](g)
	// Pipelines merge after many passes that change nothing. Two numbers tell.
	state := mergeStateOf(g)
	if state.orders >= m.orders() && state.commits == g.Commits() {
		return nil // unchanged since there was nothing left to merge
	}
	// Constants first: applies are compared by the identity of their inputs.
	err := r.constants()
	// If a later result replaces an earlier one because of its more specific type, applies
	// that were already visited change.
	for again := err == nil; again; again = err == nil && r.swapped {
		r.swapped = false
		err = r.applies()
	}
	// A merge that a feature objected to may be allowed after the next change, and one that a
	// budget denied in the next run.
	if err == nil && r.refused+r.denied == 0 {
		state.orders, state.commits = m.orders(), g.Commits()
	}
	return err
}

// report records the counters.
func (r *merging) report() {
	r.rec.Count("nb_fail", float64(r.refused), "")
	r.rec.Count("nb_merged", float64(r.merged), "")
	r.rec.Count("nb_constant", float64(r.mergedConstants), "")
	r.close()
}

// mergeState is the feature that remembers when there was last nothing to merge in a graph,
// because databases merge after many passes.
type mergeState struct {
	commits int
	orders  int // of inputs that were tried
}

func (s *mergeState) OnAttach(*fgraph.FunctionGraph) error {
	s.commits = -1
	return nil
}

func mergeStateOf(g *fgraph.FunctionGraph) *mergeState {
	s, ok := fgraph.FeatureOf[*mergeState](g)
	if !ok {
		s = new(mergeState)
		_ = g.Attach(s) // OnAttach returns no error
	}
	return s
}

// destroyers is the part of a [fgraph.DestroyHandler] that merging uses.
type destroyers interface {
	HasDestroyer(*fgraph.Variable) bool
}

// merging is a run of Merge.
type merging struct {
	*Merge
	Handle
	ctx      context.Context
	destroys destroyers
	pairs    []fgraph.Replacement
	sorted   [2][]int // inputs of two commutative applies that are compared
	swapped  bool

	rank    []int32 // by number of an apply: when it was visited, 0 if never
	indexed []bool  // by number of a variable: table contains its visited clients
	table   hashTable[*fgraph.Apply]

	merged, mergedConstants int
}

// constants unites equal constants and keeps the first of each kind.
func (r *merging) constants() error {
	var table hashTable[*fgraph.Variable]
	visits := 0
	for v := range r.g.Variables() {
		if !v.IsConstant() {
			continue
		}
		if visits++; visits%checkEvery == 0 {
			if err := ended(r.ctx, r.pass); err != nil {
				return err
			}
		}
		h, ok := fgraph.HashData(v.Type(), v.Data())
		if !ok {
			continue
		}
		h = mix(h, fgraph.HashType(v.Type()))
		// The hash only leaves candidates: what equal data are, their type says.
		found := table.find(h, func(w *fgraph.Variable) bool {
			return v.Type() == w.Type() && fgraph.EqualData(v.Type(), v.Data(), w.Data())
		})
		if found == nil {
			table.add(h, v)
			continue
		}
		first := *found
		r.pairs = append(r.pairs[:0], fgraph.Replacement{Old: v, New: first})
		if first.Name() == "" && v.Name() != "" {
			first.SetName(v.Name())
		}
		done, err := r.make("merge_constant", nil)
		if err != nil {
			return err
		}
		if done {
			r.mergedConstants++
		}
	}
	return nil
}

// applies unites equal applies, inputs before clients, so that applies to united inputs compare
// equal.
func (r *merging) applies() error {
	start := r.rec.Now()
	order := make([]*fgraph.Apply, 0, r.g.NumApplies())
	for a := range r.g.Ordered() {
		order = append(order, a)
	}
	r.rec.AddToposort(r.rec.Since(start))
	r.rank = make([]int32, r.g.NumApplyIDs())
	r.indexed = make([]bool, r.g.NumVariableIDs())
	r.table = hashTable[*fgraph.Apply]{}
	for i, a := range order {
		if i%checkEvery == 0 {
			if err := ended(r.ctx, r.pass); err != nil {
				return err
			}
		}
		if !r.g.Contains(a) {
			continue
		}
		if u, ok := a.Op().(Unmergeable); ok && u.Unmergeable() {
			continue
		}
		first := r.find(a)
		// One of the two is gone now. If it is the earlier one, whose type was less specific,
		// clients of it that were visited have another input and may equal others: then another
		// round is needed.
		if first != nil {
			if err := r.unite(first, a); err != nil {
				return err
			}
			if !r.g.Contains(first) {
				r.swapped = true
			}
		}
		if r.g.Contains(a) {
			r.visited(a, int32(i+1))
		}
	}
	return nil
}

// fewClients bounds how many clients of a variable are compared one by one.
const fewClients = 8

// find returns the first visited apply that is equal to a, or nil. It is a client of every input
// of a. If an input has few clients, find compares these: most often a is the only one. If all
// inputs have many clients, it uses an index.
func (r *merging) find(a *fgraph.Apply) *fgraph.Apply {
	// An apply equal to a reads the same variables, so it is among the clients of each input. The
	// input with the fewest has the fewest candidates, most often a alone. So most applies are
	// never hashed, and no table of all of them is built.
	var least *fgraph.Variable
	for _, v := range a.Inputs() {
		if least == nil || len(v.Clients()) < len(least.Clients()) {
			least = v
		}
	}
	// Without inputs, or where every input is popular, comparing one by one would be quadratic.
	// Then, and only for these, an index is made.
	if least == nil || len(least.Clients()) > fewClients {
		if least != nil && !r.indexed[least.ID()] {
			r.index(least)
		}
		found := r.table.find(r.hash(a), func(b *fgraph.Apply) bool { return b != a && r.same(a, b) })
		if found == nil {
			return nil
		}
		return *found
	}
	var first *fgraph.Apply
	for _, c := range least.Clients() {
		b := c.Apply
		if b != nil && b != a && r.rank[b.ID()] > 0 && (first == nil || r.rank[b.ID()] < r.rank[first.ID()]) && r.same(a, b) {
			first = b
		}
	}
	return first
}

// index adds all visited clients of v to the table. Later ones are added when they are visited.
func (r *merging) index(v *fgraph.Variable) {
	r.indexed[v.ID()] = true
	for _, c := range v.Clients() {
		if c.Apply != nil && r.rank[c.Apply.ID()] > 0 {
			r.table.add(r.hash(c.Apply), c.Apply)
		}
	}
}

// visited records that a was visited and kept.
func (r *merging) visited(a *fgraph.Apply, rank int32) {
	r.rank[a.ID()] = rank
	// The invariant of the table: it has every visited client of each indexed variable. So a joins
	// it if any of its inputs is one.
	indexed := len(a.Inputs()) == 0
	for _, v := range a.Inputs() {
		indexed = indexed || r.indexed[v.ID()]
	}
	if indexed {
		r.table.add(r.hash(a), a)
	}
}

// orders returns up to how many inputs may be in any order.
func (m *Merge) orders() int {
	switch {
	case m.AnyOrder:
		return math.MaxInt
	case m.Commutative:
		return 2
	}
	return 0
}

func (r *merging) commutes(a *fgraph.Apply) bool {
	if len(a.Inputs()) > r.orders() {
		return false
	}
	c, ok := a.Op().(Commuter)
	return ok && c.Commutes()
}

func (r *merging) hash(a *fgraph.Apply) uint64 {
	h := fgraph.HashOp(a.Op())
	if r.commutes(a) {
		for _, id := range r.ids(0, a) {
			h = mix(h, uint64(id))
		}
		return h
	}
	for _, v := range a.Inputs() {
		h = mix(h, uint64(v.ID()))
	}
	return h
}

// ids returns the sorted numbers of the inputs.
func (r *merging) ids(which int, a *fgraph.Apply) []int {
	ids := r.sorted[which][:0]
	for _, v := range a.Inputs() {
		ids = append(ids, v.ID())
	}
	slices.Sort(ids)
	r.sorted[which] = ids
	return ids
}

// same reports whether a and b are the same computation.
func (r *merging) same(a, b *fgraph.Apply) bool {
	if !r.g.Contains(b) || len(a.Inputs()) != len(b.Inputs()) || len(a.Outputs()) != len(b.Outputs()) ||
		!fgraph.OpsEqual(a.Op(), b.Op()) {
		return false
	}
	x, y := a.Inputs(), b.Inputs()
	switch {
	case slices.Equal(x, y):
		return true
	case len(x) < 2 || !r.commutes(a):
		return false
	case len(x) == 2:
		return x[0] == y[1] && x[1] == y[0]
	}
	return slices.Equal(r.ids(0, a), r.ids(1, b))
}

// unite replaces the outputs of second with those of first, or the other way round if the types
// require it.
func (r *merging) unite(first, second *fgraph.Apply) error {
	r.pairs = r.pairs[:0]
	for i, w := range second.Outputs() {
		v := first.Outputs()[i]
		// If each of the two values is overwritten by an apply, one variable would have two destroyers.
		if r.destroys != nil && r.destroys.HasDestroyer(v) && r.destroys.HasDestroyer(w) {
			return nil
		}
		// Replacing must not lose what a type says: readers of w may rely on it. Whichever type
		// accepts the other gives way; with several outputs it may be one of each.
		switch {
		case w.Type() == v.Type() || w.Type().Accepts(v.Type()):
			r.pairs = append(r.pairs, fgraph.Replacement{Old: w, New: v})
		case v.Type().Accepts(w.Type()):
			r.pairs = append(r.pairs, fgraph.Replacement{Old: v, New: w})
		default:
			return nil
		}
	}
	done, err := r.make("merge", second)
	if done {
		r.merged++
	}
	return err
}

// make makes the replacements in r.pairs and reports whether the graph changed.
func (r *merging) make(rule string, n *fgraph.Apply) (bool, error) {
	made := r.made
	if _, err := r.Replace(rule, n, r.pairs...); err != nil {
		return false, optionsFrom(r.ctx).fail(r.ctx, &Error{Pass: r.pass, Err: err})
	}
	return r.made > made, nil
}
