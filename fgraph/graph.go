package fgraph

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"time"
)

// A FunctionGraph owns the applies and variables between its inputs and its outputs. An apply is
// part of the graph while an output of the graph depends on it; an apply that becomes unused is
// pruned at once.
//
// A FunctionGraph is confined to one goroutine at a time.
type FunctionGraph struct {
	inputs  []*Variable
	outputs []*Variable
	outPos  []int32 // position of the graph among the clients of each output

	applies     []*Apply    // by number, nil where free
	variables   []*Variable // by number, nil where free
	freeApplies []int32
	freeVars    []int32
	live        int // applies
	commits     int

	order    order // a maintained topological order of the applies
	journal  []edit
	late     []edge // edges that contradict the order, to be retried
	open     int    // open checkpoints, which need the journal
	busy     bool   // a change is in progress
	undoing  bool
	panicked any // panic of a callback during an undo
	// building is set while New imports, in topological order.
	building bool

	guard   Guard  // asked about every change; nil: none
	pass    string // the pass that changes the graph, see SetPass
	frozen  bool   // changes are errors, see Freeze
	tried   bool   // a change was attempted while frozen
	handled bool   // a DestroyHandler is attached
	reasons []Reason
	reason  map[Reason]int32 // index into reasons

	features []Feature
	on       callbacks
	timing   bool
	times    Times
	born     time.Time

	opNumbers opNumbers

	sorted   []*Apply // the topological order after sortedAt commits, or nil
	sortedAt int

	// Scratch space, empty between uses.
	path  []step
	fresh []*Apply
	moved []Client
	dead  []*Apply
	waits []int32

	plainOps map[reflect.Type]bool // whether all values of an op type are comparable
	recent   [4]reflect.Type       // some of those that are, recently used
	oldest   int                   // index into recent
}

// A Reason says who asked for a change.
type Reason struct{ Pass, Rule string }

// String returns the names of the pass and the rule, joined by a slash.
func (r Reason) String() string {
	switch {
	case r.Pass == "":
		return r.Rule
	case r.Rule == "" || r.Rule == r.Pass:
		return r.Pass
	}
	return r.Pass + "/" + r.Rule
}

// initial is the reason for everything a graph is created with.
var initial = Reason{Rule: "init"}

// New returns the graph of everything that outputs depend on, and takes ownership of it: only
// leaves that have no graph may be shared with other expressions. Everything the outputs depend
// on must be an input, a constant, or computed from these. An input may be unused, a variable
// may be several outputs, and an input may be an output. New attaches the features in order.
func New(inputs, outputs []*Variable, features ...Feature) (*FunctionGraph, error) {
	return NewInOrder(inputs, outputs, nil, features...)
}

// NewInOrder is [New] for applies that are to be numbered in a given order, which becomes that of
// [FunctionGraph.Toposort]. Each apply must come after those that it depends on, and an output must
// depend on it. Applies that are not listed follow.
func NewInOrder(inputs, outputs []*Variable, applies []*Apply, features ...Feature) (*FunctionGraph, error) {
	g := &FunctionGraph{born: time.Now()}
	g.order.init(dataEdges{g})
	fail := func(err error) (*FunctionGraph, error) {
		g.disown()
		return nil, fmt.Errorf("new graph: %w", err)
	}
	for i, v := range inputs {
		if err := g.declare(v); err != nil {
			return fail(fmt.Errorf("input %d: %w", i, err))
		}
	}
	g.building = true
	g.applies, g.variables = slices.Grow(g.applies, len(applies)), slices.Grow(g.variables, len(applies))
	g.order.reserve(len(applies))
	for _, a := range applies {
		if err := g.importNext(a); err != nil {
			return fail(err)
		}
	}
	for i, v := range outputs {
		if err := g.appendOutput(v, initial); err != nil {
			return fail(fmt.Errorf("output %d: %w", i, err))
		}
	}
	g.building = false
	for _, a := range applies {
		if a.unused(0) {
			return fail(fmt.Errorf("%w: no output depends on %v", ErrInvalid, a))
		}
	}
	for _, f := range features {
		if err := g.Attach(f); err != nil {
			return fail(err)
		}
	}
	return g, nil
}

