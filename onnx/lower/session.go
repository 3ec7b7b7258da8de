package lower

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Session runs a model on inputs of any shapes. It keeps the functions that it made last: another
// one is made for inputs of other shapes, and where a graph depends on values, for others of these. Any
// number of goroutines may use it.
type Session struct {
	model   *onnx.Model
	options Options

	mu        sync.Mutex
	functions []*Function // the latest first
}

// maxFunctions bounds the functions of a session. Each has a graph, and the weights that the optimizer
// changed for it.
const maxFunctions = 16

// NewSession returns a session of a model, which must not be changed.
func NewSession(m *onnx.Model, o Options) *Session { return &Session{model: m, options: o} }

// Run computes the outputs for inputs, and returns the function that did.
func (s *Session) Run(ctx context.Context, inputs map[string]*array.Array) (*Function, map[string]*array.Array, error) {
	return s.run(ctx, inputs, once{})
}

// A SessionRunner runs the model of a session for one goroutine. It reuses memory: a run for inputs of the shapes of
// the run before allocates next to nothing.
type SessionRunner struct {
	s       *Session
	runners []*Runner // the latest first
}

// NewRunner returns a runner for one goroutine.
func (s *Session) NewRunner() *SessionRunner { return &SessionRunner{s: s} }

// Run is like Session.Run, but the outputs, and the map, are valid only until the next Run.
func (r *SessionRunner) Run(ctx context.Context, inputs map[string]*array.Array) (*Function, map[string]*array.Array, error) {
	return r.s.run(ctx, inputs, r)
}

// A caller calls functions of a session.
type caller interface {
	call(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error)
}

// once calls functions whose results are kept.
type once struct{}

func (once) call(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	return f.Call(ctx, inputs)
}

func (r *SessionRunner) call(ctx context.Context, f *Function, inputs map[string]*array.Array) (map[string]*array.Array, error) {
	i := 0
	for i < len(r.runners) && r.runners[i].f != f {
		i++
	}
	switch {
	case i == len(r.runners) && i < maxFunctions:
		r.runners = append(r.runners, f.NewRunner())
	case i == len(r.runners): // the one that has not been used for longest goes
		i--
		r.runners[i] = f.NewRunner()
	}
	latest := r.runners[i]
	copy(r.runners[1:i+1], r.runners[:i])
	r.runners[0] = latest
	return latest.Run(ctx, inputs)
}

func (s *Session) run(ctx context.Context, inputs map[string]*array.Array, c caller) (*Function, map[string]*array.Array, error) {
	// Most runs are for inputs of the shapes of the run before.
	latest := s.latest()
	if latest != nil {
		out, err := c.call(ctx, latest, inputs)
		if !errors.Is(err, ErrInput) {
			return latest, out, err
		}
		if f, out, err, ok := s.search(ctx, inputs, c, latest, err); ok {
			return f, out, err
		}
	}
	f, err := Model(ctx, s.model, s.options, inputs)
	if err != nil {
		return nil, nil, err
	}
	s.keep(f)
	out, err := c.call(ctx, f, inputs)
	return f, out, err
}

// latest returns the function of the last run, or nil.
func (s *Session) latest() *Function {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.functions) == 0 {
		return nil
	}
	return s.functions[0]
}

// search asks the functions besides f, which has refused the inputs with an error.
func (s *Session) search(ctx context.Context, inputs map[string]*array.Array, c caller, f *Function, err error) (*Function, map[string]*array.Array, error, bool) {
	s.mu.Lock()
	list := slices.Clone(s.functions)
	s.mu.Unlock()
	for {
		list = slices.DeleteFunc(list, func(g *Function) bool { return g == f })
		// A run that found another value is not repeated by functions that depend on that, too: values are
		// asked for in the same order for inputs of the same shapes, as long as those before are the same.
		if other := (*otherValue)(nil); errors.As(err, &other) {
			list = slices.DeleteFunc(list, func(g *Function) bool { return g.sameShapes(f) && !g.expects(f.demands[:other.at], other.value) })
		}
		if len(list) == 0 {
			return nil, nil, nil, false
		}
		var out map[string]*array.Array
		f = list[0]
		if out, err = c.call(ctx, f, inputs); !errors.Is(err, ErrInput) {
			s.keep(f)
			return f, out, err, true
		}
	}
}

// sameShapes reports whether functions are for inputs of the same shapes.
func (f *Function) sameShapes(g *Function) bool {
	return slices.Equal(f.inputs, g.inputs) && slices.EqualFunc(f.shapes, g.shapes, func(a, b *array.Array) bool {
		return a.DType() == b.DType() && array.SameShape(a, b)
	})
}

// expects reports whether the values that the function depends on begin with those of demands and then have
// this one.
func (f *Function) expects(demands []demand, value *array.Array) bool {
	n := len(demands)
	return len(f.demands) > n && array.Equal(f.demands[n].value, value) &&
		slices.EqualFunc(f.demands[:n], demands, func(a, b demand) bool { return array.Equal(a.value, b.value) })
}

// keep makes a function the latest one.
func (s *Session) keep(f *Function) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.functions, f); i >= 0 {
		s.functions = slices.Delete(s.functions, i, i+1)
	} else if len(s.functions) == maxFunctions {
		s.functions = slices.Delete(s.functions, maxFunctions-1, maxFunctions)
	}
	s.functions = slices.Insert(s.functions, 0, f)
}
