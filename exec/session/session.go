package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/exec/session/internal/constants"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Session runs a model on inputs of any shapes. It makes a function for the first inputs and, when others come with
// other sizes, one for any. Where a model has none for any sizes, or depends on values, it makes a function for new
// sizes or values each time, and keeps the functions that it made last. They share weights and
// what products prepare of them. Any number of goroutines may use a Session.
type Session struct {
	options Options

	making chan struct{} // holds something while a function is made
	source *source       // of all functions, of who makes one

	mu        sync.Mutex
	functions []*Function // the latest first
	made      int
	failed    error // of a function for any sizes
}

// A session keeps functions as long as their graphs have mostApplies together, 40 MB or so, but not less than
// leastFunctions or more than mostFunctions, each of which may be asked whether it takes some inputs.
const (
	leastFunctions = 16
	mostFunctions  = 128
	mostApplies    = 1 << 14
)

// maxRunners bounds the runners of a SessionRunner. Making one takes less time than a run of all but the smallest
// models, and it has memory of its own for results and for what ops need until they end.
const maxRunners = 4

// New returns a session of a model, which must not be changed.
func New(m *onnx.Model, o Options) *Session {
	return &Session{options: o, making: make(chan struct{}, 1), source: &source{file: m, constants: constants.New(m)}}
}

// Run computes the outputs for inputs, and returns the function that did.
func (s *Session) Run(ctx context.Context, inputs map[string]*array.Array) (*Function, map[string]*array.Array, error) {
	return s.run(ctx, inputs, func(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error) {
		return f.Call(ctx, inputs)
	})
}

// A SessionRunner runs the model of a session for one goroutine. It reuses memory: a run for inputs of the shapes of
// the run before allocates next to nothing.
type SessionRunner struct {
	s       *Session
	block   array.Block // of all runners
	runners []*Runner   // the latest first
	rooms   []room      // see Stateful
}

// A room is memory for an output to grow in.
type room struct {
	output string
	memory *array.Array
}

// NewRunner returns a runner for one goroutine.
func (s *Session) NewRunner() *SessionRunner { return &SessionRunner{s: s} }

// Run is like Session.Run, but the outputs, and the map, are valid only until the next Run.
func (r *SessionRunner) Run(ctx context.Context, inputs map[string]*array.Array) (*Function, map[string]*array.Array, error) {
	return r.s.run(ctx, inputs, r.call)
}

// A caller calls a function of a session.
type caller func(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error)

func (r *SessionRunner) call(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	runner, err := r.runnerOf(f)
	if err != nil {
		return nil, err
	}
	for _, room := range r.rooms {
		if i := f.output(room.output); i >= 0 {
			runner.LendRoom(i, room.memory)
		}
	}
	return runner.Run(ctx, inputs)
}

// runnerOf returns the runner of a function, whose values are in the memory of all. If that is not enough, the others
// go, which would keep it.
func (r *SessionRunner) runnerOf(f *Function) (*Runner, error) {
	if i := slices.IndexFunc(r.runners, func(r *Runner) bool { return r.f == f }); i >= 0 {
		return r.runners[i], nil
	}
	if need := int(f.Memory().Block); need > r.block.Bytes() {
		r.runners, r.block = nil, array.Block{}
		r.block = array.NewBlock(need + need/8) // the next one may be for a little more
	}
	in, err := f.f.NewRunnerIn(r.block)
	if err != nil {
		return nil, err
	}
	r.runners = append(r.runners[max(len(r.runners)-maxRunners+1, 0):], f.runner(in))
	return r.runners[len(r.runners)-1], nil
}

// An attempt is a function that inputs are not for. If values that it depends on are others, known are those that a run
// found, see otherValue.
type attempt struct {
	f     *Function
	known []lower.Demand
}

// excludes reports whether inputs are not for a function either. Values are asked for in the same order for inputs of the
// same types, as long as those before are the same: where a run found another one, no function for it need be tried.
func (t attempt) excludes(f *Function) bool {
	same := func(v, w *fgraph.Variable) bool { return v.Name() == w.Name() && v.Type() == w.Type() }
	if n := len(t.known); n > 0 && slices.EqualFunc(f.l.Inputs, t.f.l.Inputs, same) {
		expected := func(d, e lower.Demand) bool { return array.Equal(d.Value, e.Value) }
		return n > len(f.l.Demands) || !slices.EqualFunc(f.l.Demands[:n], t.known, expected)
	}
	return f == t.f
}

