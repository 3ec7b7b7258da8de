package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrArgument is wrapped if the arguments of a call don't fit the inputs of the Function.
var ErrArgument = errors.New("arguments do not fit")

// Optimizer optimizes the graph of a Function: an optdb.Optimizer, for example.
type Optimizer interface {
	Rewrite(ctx context.Context, g *fgraph.FunctionGraph, rec *profile.Recorder) error
}

// A Shared is a variable that has a value. Functions read the value without an argument, and may
// update it. Only one goroutine at a time may use it, or any function that uses it.
type Shared struct {
	variable *fgraph.Variable
	value    *array.Array
}

// NewShared returns a variable with a copy of value. Its type has the number of dimensions of
// value, but not their sizes, which may change.
func NewShared(name string, value *array.Array) *Shared {
	shape := slices.Repeat([]int{tensor.Unknown}, value.NDim())
	t := tensor.NewType(value.DType(), shape...)
	if value.IsCSR() {
		t = tensor.CSRType(value.DType())
	}
	return &Shared{fgraph.NewInput(t, name), value.Clone()}
}

// Variable returns the variable for use in expressions.
func (s *Shared) Variable() *fgraph.Variable { return s.variable }

// Value returns the value. Functions that update it change it.
func (s *Shared) Value() *array.Array { return s.value }

// SetValue sets the value to a copy of v. The error wraps ErrArgument.
func (s *Shared) SetValue(v *array.Array) error {
	if err := s.variable.Type().(tensor.Type).Holds(v); err != nil {
		return fmt.Errorf("%w: shared variable %s: %w", ErrArgument, s.variable.Name(), err)
	}
	s.value = v.Clone()
	return nil
}

// An Update gives a shared variable a new value after each call. All new values are computed from
// the old ones. After a call that fails or is cancelled, shared variables that an optimizer has
// updated in place are undefined: set them before the next call.
type Update struct {
	Shared *Shared
	New    *fgraph.Variable
}

// FunctionOptions are options of NewFunction. The zero value makes a function without optimization.
type FunctionOptions struct {
	// Optimizer optimizes the graph before it is compiled, unless it is nil.
	Optimizer Optimizer
	// Shared lists shared variables that are only read. Those in Updates need not be listed.
	Shared []*Shared
	// Updates are made after each call.
	Updates []Update
	// Mutable lists inputs whose arrays a call may destroy.
	Mutable []*fgraph.Variable
	// MaxBytes bounds the memory of a call, of which Function.Memory knows a part before. 0 means array.DefaultMaxBytes.
	MaxBytes int64
	// Threads is the number of threads that compute an op together where that pays, or small ops that
	// don't need each other side by side, which takes some more memory; 0 means 1. It changes no bit
	// of any result. Beyond the goroutine of a call they exist only during the call and some
	// microseconds after it.
	Threads int
	// Check makes every call verify that ops do what they declare. A call fails with an error that wraps
	// fgraph.ErrDeclaration if an op overwrites an input that is not in its destroy map, returns memory of
	// an input that is in neither map, or returns an array that is not of the inferred type; or if the
	// shapes that it infers, its twin in place, its part in larger ops, or swapped inputs of an op that
	// commutes give something else. An Optimizer whose method Debugging returns true turns Check on.
	Check bool
	// Profile records the optimizer and measures calls, see Runner.Profile.
	Profile bool
	// Used is told of each constant when all that reads it has been computed for the first time: ops have
	// then prepared what they need of it. Of a large one, it may be told of parts before. It may give back memory that
	// can be read again. Elements of a spent constant are not: it may be set to an array without memory, if no other
	// goroutine uses the function meanwhile, and Graph shows it so. Used may be nil.
	Used func(a *array.Array, spent bool)

	fixed bool // most calls have the same arguments as the one before, and nobody keeps results
}

// A Function is a compiled tensor graph. It is immutable. Any number of goroutines may call it at
// once, unless it has shared variables.
type Function struct {
	graph     *fgraph.FunctionGraph
	steps     []step
	regions   []region // for several threads, by their first steps
	inputs    []int32  // slots: first of the arguments, then of the shared variables
	destroyed []int32  // indexes in inputs of those that are overwritten
	types     []tensor.Type
	outputs   []output
	consts    []constSlot
	slots     int
	branches  int  // of IfElses
	ahead     bool // a step is computed ahead, see planned
	repeats   bool // a step does
	called    atomic.Bool
	idle      sync.Pool              // of Runners, for Call
	kept      atomic.Pointer[Runner] // one of them, if sizes are open
	roots     []int32                // by slot: the slot that owns its memory
	kinds     []slotKind
	memory    memoryPlan // of what has a known size
	placed    []bool     // by root: it has a home, see settled
	open      *openSizes
	shown     []int32 // roots without a home that are displayed
	shared    []*Shared
	updates   []*Shared // for the last outputs
	opts      FunctionOptions
	profile   profile.Function
}

