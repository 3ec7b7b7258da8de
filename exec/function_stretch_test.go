package exec_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A hook copies its input after it has called a function.
type hook struct{ call func() error }

func (*hook) String() string { return "hook" }

func (*hook) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}

func (h *hook) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := h.call(); err != nil {
			return err
		}
		if err := ws.New(out[0], in[0].DType(), in[0].Shape()...); err != nil {
			return err
		}
		array.CopyTo(out[0], in[0])
		return nil
	}, nil
}

// TestStretch: steps that follow each other without anything between them give the bits and the errors of steps by
// themselves, as they are when something is measured or checked: a fault has the name of its apply, nothing behind
// it is computed, and the next call is like any other.
func TestStretch(t *testing.T) {
	odd, gone := errors.New("odd"), errors.New("gone")
	var cancel context.CancelCauseFunc
	faults := map[string]struct {
		at   int // the hook that has the fault
		call func() error
		want error
		ran  int // hooks
	}{
		"error":        {1, func() error { return odd }, odd, 2},
		"panic":        {1, func() error { panic("odd") }, exec.ErrPanic, 2},
		"bounds":       {2, func() error { var x []int; _ = x[len(faultText)]; return nil }, exec.ErrPanic, 3},
		"first":        {0, func() error { return odd }, odd, 1},
		"cancellation": {1, func() error { cancel(gone); return nil }, gone, 2},
	}
	for name, c := range faults {
		for what, opts := range map[string]exec.FunctionOptions{"a stretch": {}, "two threads": {Threads: 2}, "measured": {Profile: true}, "checked": {Check: true}, "poisoned": {}} {
			fault, ran := false, 0
			x := fgraph.NewInput(tensor.NewType(array.Float32, 2, 3), "x")
			y := x
			for k := range 3 {
				y = tensor.Add(tensor.Map(array.Neg, y), tensor.Map(array.Sqr, tensor.DimShuffle(tensor.Sum(y, 0), array.NewAxis, 0)))
				y = tensor.MustApply(&hook{func() error {
					if ran++; fault && k == c.at {
						return c.call()
					}
					return nil
				}}, tensor.Add(y, tensor.Constant(array.Full(array.Float32, float64(k), 1, 1))))
			}
			f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{y}, opts)
			if err != nil {
				t.Fatal(err)
			}
			r, arg := f.NewRunner(), uniform(array.Float32, -1, 1, 2, 3)
			if what == "poisoned" {
				exec.Poisoning(r)
			}
			lent := array.New(array.Float32, 2, 3)
			want := formula(arg)
			for call := range 6 {
				if err := r.LendOutput(0, []*array.Array{nil, lent}[call/2%2]); err != nil {
					t.Fatal(err)
				}
				var ctx context.Context
				ctx, cancel = context.WithCancelCause(t.Context())
				fault, ran = call%2 == 1, 0
				out, err := r.Run(ctx, arg)
				cancel(nil)
				switch {
				case !fault && (err != nil || !array.Equal(out[0], want)):
					t.Errorf("%s, %s, call %d: %v, %v, want %v", name, what, call, out, err, want)
				case !fault && call/2%2 == 1 && out[0] != lent:
					t.Errorf("%s, %s, call %d: the result is not where it was lent", name, what, call)
				case fault && (!errors.Is(err, c.want) || !opts.Check && ran != c.ran):
					t.Errorf("%s, %s: %v after %d hooks", name, what, err, ran)
				}
				var failed *exec.ApplyError
				if named := errors.As(err, &failed); fault && named != (c.want != gone) || named && !strings.HasPrefix(failed.Apply, "hook(") {
					t.Errorf("%s, %s: %v has another name", name, what, err)
				}
				if fault && name == "panic" && !strings.Contains(fmt.Sprint(err), "TestStretch") {
					t.Errorf("%s: %v does not say where", what, err)
				}
			}
		}
	}
}

const faultText = "odd"

// formula is what TestStretch computes.
func formula(x *array.Array) *array.Array {
	y := x.Clone()
	v := array.Slice[float32](y)
	for k := range 3 {
		for j := range 3 {
			sum := float32(float64(v[j]) + float64(v[3+j]))
			for _, i := range []int{j, 3 + j} {
				v[i] = (-v[i] + float32(sum*sum)) + float32(k)
			}
		}
	}
	return y
}

// A tail is a view of all rows but the first one, which counts its calls.
type tail struct{ calls int }

func (*tail) String() string          { return "tail" }
func (*tail) ViewMap() []fgraph.Alias { return []fgraph.Alias{{Output: 0, Input: 0}} }

func (*tail) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{tensor.NewType(array.Float32, 1, 3)}, nil
}

func (*tail) LayOut(_ *fgraph.Apply, x, v *array.Array) bool {
	x.RangeTo(v, array.Range{Start: 1, Count: 1, Step: 1})
	return true
}

func (op *tail) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		op.calls++
		op.LayOut(nil, in[0], out[0])
		return nil
	}, nil
}

// A fresh op copies its input to memory of its own in each call.
type fresh struct{ hook }

func (*fresh) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		*out[0] = *in[0].Clone()
		return nil
	}, nil
}

// TestStandingViews: views of memory that is planned are made once, until a call fails; those of arguments and of
// what an op makes elsewhere are made in each call.
func TestStandingViews(t *testing.T) {
	odd := errors.New("odd")
	for name, c := range map[string]struct {
		of   func(x *fgraph.Variable) *fgraph.Variable
		want int // calls
	}{
		"planned":  {func(x *fgraph.Variable) *fgraph.Variable { return tensor.Map(array.Sqr, x) }, 2},
		"argument": {func(x *fgraph.Variable) *fgraph.Variable { return x }, 7},
		"fresh":    {func(x *fgraph.Variable) *fgraph.Variable { return tensor.MustApply(&fresh{}, x) }, 7},
	} {
		x := fgraph.NewInput(tensor.NewType(array.Float32, 2, 3), "x")
		view, fault := new(tail), false
		y := tensor.MustApply(&hook{func() error {
			if fault {
				return odd
			}
			return nil
		}}, tensor.MustApply(view, c.of(x)))
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{y}, exec.FunctionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r := f.NewRunner()
		for call := range 7 {
			fault = call == 3
			arg := array.Full(array.Float32, float64(call+2), 2, 3)
			out, err := r.Run(t.Context(), arg)
			want := float64(call + 2)
			if name == "planned" {
				want *= want
			}
			if fault != errors.Is(err, odd) || !fault && !array.Equal(out[0], array.Full(array.Float32, want, 1, 3)) {
				t.Errorf("%s, call %d: %v, %v, want %v", name, call, out, err, want)
			}
		}
		if view.calls != c.want {
			t.Errorf("%s: the view was made %d times, want %d", name, view.calls, c.want)
		}
	}
}