func (s *Session) run(ctx context.Context, inputs map[string]*array.Array, c caller) (*Function, map[string]*array.Array, error) {
	tried, anySizes := []attempt(nil), true
	for {
		f, own, err := s.function(ctx, inputs, tried, anySizes)
		if err != nil {
			return nil, nil, err
		}
		out, err := c(ctx, f, inputs)
		if err == nil || ctx.Err() != nil || !f.open && (own || !errors.Is(err, lower.ErrInput)) {
			s.keep(f)
			return f, out, err
		}
		// One for any sizes may fail where another one would not: a size that is not known before is 1 in some runs, and
		// was not broadcast. Unless it is for other values, there is no use in another one of its kind.
		other := new(otherValue)
		if found := errors.As(err, &other); f.open && (own || !found) {
			anySizes = false
		}
		tried = append(tried, attempt{f, other.known})
	}
}

// function returns a function that may be for inputs, and whether it was made for them: many begin at a time, with inputs
// of the same shapes, and one of them makes it.
func (s *Session) function(ctx context.Context, inputs map[string]*array.Array, tried []attempt, anySizes bool) (f *Function, own bool, err error) {
	if f := s.ready(inputs, tried); f != nil {
		return f, false, nil
	}
	select {
	case s.making <- struct{}{}:
		defer func() { <-s.making }()
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	if f := s.ready(inputs, tried); f != nil {
		return f, false, nil
	}
	// Here, where only one goroutine at a time makes a function: the graph that it leaves behind serves all of
	// them.
	if err := s.generalize(ctx); err != nil {
		return nil, false, err
	}
	// One for any sizes takes as long to make as one for some sizes, and may be slower than that, so it pays from the
	// second sizes on.
	made, failed := s.Functions()
	r, open := freed(s.source.file.Graph, inputs)
	if !open || !anySizes || failed != nil || made == 0 && !s.options.AnySizes {
		r = requestFor(inputs)
	}
	f, err = s.source.function(ctx, s.options, r)
	if r.open && err != nil && ctx.Err() == nil && !errors.Is(err, lower.ErrInput) {
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		f, err = s.source.function(ctx, s.options, requestFor(inputs))
	}
	if err != nil {
		return nil, false, err
	}
	s.keep(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return f, true, nil
}

// Functions returns how many functions were made, and why none for any sizes could be, nil if one could or was not
// tried.
func (s *Session) Functions() (made int, anySizes error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.made, s.failed
}

// generalize does what passes for nodes can do whatever the shapes are, such as joining weights, once for all
// functions: most of their work.
func (s *Session) generalize(ctx context.Context) error {
	g := s.source.file.Graph
	if s.source.nodes != nil || s.options.Optimizer == nil || g == nil || !slices.ContainsFunc(g.Inputs, anyShape) {
		return nil
	}
	nodes, err := imported(s.source.file, s.options, nil)
	if err != nil {
		return err
	}
	ir.SourceOf(nodes).AllowGrowth(maxConstants)
	if err := s.options.Optimizer.Rewrite(ctx, nodes, nil); err != nil {
		return fmt.Errorf("optimizing nodes: %w", err)
	}
	s.source.nodes = nodes
	return nil
}

// anyShape reports whether the model takes tensors of several shapes as an input.
func anyShape(in *onnx.ValueInfo) bool {
	t := in.Type
	return t == nil || t.Tensor == nil || t.Tensor.Shape == nil ||
		slices.ContainsFunc(t.Tensor.Shape.Dims, func(d *onnx.Dim) bool { return d.Value == nil })
}

// ready returns the function used last of those that the inputs may be for, nil if there is none.
func (s *Session) ready(inputs map[string]*array.Array, tried []attempt) *Function {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.functions {
		if !slices.ContainsFunc(tried, func(t attempt) bool { return t.excludes(f) }) && f.refuses(inputs) == nil {
			return f
		}
	}
	return nil
}

// keep makes a function the latest one, and forgets those that have not been used for longest.
func (s *Session) keep(f *Function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.functions) > 0 && s.functions[0] == f {
		return
	}
	s.functions = slices.DeleteFunc(s.functions, func(g *Function) bool { return g == f })
	s.functions = slices.Insert(s.functions, 0, f)
	applies := 0
	for i, f := range s.functions {
		if applies += f.Graph().NumApplies(); i >= mostFunctions || i >= leastFunctions && applies > mostApplies {
			s.functions = slices.Delete(s.functions, i, len(s.functions))
			return
		}
	}
}