// NewFunction compiles the outputs as a function of the inputs. It copies the expressions.
func NewFunction(ctx context.Context, inputs, outputs []*fgraph.Variable, opts FunctionOptions) (*Function, error) {
	start := time.Now()
	f := &Function{opts: opts}
	if d, ok := opts.Optimizer.(interface{ Debugging() bool }); ok && d.Debugging() {
		f.opts.Check = true
	}
	shared, all := slices.Clone(opts.Shared), slices.Clone(outputs)
	for _, u := range opts.Updates {
		if v := u.Shared.variable; !v.Type().Accepts(u.New.Type()) {
			return nil, fmt.Errorf("%w: update of %s, a %v, to a %v", tensor.ErrType, v.Name(), v.Type(), u.New.Type())
		}
		f.updates, all = append(f.updates, u.Shared), append(all, u.New)
	}
	ins := slices.Clone(inputs)
	for _, s := range append(shared, f.updates...) {
		if !slices.Contains(f.shared, s) {
			f.shared, ins = append(f.shared, s), append(ins, s.variable)
		}
	}
	g, err := tensor.NewGraph(ins, all)
	if err != nil {
		return nil, err
	}
	d := &destroyable{may: make([]bool, len(ins)), g: g}
	for i, v := range ins {
		d.may[i] = slices.Contains(opts.Mutable, v) || slices.ContainsFunc(f.updates, func(s *Shared) bool { return s.variable == v })
	}
	// Attached before the optimizer runs: passes that make ops work in place ask what they may overwrite.
	if err := g.Attach(d); err != nil {
		return nil, err
	}
	if err := f.optimize(ctx, g); err != nil {
		return nil, err
	}
	link := time.Now()
	if err := f.compile(ctx, g); err != nil {
		return nil, err
	}
	f.profile.LinkTime, f.profile.CompileTime = time.Since(link), time.Since(start)
	return f, nil
}

// CompileGraph compiles a graph as it is. The function owns the graph from now on. An op that
// overwrites an input runs after all other readers of that input. If that is impossible, or the
// memory must not change, the error wraps fgraph.ErrInconsistent. Arguments must not change, unless
// a feature of the graph is an fgraph.DestroyPermitter.
func CompileGraph(g *fgraph.FunctionGraph) (*Function, error) {
	f := new(Function)
	if err := f.compile(context.Background(), g); err != nil {
		return nil, err
	}
	return f, nil
}

// destroyable is the feature that tells which inputs ops may destroy.
type destroyable struct {
	g   *fgraph.FunctionGraph
	may []bool
}

// OnAttach does nothing.
func (d *destroyable) OnAttach(*fgraph.FunctionGraph) error { return nil }

// Destroyable reports whether an input may be destroyed.
func (d *destroyable) Destroyable(v *fgraph.Variable) bool {
	i := slices.Index(d.g.Inputs(), v)
	return i >= 0 && d.may[i]
}

// GraphSection returns which inputs may be destroyed, as a section of a graph file.
func (d *destroyable) GraphSection(id func(*fgraph.Variable) string) (name string, lines []string, err error) {
	for _, v := range d.g.Inputs() {
		if d.Destroyable(v) {
			name, lines = "mutable", append(lines, id(v))
		}
	}
	return name, lines, nil
}

// optimize runs the optimizer, if there is one.
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

// Graph returns the compiled graph. Don't change it.
func (f *Function) Graph() *fgraph.FunctionGraph { return f.graph }

// String prints the graph.
func (f *Function) String() string {
	if f == nil || f.graph == nil {
		return "no function"
	}
	return f.graph.String()
}

// An ApplyError is the failure of an apply.
type ApplyError struct {
	Apply  string        // with two levels of its inputs
	Origin int           // where it comes from, such as a column of an expression; -1 if that is unknown
	By     fgraph.Reason // the pass and the rule that made it, empty for an original apply
	Err    error
}

// applyError returns an ApplyError for a.
func applyError(g *fgraph.FunctionGraph, a *fgraph.Apply, err error) error {
	return &ApplyError{Apply: a.String(), Origin: a.Origin(), By: g.ImportedBy(a), Err: err}
}

// Error names the apply and its origin.
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
