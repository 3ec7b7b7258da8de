package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrArgument is wrapped when a Function is called with arguments that do not fit its inputs.
var ErrArgument = errors.New("arguments do not fit")

// Optimizer is what a Function lets work on its graph: an optdb.Optimizer, for example.
type Optimizer interface {
	Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error
}

// A Shared is a variable with a value of its own, which functions read without being handed it, and may update. It belongs to one
// goroutine at a time, with all functions that use it.
type Shared struct {
	variable *fgraph.Variable
	value    *array.Array
}

// NewShared returns a variable with a value, of which a copy is made. Its type knows nothing of the shape but the number of dimensions, so
// that the value may change its size.
func NewShared(name string, value *array.Array) *Shared {
	shape := make([]int, value.NDim())
	for i := range shape {
		shape[i] = tensor.Unknown
	}
	t := tensor.NewType(value.DType(), shape...)
	if value.IsCSR() {
		t = tensor.CSRType(value.DType())
	}
	return &Shared{fgraph.NewInput(t, name), value.Clone()}
}

// Variable returns the variable, to be used in expressions.
func (s *Shared) Variable() *fgraph.Variable { return s.variable }

// Value returns the value, which changes when a function updates it.
func (s *Shared) Value() *array.Array { return s.value }

// SetValue changes the value to a copy of v. The error wraps ErrArgument.
func (s *Shared) SetValue(v *array.Array) error {
	if err := s.variable.Type().(tensor.Type).Holds(v); err != nil {
		return fmt.Errorf("%w: shared variable %s: %w", ErrArgument, s.variable.Name(), err)
	}
	s.value = v.Clone()
	return nil
}

// An Update says that a shared variable takes a new value after each call, computed from the old one of this and of others.
type Update struct {
	Shared *Shared
	New    *fgraph.Variable
}

// FunctionOptions say how a Function is made. The zero value is a function without optimization.
type FunctionOptions struct {
	// Optimizer works on the graph before it is compiled; nil: none.
	Optimizer Optimizer
	// Shared lists the shared variables that are only read. Those that are updated need not be named again.
	Shared []*Shared
	// Updates are made after each call.
	Updates []Update
	// Mutable lists inputs whose arrays a call may destroy.
	Mutable []*fgraph.Variable
	// MaxBytes bounds the memory of a call; 0: array.DefaultMaxBytes.
	MaxBytes int64
	// Check makes every call look whether the ops do what they declare: the first that overwrites an input which is not in its destroy
	// map, returns memory of an input which is in neither map, or computes something else than the type that was inferred is an
	// error that wraps ErrDeclaration. An Optimizer with a method Debugging that returns true asks for it too.
	Check bool
	// Profile makes the optimizer be recorded and calls be measured, see Runner.Profile.
	Profile bool
}

// A Function is a compiled tensor graph. It is immutable: any number of goroutines may call it at once, unless it has shared variables.
type Function struct {
	graph     *fgraph.FunctionGraph
	steps     []step
	inputs    []int32 // slots; first the arguments, then the shared variables
	destroyed []int32 // places in inputs of those that are overwritten
	types     []tensor.Type
	outputs   []output
	consts    []constSlot
	slots     int
	roots     []int32 // for each slot the one whose memory it shows
	kinds     []slotKind
	shared    []*Shared
	updates   []*Shared // for the last outputs
	opts      FunctionOptions
	profile   profile.Function
}

// A step computes an apply.
type step struct {
	apply   *fgraph.Apply
	kernel  tensor.Kernel
	in, out []int32
	free    []int32 // slots whose memory nobody reads any more
}

type output struct {
	slot int32
	copy bool // the memory belongs to somebody else
}

type constSlot struct {
	slot  int32
	value *array.Array
}

type slotKind uint8

const (
	computed  slotKind = iota // memory of the workspace
	foreign                   // memory of a caller, of a shared variable or of a constant
	displayed                 // memory of the workspace that an output shows
)