// declare makes v an input.
func (g *FunctionGraph) declare(v *Variable) error {
	switch {
	case v == nil:
		return fmt.Errorf("%w: nil variable", ErrInvalid)
	case v.typ == nil:
		return fmt.Errorf("%w: variable %q has no type", ErrInvalid, v.Name())
	case v.owner != nil:
		return fmt.Errorf("%w: %v is computed by an apply, so it cannot be an input", ErrInvalid, v)
	case v.leaf.constant:
		return fmt.Errorf("%w: constant %v cannot be an input", ErrInvalid, v)
	case v.leaf.graph == g:
		return fmt.Errorf("%w: %v is an input already", ErrInvalid, v)
	case v.leaf.graph != nil:
		return fmt.Errorf("input %v %w", v, ErrForeign)
	}
	g.insertInput(len(g.inputs), v)
	return nil
}

// disown releases everything that a graph owns after its construction failed.
func (g *FunctionGraph) disown() {
	for a := range g.Applies() {
		a.graph, a.id = nil, outside
		for _, v := range a.outputs {
			v.id, v.clients = outside, nil
		}
	}
	for v := range g.Variables() {
		if v.owner == nil {
			v.leaf.graph, v.leaf.input, v.id, v.clients = nil, false, outside, nil
		}
	}
	*g = FunctionGraph{}
}

// Inputs returns the inputs. Do not modify the slice.
func (g *FunctionGraph) Inputs() []*Variable { return g.inputs }

// Outputs returns the outputs. Do not modify the slice, which changes with the graph.
func (g *FunctionGraph) Outputs() []*Variable { return g.outputs }

// Dialect returns the dialect of the inputs and outputs, see [DialectType]. It is
// empty if none of their types has one, or if they differ.
func (g *FunctionGraph) Dialect() string {
	dialect := ""
	for _, ends := range [2][]*Variable{g.inputs, g.outputs} {
		for _, v := range ends {
			t, ok := v.Type().(DialectType)
			switch {
			case !ok:
			case dialect == "":
				dialect = t.Dialect()
			case dialect != t.Dialect():
				return ""
			}
		}
	}
	return dialect
}

// NumApplies returns the number of applies in the graph.
func (g *FunctionGraph) NumApplies() int { return g.live }

// NumApplyIDs returns a bound on the numbers of applies, the length of a table indexed by them.
func (g *FunctionGraph) NumApplyIDs() int { return len(g.applies) }

// NumVariableIDs returns a bound on the numbers of variables, the length of a table indexed by
// them.
func (g *FunctionGraph) NumVariableIDs() int { return len(g.variables) }

// Commits returns how many changes were made, not counting those that were undone at once. The
// graph does not change while the number stays the same.
func (g *FunctionGraph) Commits() int { return g.commits }

// ImportedBy returns who brought a into the graph. It returns the zero Reason if a is not in the
// graph or was there from the start.
func (g *FunctionGraph) ImportedBy(a *Apply) Reason {
	if !g.Contains(a) || g.reasons[a.by] == initial {
		return Reason{}
	}
	return g.reasons[a.by]
}

// number returns the index of why in g.reasons.
func (g *FunctionGraph) number(why Reason) int32 {
	n := len(g.reasons)
	switch {
	case n == 0: // initial: a graph that nothing changes needs no map
		g.reasons = []Reason{why}
		return 0
	case g.reasons[n-1] == why:
		return int32(n - 1)
	case g.reasons[0] == why:
		return 0
	}
	i, known := g.reason[why]
	if !known {
		if g.reason == nil {
			g.reason = make(map[Reason]int32)
		}
		i = int32(n)
		g.reasons, g.reason[why] = append(g.reasons, why), i
	}
	return i
}

// Contains reports whether a is part of the graph.
func (g *FunctionGraph) Contains(a *Apply) bool { return a != nil && a.graph == g }

// Applies yields the applies by increasing number. The graph may change during the iteration:
// applies that leave are not yielded, applies that join may be.
func (g *FunctionGraph) Applies() iter.Seq[*Apply] {
	return func(yield func(*Apply) bool) {
		for id := 0; id < len(g.applies); id++ {
			if a := g.applies[id]; a != nil && !yield(a) {
				return
			}
		}
	}
}

