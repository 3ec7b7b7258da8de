package repro_test

import (
	"testing"

	"github.com/nnopt/nnopt/nnet3/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/networks"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// TestWorlds: networks implement every interface, and tensors all for which the defaults would not do. A method with another
// signature would be overlooked.
func TestWorlds(t *testing.T) {
	type running interface {
		repro.Evaluator
		repro.Recorder
		repro.Formatter
		repro.Simplifier
		repro.Shrinker
	}
	type complete interface {
		running
		repro.Attacher
		repro.Limiter
	}
	if w, ok := tensors.World(expr.Default().Dialect()).(running); !ok {
		t.Errorf("%T lacks a method", w)
	}
	if w, ok := networks.World(nil, lower.Dialect{}).(complete); !ok {
		t.Errorf("%T lacks a method", w)
	}
}

// wrapping is a world that hides what another one implements.
type wrapping struct{ repro.World }

func (w wrapping) Unwrap() repro.World { return w.World }

// TestUnwrap: what a world does not implement, the one that it wraps is asked for.
func TestUnwrap(t *testing.T) {
	c := failing(t, "tanh(x)*y", "wrong: (tanh x) => (sin x)")
	c.World = wrapping{wrapping{c.World}}
	if f, err := repro.Check(t.Context(), c); err != nil || !f.Same(c.Failure) {
		t.Errorf("%v, %v", f, err)
	}
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	check(t, err)
	if small.Graph.NumApplies() != 1 || !small.Query.Equal(optdb.Include("wrong")) {
		t.Error(text(t, small))
	}
	reread(t, small)
}