// NewFunction compiles the outputs as a function of the inputs. The expressions are copied, and can be used again.
func NewFunction(ctx context.Context, inputs, outputs []*fgraph.Variable, opts FunctionOptions) (*Function, error) {
	start := time.Now()
	f := &Function{opts: opts}
	if d, ok := opts.Optimizer.(interface{ Debugging() bool }); ok && d.Debugging() {
		f.opts.Check = true
	}
	seen := map[*Shared]bool{}
	add := func(s *Shared) {
		if !seen[s] {
			seen[s] = true
			f.shared = append(f.shared, s)
		}
	}
	for _, s := range opts.Shared {
		add(s)
	}
	all := append([]*fgraph.Variable{}, outputs...)
	for _, u := range opts.Updates {
		if !u.Shared.variable.Type().Accepts(u.New.Type()) {
			return nil, fmt.Errorf("%w: update of %s, a %v, to a %v", tensor.ErrType, u.Shared.variable.Name(), u.Shared.variable.Type(), u.New.Type())
		}
		add(u.Shared)
		f.updates = append(f.updates, u.Shared)
		all = append(all, u.New)
	}
	ins := append([]*fgraph.Variable{}, inputs...)
	for _, s := range f.shared {
		ins = append(ins, s.variable)
	}
	g, err := tensor.NewGraph(ins, all)
	if err != nil {
		return nil, err
	}
	d := &destroyable{may: make([]bool, len(ins)), g: g}
	for i, v := range ins {
		for _, m := range opts.Mutable {
			d.may[i] = d.may[i] || m == v
		}
		for _, u := range opts.Updates {
			d.may[i] = d.may[i] || u.Shared.variable == v
		}
	}
	if err := g.Attach(d); err != nil {
		return nil, err
	}
	if err := f.optimize(ctx, g); err != nil {
		return nil, err
	}
	link := time.Now()
	if err := f.compile(g); err != nil {
		return nil, err
	}
	f.profile.LinkTime, f.profile.CompileTime = time.Since(link), time.Since(start)
	return f, nil
}

// CompileGraph compiles a graph as it is. It belongs to the function from now on. An op that overwrites an input is executed
// after everything else that reads that; where that cannot be, or the memory must stay as it is, there is an error that wraps
// fgraph.ErrInconsistent. Arguments must stay as they are, unless a feature of the graph is an fgraph.DestroyPermitter.
func CompileGraph(g *fgraph.FunctionGraph) (*Function, error) {
	f := &Function{}
	if err := f.compile(g); err != nil {
		return nil, err
	}
	return f, nil
}

// destroyable is the feature that tells which inputs in-place ops may destroy.
type destroyable struct {
	g   *fgraph.FunctionGraph
	may []bool
}

// OnAttach finds nothing to do.
func (d *destroyable) OnAttach(*fgraph.FunctionGraph) error { return nil }

// Destroyable reports whether an input may be destroyed.
func (d *destroyable) Destroyable(v *fgraph.Variable) bool {
	for i, in := range d.g.Inputs() {
		if in == v {
			return d.may[i]
		}
	}
	return false
}

func (f *Function) optimize(ctx context.Context, g *fgraph.FunctionGraph) error {
	if f.opts.Optimizer == nil {
		return nil
	}
	var rec *profile.Recorder
	if f.opts.Profile {
		name := "optimizer"
		if o, ok := f.opts.Optimizer.(interface{ Name() string }); ok {
			name = o.Name()
		}
		rec = profile.New(name, profile.ClassSequence)
	}
	start := time.Now()
	if err := f.opts.Optimizer.Rewrite(ctx, g, rec); err != nil {
		return fmt.Errorf("optimizing: %w", err)
	}
	f.profile.OptimizerTime = time.Since(start)
	if rec != nil {
		rec.End()
		f.profile.Optimizer = rec.Record()
	}
	return nil
}

// Graph returns the graph that was compiled. It must not be changed.
func (f *Function) Graph() *fgraph.FunctionGraph { return f.graph }

// String prints the graph.
func (f *Function) String() string {
	if f == nil || f.graph == nil {
		return "no function"
	}
	return f.graph.String()
}

// validate looks whether ops that overwrite an input may.
func validate(g *fgraph.FunctionGraph) error {
	for a := range g.Applies() {
		if d, ok := a.Op().(fgraph.Destroyer); ok && len(d.DestroyMap()) > 0 {
			if err := fgraph.WatchDestroyers(g); err != nil {
				return err
			}
			break
		}
	}
	return g.Validate()
}

