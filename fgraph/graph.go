package fgraph

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"strconv"
	"time"
)

// A FunctionGraph owns the applies and variables between its inputs and its
// outputs. An apply is part of the graph as long as an output of the graph
// depends on it; what nothing depends on any longer is pruned at once.
//
// A FunctionGraph belongs to one goroutine.
type FunctionGraph struct {
	inputs  []*Variable
	outputs []*Variable
	outPos  []int32 // place of the graph among the clients of each output

	applies     []*Apply    // by number, nil where free
	variables   []*Variable // by number, nil where free
	freeApplies []int32
	freeVars    []int32
	live        int // applies
	commits     int

	order    order // a topological order of the applies, kept up
	journal  []edit
	late     []edge // edges against the order, to be tried again
	open     int    // who needs the journal
	busy     bool   // a change is being made
	undoing  bool
	panicked any // what a callback panicked with while a change was undone
	// building is set while New imports: everything comes last in the order.
	building bool

	guard   Guard  // asked about every change, nil: none
	pass    string // who changes the graph, see SetPass
	frozen  bool   // no change may be made, see Freeze
	tried   bool   // one was tried all the same
	handled bool   // a DestroyHandler is attached
	reasons []Reason
	reason  map[Reason]int32 // place in reasons

	features    []Feature
	featureTime []time.Duration
	on          callbacks
	timing      bool
	times       Times
	born        time.Time

	sorted   []*Apply // the topological order when there had been so many commits, nil if that was not asked for
	sortedAt int

	// scratch, empty between uses
	path  []step
	fresh []*Apply
	moved []Client
	dead  []*Apply
	waits []int32

	plainOps map[reflect.Type]bool // types of ops of which all can be compared
	recent   [4]reflect.Type       // some of them that were asked for lately
	oldest   int                   // among these
}

// A Reason says who asked for a change.
type Reason struct{ Pass, Rule string }

// String returns the names of the pass and the rule, with a slash between.
func (r Reason) String() string {
	switch {
	case r.Pass == "":
		return r.Rule
	case r.Rule == "" || r.Rule == r.Pass:
		return r.Pass
	}
	return r.Pass + "/" + r.Rule
}

// initial is why a graph has what it was made with.
var initial = Reason{Rule: "init"}

// New returns the graph of everything that outputs depend on. The graph owns
// what it is given: no variable but a leaf without graph may be part of another
// one. What the outputs depend on must be inputs, constants, or computed from
// these; an input need not be used. A variable may be an output several times,
// and an input may be an output. The features are attached in their order.
func New(inputs, outputs []*Variable, features ...Feature) (*FunctionGraph, error) {
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
	for i, v := range outputs {
		if err := g.appendOutput(v, initial); err != nil {
			return fail(fmt.Errorf("output %d: %w", i, err))
		}
	}
	g.building = false
	g.forget(0)
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
		return fmt.Errorf("%w: %v is computed by an apply, so that it cannot be an input", ErrInvalid, v)
	case v.root.constant:
		return fmt.Errorf("%w: constant %v cannot be an input", ErrInvalid, v)
	case v.root.graph == g:
		return fmt.Errorf("%w: %v is an input already", ErrInvalid, v)
	case v.root.graph != nil:
		return fmt.Errorf("input %v %w", v, ErrForeign)
	}
	v.root.graph, v.root.input = g, true
	v.id = g.newVariable(v)
	g.inputs = append(g.inputs, v)
	return nil
}

// disown gives everything back that a graph which is not to be has taken.
func (g *FunctionGraph) disown() {
	for _, a := range g.applies {
		if a == nil {
			continue
		}
		a.graph, a.id = nil, outside
		for _, v := range a.outputs {
			v.id, v.clients = outside, nil
		}
	}
	for _, v := range g.variables {
		if v != nil && v.owner == nil {
			v.root.graph, v.root.input, v.id, v.clients = nil, false, outside, nil
		}
	}
	*g = FunctionGraph{}
}

// Inputs returns the inputs. The slice is shared and must not be changed.
func (g *FunctionGraph) Inputs() []*Variable { return g.inputs }

// Outputs returns the outputs. The slice is shared and changes with the graph.
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

// NumApplies returns how many applies the graph has.
func (g *FunctionGraph) NumApplies() int { return g.live }

// NumApplyIDs returns a number above that of every apply, for tables beside the
// graph.
func (g *FunctionGraph) NumApplyIDs() int { return len(g.applies) }

// NumVariableIDs returns a number above that of every variable, for tables
// beside the graph.
func (g *FunctionGraph) NumVariableIDs() int { return len(g.variables) }

// Commits returns how many changes were made to the graph and not undone at
// once. As long as it stays the same, so does the graph.
func (g *FunctionGraph) Commits() int { return g.commits }