// Variables yields the variables by increasing number: inputs, constants in use, and all outputs
// of applies.
func (g *FunctionGraph) Variables() iter.Seq[*Variable] {
	return func(yield func(*Variable) bool) {
		for id := 0; id < len(g.variables); id++ {
			if v := g.variables[id]; v != nil && !yield(v) {
				return
			}
		}
	}
}

// Ordered yields the applies in the topological order that the graph maintains for itself,
// without the orderings that features add. The order depends on the history of the graph and
// costs nothing to obtain. The graph must not change during the iteration.
func (g *FunctionGraph) Ordered() iter.Seq[*Apply] {
	return func(yield func(*Apply) bool) {
		for id := range g.order.all() {
			if !yield(g.applies[id]) {
				return
			}
		}
	}
}

// ComesBefore reports whether a precedes b in the order of [FunctionGraph.Ordered], in constant
// time. If it does not, b does not depend on a.
func (g *FunctionGraph) ComesBefore(a, b *Apply) bool { return g.order.less(a.id, b.id) }

// reuse removes and returns the last of the free numbers, or returns none.
func reuse(free *[]int32) int32 {
	n := len(*free)
	if n == 0 {
		return none
	}
	id := (*free)[n-1]
	*free = (*free)[:n-1]
	return id
}

// newApply assigns a number to a.
func (g *FunctionGraph) newApply(a *Apply) int32 {
	g.live++
	if id := reuse(&g.freeApplies); id != none {
		g.applies[id] = a
		return id
	}
	if len(g.applies) >= math.MaxInt32-1 {
		panic("fgraph: too many applies") // 2^31 of them would take half a terabyte
	}
	g.applies = append(g.applies, a)
	g.order.grow(len(g.applies))
	return int32(len(g.applies) - 1)
}

func (g *FunctionGraph) releaseApply(id int32) {
	g.live--
	g.applies[id] = nil
	g.freeApplies = append(g.freeApplies, id)
}

func (g *FunctionGraph) newVariable(v *Variable) int32 {
	if id := reuse(&g.freeVars); id != none {
		g.variables[id] = v
		return id
	}
	g.variables = append(g.variables, v)
	return int32(len(g.variables) - 1)
}

func (g *FunctionGraph) releaseVariable(id int32) {
	g.variables[id] = nil
	g.freeVars = append(g.freeVars, id)
}

// CheckOp returns an error if op is nil or not comparable. Every op in a graph must be
// comparable.
func CheckOp(op Op) error {
	if op == nil {
		return fmt.Errorf("%w: no op", ErrInvalid)
	}
	switch k := reflect.TypeOf(op).Kind(); {
	case reflect.Bool <= k && k <= reflect.Complex128, k == reflect.String, k == reflect.Pointer:
		return nil // every value is comparable
	}
	if _, ok := op.(OpEqualer); !ok && !reflect.ValueOf(op).Comparable() {
		return fmt.Errorf("%w: op %v of type %T cannot be compared: it needs EqualOp and HashOp", ErrInvalid, op, op)
	}
	return nil
}

// checkOp is [CheckOp] optimized for many ops of few types: it inspects a type without interface
// fields, all values of which are comparable, only once.
func (g *FunctionGraph) checkOp(op Op) error {
	if op == nil {
		return CheckOp(op)
	}
	t := reflect.TypeOf(op)
	for _, r := range g.recent {
		if r == t {
			return nil
		}
	}
	plain, known := g.plainOps[t]
	if !known {
		plain = t.Comparable() && !containsInterface(t)
		if !plain || g.recent[g.oldest] != nil { // a graph with few types needs no map
			if g.plainOps == nil {
				g.plainOps = make(map[reflect.Type]bool)
			}
			g.plainOps[t] = plain
		}
	}
	if plain {
		g.recent[g.oldest] = t
		g.oldest = (g.oldest + 1) % len(g.recent)
		return nil
	}
	return CheckOp(op)
}

func containsInterface(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Interface:
		return true
	case reflect.Array:
		return containsInterface(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if containsInterface(t.Field(i).Type) {
				return true
			}
		}
	}
	return false
}

// locked returns an error while the graph must not change, or nil.
func (g *FunctionGraph) locked() error {
	switch {
	case g.busy:
		return fmt.Errorf("%w: a callback must not change the graph", ErrInvalid)
	case g.frozen:
		g.tried = true
		return fmt.Errorf("%w: a rule must propose changes, not make them", ErrInvalid)
	}
	return nil
}
