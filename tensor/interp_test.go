package tensor_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"weak"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/interp"
)

type variable = fgraph.Variable

// A log records what is computed by the ops that it makes.
type log struct {
	ran  []string
	made []weak.Pointer[float64] // the memory of results
}

// copyOf returns a copy of x, made by an op with a name.
func (l *log) copyOf(name string, x *variable) *variable { return tensor.MustApply(noted{name, l}, x) }

// alive returns how many results there are.
func (l *log) alive() (n int) {
	runtime.GC()
	for _, p := range l.made {
		if p.Value() != nil {
			n++
		}
	}
	return n
}

// noted copies its input.
type noted struct {
	name string
	log  *log
}

func (op noted) String() string { return op.name }

func (op noted) Infer(in []*variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}

func (op noted) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		if op.name == "panics" {
			panic("on purpose")
		}
		*out[0] = *in[0].Clone()
		op.log.ran = append(op.log.ran, op.name)
		op.log.made = append(op.log.made, weak.Make(&array.Slice[float64](out[0])[0]))
		return nil
	}, nil
}

const large = 1 << 12 // elements

func vector(n int, v float64) *array.Array { return array.Full(array.Float64, v, n) }

func input(d array.DType, shape ...int) *variable {
	return fgraph.NewInput(tensor.NewType(d, shape...), "")
}

func ifElse(c, then, otherwise *variable) *variable {
	return tensor.IfElse(c, []*variable{then}, []*variable{otherwise})[0]
}

// TestLazy: of an IfElse one branch is computed, and the other one's inputs need no value.
func TestLazy(t *testing.T) {
	for _, taken := range []bool{true, false} {
		var l log
		x, nothing, c := input(array.Float64, 2), input(array.Float64, 2), input(array.Bool)
		shared := l.copyOf("shared", x)
		inner := ifElse(c, l.copyOf("then", shared), l.copyOf("no input", nothing))
		otherwise := l.copyOf("otherwise", l.copyOf("before", shared))
		in := interp.New(t.Context())
		in.Set(x, vector(2, 3))
		in.Set(c, array.Scalar(taken))
		got, err := in.Value(tensor.Add(ifElse(c, inner, otherwise), shared))
		if err != nil || got.Float(1) != 6 {
			t.Fatal(got, err)
		}
		want := []string{"shared", "then"}
		if !taken {
			want = []string{"shared", "before", "otherwise"}
		}
		if slices.Sort(want); !slices.Equal(slices.Sorted(slices.Values(l.ran)), want) {
			t.Errorf("%v: %v were computed, not %v", taken, l.ran, want)
		}
	}
}

// TestConditionOfBranch: a condition depends on another IfElse, and both have a branch in common.
func TestConditionOfBranch(t *testing.T) {
	var l log
	x, c := input(array.Float64, 1), input(array.Bool)
	a, b := l.copyOf("a", x), l.copyOf("b", x)
	first := ifElse(c, a, b)
	second := ifElse(tensor.Map(array.Gt, tensor.Sum(first), tensor.Float(0)), tensor.Mul(b, first), l.copyOf("d", a))
	in := interp.New(t.Context())
	in.Set(x, vector(1, 2))
	in.Set(c, array.Scalar(true))
	if got, err := in.Value(second); err != nil || got.Float(0) != 4 || !slices.Equal(l.ran, []string{"a", "b"}) {
		t.Error(got, err, l.ran)
	}
}

// TestDropped: of a chain two large values are held at a time, the one that is read and the one that is made.
// Small values, what was asked for and, with KeepAll, all stay.
func TestDropped(t *testing.T) {
	for _, keep := range []int64{0, 1 << 30} {
		var l log
		x := input(array.Float64, large)
		asked := l.copyOf("asked", x)
		most, y := 0, asked
		for range 5 {
			y = l.copyOf("chain", y)
		}
		little := l.copyOf("little", tensor.Sum(y))
		y = tensor.MustApply(looked{func() { most = max(most, l.alive()) }}, l.copyOf("chain", y))
		in := interp.New(t.Context())
		in.KeepAll = keep
		in.Set(x, vector(large, 1))
		for _, v := range []*variable{asked, tensor.Add(y, little)} {
			if _, err := in.Value(v); err != nil {
				t.Fatal(err)
			}
		}
		want := 3 // with what was asked for and the small one
		if keep > 0 {
			want = len(l.made)
		}
		if most != want || len(l.ran) != 8 {
			t.Errorf("KeepAll %d: there are %d results at a time, not %d, of %v", keep, most, want, l.ran)
		}
		for _, v := range []*variable{asked, little} {
			if _, err := in.Value(v); err != nil || len(l.ran) != 8 {
				t.Errorf("KeepAll %d: a value is computed again: %v %v", keep, l.ran, err)
			}
		}
	}
}

// looked looks at something when it runs.
type looked struct{ look func() }

func (looked) String() string { return "looked" }

func (looked) Infer(in []*variable) ([]fgraph.Type, error) { return []fgraph.Type{in[0].Type()}, nil }

func (op looked) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		op.look()
		*out[0] = *in[0].Clone()
		return nil
	}, nil
}