// ImportedBy returns who brought a into the graph, the zero Reason if a is not
// part of it or if the graph was made with it.
func (g *FunctionGraph) ImportedBy(a *Apply) Reason {
	if !g.Contains(a) || g.reasons[a.by] == initial {
		return Reason{}
	}
	return g.reasons[a.by]
}

// number returns the place of why in g.reasons.
func (g *FunctionGraph) number(why Reason) int32 {
	if last := len(g.reasons) - 1; last >= 0 && g.reasons[last] == why {
		return int32(last)
	}
	i, known := g.reason[why]
	if !known {
		if g.reason == nil {
			g.reason = make(map[Reason]int32)
		}
		i = int32(len(g.reasons))
		g.reasons, g.reason[why] = append(g.reasons, why), i
	}
	return i
}

// Contains reports whether a is part of the graph.
func (g *FunctionGraph) Contains(a *Apply) bool { return a != nil && a.graph == g }

// ApplyByID returns the apply of a number, or nil if the number is free.
func (g *FunctionGraph) ApplyByID(id int) *Apply {
	if id < 0 || id >= len(g.applies) {
		return nil
	}
	return g.applies[id]
}

// VariableByID returns the variable of a number, or nil if the number is free.
func (g *FunctionGraph) VariableByID(id int) *Variable {
	if id < 0 || id >= len(g.variables) {
		return nil
	}
	return g.variables[id]
}

// Applies yields the applies in the order of their numbers. The graph may
// change meanwhile: what has left it is not yielded, what joins it may be.
func (g *FunctionGraph) Applies() iter.Seq[*Apply] {
	return func(yield func(*Apply) bool) {
		for id := 0; id < len(g.applies); id++ {
			if a := g.applies[id]; a != nil && !yield(a) {
				return
			}
		}
	}
}

// Variables yields the variables in the order of their numbers: inputs,
// constants in use, and all outputs of the applies.
func (g *FunctionGraph) Variables() iter.Seq[*Variable] {
	return func(yield func(*Variable) bool) {
		for id := 0; id < len(g.variables); id++ {
			if v := g.variables[id]; v != nil && !yield(v) {
				return
			}
		}
	}
}

// Ordered yields the applies in a topological order, inputs before clients. It
// is the order that the graph keeps up for itself, without further orderings of
// features; it follows from the history of the graph and costs nothing to get.
// The graph must not change meanwhile.
func (g *FunctionGraph) Ordered() iter.Seq[*Apply] {
	return func(yield func(*Apply) bool) {
		for id := range g.order.all() {
			if !yield(g.applies[id]) {
				return
			}
		}
	}
}

// ComesBefore reports whether a stands before b in the order of
// [FunctionGraph.Ordered], in constant time. If it does not, b does not depend
// on a.
func (g *FunctionGraph) ComesBefore(a, b *Apply) bool { return g.order.less(a.id, b.id) }

// newApply finds a number for a.
func (g *FunctionGraph) newApply(a *Apply) int32 {
	g.live++
	if n := len(g.freeApplies); n > 0 {
		id := g.freeApplies[n-1]
		g.freeApplies = g.freeApplies[:n-1]
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
	if n := len(g.freeVars); n > 0 {
		id := g.freeVars[n-1]
		g.freeVars = g.freeVars[:n-1]
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

// CheckOp returns an error if op is nil or cannot be compared, as every op of a
// graph can.
func CheckOp(op Op) error {
	if op == nil {
		return fmt.Errorf("%w: no op", ErrInvalid)
	}
	switch k := reflect.TypeOf(op).Kind(); {
	case reflect.Bool <= k && k <= reflect.Complex128, k == reflect.String, k == reflect.Pointer:
		return nil // compared as they are, whatever their value
	}
	if _, ok := op.(OpEqualer); !ok && !reflect.ValueOf(op).Comparable() {
		return fmt.Errorf("%w: op %v of type %T cannot be compared: it needs EqualOp and HashOp", ErrInvalid, op, op)
	}
	return nil
}

// checkOp is [CheckOp] for very many ops of few types: where values of a type
// can be compared whatever they are, as those can that contain no interface, it
// goes through the fields once.
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
		if g.plainOps == nil {
			g.plainOps = make(map[reflect.Type]bool)
		}
		g.plainOps[t] = plain
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

// locked returns why nobody may change the graph now, or nil.
func (g *FunctionGraph) locked() error {
	switch {
	case g.busy:
		return fmt.Errorf("%w: a callback must not change the graph", ErrInvalid)
	case g.frozen:
		g.tried = true
		return fmt.Errorf("%w: a rule must not change the graph, but propose what is to change", ErrInvalid)
	}
	return nil
}

func itoa(i int32) string { return strconv.Itoa(int(i)) }
