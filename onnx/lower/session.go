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
	s.mu.Lock()
	list := slices.Clone(s.functions)
	s.mu.Unlock()
	for len(list) > 0 {
		f := list[0]
		out, err := f.Call(ctx, inputs)
		if !errors.Is(err, ErrInput) {
			s.keep(f)
			return f, out, err
		}
		list = list[1:]
		// A run that found another value is not repeated by functions that depend on that, too: values are
		// asked for in the same order for inputs of the same shapes, as long as those before are the same.
		if other := (*otherValue)(nil); errors.As(err, &other) {
			list = slices.DeleteFunc(list, func(g *Function) bool { return g.sameShapes(f) && !g.expects(f.demands[:other.at], other.value) })
		}
	}
	f, err := Model(ctx, s.model, s.options, inputs)
	if err != nil {
		return nil, nil, err
	}
	s.keep(f)
	out, err := f.Call(ctx, inputs)
	return f, out, err
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