// TestUntaken: what only a branch reads that is not taken is dropped before the other one runs.
func TestUntaken(t *testing.T) {
	var l log
	x := input(array.Float64, large)
	a := l.copyOf("a", x)
	n := 0
	taken := tensor.MustApply(looked{func() { n = l.alive() }}, x)
	y := ifElse(tensor.Map(array.Gt, tensor.Sum(a), tensor.Float(0)), taken, l.copyOf("otherwise", l.copyOf("before", a)))
	in := interp.New(t.Context())
	in.Set(x, vector(large, 1))
	if _, err := in.Value(y); err != nil || n != 0 || !slices.Equal(l.ran, []string{"a"}) {
		t.Errorf("%d of %v are held, %v", n, l.ran, err)
	}
}

// TestValues: what several values need is computed once for all.
func TestValues(t *testing.T) {
	var l log
	x := input(array.Float64, large)
	a := l.copyOf("a", x)
	in := interp.New(t.Context())
	in.Set(x, vector(large, 2))
	list, err := in.Values([]*variable{tensor.Sqr(a), x, tensor.Neg(a), tensor.Float(7)})
	if err != nil || len(l.ran) != 1 || list[0].Float(0) != 4 || list[1].Float(0) != 2 || list[2].Float(0) != -2 || list[3].Float(0) != 7 {
		t.Error(list, err, l.ran)
	}
}

// TestDestroyed: an op that overwrites an input gets a copy of it, of a constant as well.
func TestDestroyed(t *testing.T) {
	x := input(array.Float64, 2)
	c, given := tensor.Constant(vector(2, 5)), vector(2, 3)
	add := tensor.Elemwise{Op: array.Add, Inplace: 1}
	y := tensor.Add(tensor.MustApply(add, x, c), tensor.MustApply(add, c, x))
	in := interp.New(t.Context())
	in.Set(x, given)
	got, err := in.Value(tensor.Add(y, x))
	if err != nil || got.Float(0) != 19 || given.Float(0) != 3 || tensor.ConstantOf(c).Float(0) != 5 {
		t.Error(got, err, given, c)
	}
}

// TestFaults: what can't be computed is an error, and the interpreter can go on.
func TestFaults(t *testing.T) {
	var l log
	x, nothing := input(array.Float64, large), input(array.Float64, large)
	in := interp.New(t.Context())
	in.MaxBytes = 1 << 16
	in.Set(x, vector(large, 1))
	for name, of := range map[string]struct {
		v    *variable
		want error
	}{
		"no input": {tensor.Add(x, nothing), interp.ErrInput},
		"panic":    {l.copyOf("panics", x), tensor.ErrPanic},
		"memory":   {tensor.Outer(x, x), array.ErrTooLarge},
	} {
		if _, err := in.Value(of.v); !errors.Is(err, of.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := in.Value(tensor.Sum(x)); err != nil || got.Float(0) != large {
		t.Error(got, err)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	in = interp.New(ctx)
	in.Set(x, vector(large, 1))
	y := tensor.MustApply(looked{func() { cancel(enough) }}, x)
	if _, err := in.Value(l.copyOf("too late", y)); err != enough || len(l.ran) > 0 {
		t.Error(err, l.ran)
	}
}

// TestState: a program is run step by step, holds no more than is to be read, and says when that is too much.
func TestState(t *testing.T) {
	x := input(array.Float64, 4)
	a := tensor.Neg(x)
	b := tensor.Sqr(a)
	y, z := tensor.Add(a, b), tensor.Exp(x)
	var p interp.Program
	first := p.Slots([]*variable{x})
	p.Append([]*variable{y}, nil)
	p.Append([]*variable{y, z}, nil) // shares the first
	p.Keep(y)
	if len(p.Steps) != 4 {
		t.Fatalf("%d steps", len(p.Steps))
	}
	for _, bound := range []int64{0, 96, 95} { // a, b and y are 96 bytes
		s := p.Start(vector(4, 3))
		s.MaxBytes = bound
		var err error
		for n, step := range p.Steps {
			k, failed := tensor.Compile(step.Apply)
			if err = errors.Join(failed, s.Run(new(array.Workspace), n, k)); err != nil {
				break
			}
		}
		if bound == 95 {
			if !errors.Is(err, interp.ErrMemory) {
				t.Error(err)
			}
			continue
		}
		if err != nil || s.Of(a) != nil || s.Of(b) != nil || s.Of(z) != nil || s.Of(y).Float(0) != 6 || s.Values[first[0]] == nil {
			t.Error(s.Values, err)
		}
	}
}

// TestDoubled: all values that there are at a time count, not only those of an apply.
func TestDoubled(t *testing.T) {
	x := input(array.Float64, 1024)
	y := x
	for range 4 {
		y = tensor.Join(0, y, y)
	}
	for limit, ok := range map[int64]bool{24 << 13: true, 23 << 13: false} { // 8 and 16 times x
		in := interp.New(t.Context())
		in.MaxBytes = limit
		in.Set(x, vector(1024, 1))
		if _, err := in.Value(y); ok != (err == nil) || !ok && !errors.Is(err, array.ErrTooLarge) {
			t.Errorf("within %d bytes: %v", limit, err)
		}
	}
}