// compile makes the steps.
func (f *Function) compile(g *fgraph.FunctionGraph) error {
	if err := validate(g); err != nil {
		return err
	}
	order, err := g.Toposort()
	if err != nil {
		return err
	}
	f.graph = g
	f.profile.Applies = g.NumApplies()
	slot := make([]int32, g.NumVariableIDs())
	newSlot := func(v *fgraph.Variable, kind slotKind) int32 {
		n := int32(f.slots)
		slot[v.ID()] = n
		f.slots++
		f.roots, f.kinds = append(f.roots, n), append(f.kinds, kind)
		return n
	}
	for _, v := range g.Inputs() {
		t, ok := v.Type().(tensor.Type)
		if !ok {
			return fmt.Errorf("%w: input %v is a %v, which is no tensor", tensor.ErrType, v, v.Type())
		}
		f.inputs, f.types = append(f.inputs, newSlot(v, foreign)), append(f.types, t)
	}
	for v := range g.Variables() {
		if a, ok := v.Data().(*array.Array); ok && v.IsConstant() {
			f.consts = append(f.consts, constSlot{newSlot(v, foreign), a})
		}
	}
	for _, a := range order {
		op, ok := a.Op().(tensor.Op)
		if !ok {
			return fmt.Errorf("%w: %v can't be computed", tensor.ErrType, a)
		}
		k, err := op.Compile(a)
		if err != nil {
			return applyError(g, a, err)
		}
		s := step{apply: a, kernel: k}
		for _, v := range a.Inputs() {
			s.in = append(s.in, slot[v.ID()])
		}
		for _, v := range a.Outputs() {
			s.out = append(s.out, newSlot(v, computed))
		}
		for _, alias := range aliases(a.Op()) {
			if alias.Output >= 0 {
				f.roots[s.out[alias.Output]] = f.roots[s.in[alias.Input]]
			}
		}
		if d, ok := a.Op().(fgraph.Destroyer); ok {
			for _, alias := range d.DestroyMap() {
				if i := slices.Index(f.inputs, f.roots[s.in[alias.Input]]); i >= 0 {
					f.destroyed = append(f.destroyed, int32(i))
				}
			}
		}
		f.steps = append(f.steps, s)
	}
	f.plan(g, slot)
	return nil
}

// aliases lists which outputs are the memory of which inputs.
func aliases(op fgraph.Op) []fgraph.Alias {
	var list []fgraph.Alias
	if v, ok := op.(fgraph.Viewer); ok {
		list = append(list, v.ViewMap()...)
	}
	if d, ok := op.(fgraph.Destroyer); ok {
		list = append(list, d.DestroyMap()...)
	}
	return list
}

// plan finds out when memory is not read any more.
func (f *Function) plan(g *fgraph.FunctionGraph, slot []int32) {
	taken := make(map[int32]bool)
	for i, v := range g.Outputs() {
		s := slot[v.ID()]
		root := f.roots[s]
		o := output{slot: s, copy: f.kinds[root] == foreign}
		if first := len(g.Outputs()) - len(f.updates); i >= first {
			o.copy = false // updates look at it themselves
		}
		taken[root] = true
		f.outputs = append(f.outputs, o)
		if f.kinds[root] == computed {
			f.kinds[root] = displayed
		}
	}
	last := make([]int32, f.slots) // by root
	for i := range last {
		last[i] = -1
	}
	for i, s := range f.steps {
		for _, list := range [][]int32{s.in, s.out} {
			for _, k := range list {
				last[f.roots[k]] = int32(i)
			}
		}
	}
	for root, i := range last {
		if i >= 0 && int(f.roots[root]) == root && f.kinds[root] == computed {
			f.steps[i].free = append(f.steps[i].free, int32(root))
		}
	}
}

// Profile returns what it cost to make the function. Runner.Profile adds what calls cost.
func (f *Function) Profile() *profile.Function { p := f.profile; return &p }

// An ApplyError is the failure of an apply.
type ApplyError struct {
	Apply  string        // with two levels of what it is computed from
	Origin int           // what it was made for, such as a column of an expression; -1 if that is not known
	By     fgraph.Reason // the pass and the rule that made it, empty if it was there before
	Err    error
}

// applyError returns the error for the failure of a.
func applyError(g *fgraph.FunctionGraph, a *fgraph.Apply, err error) error {
	return &ApplyError{Apply: a.String(), Origin: a.Origin(), By: g.ImportedBy(a), Err: err}
}

// Error names the apply, and where it comes from.
func (e *ApplyError) Error() string {
	var from []string
	if e.Origin >= 0 {
		from = append(from, fmt.Sprintf("from column %d", e.Origin))
	}
	if e.By != (fgraph.Reason{}) {
		from = append(from, fmt.Sprintf("by %v", e.By))
	}
	if len(from) == 0 {
		return fmt.Sprintf("%s: %v", e.Apply, e.Err)
	}
	return fmt.Sprintf("%s (%s): %v", e.Apply, strings.Join(from, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *ApplyError) Unwrap() error { return e.Err }
