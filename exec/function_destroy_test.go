package exec_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// over applies an element-wise op that overwrites its first argument.
func over(t *testing.T, op array.Opcode, args ...*fgraph.Variable) *fgraph.Variable {
	t.Helper()
	e := tensor.OpFor(op).(tensor.Elemwise)
	e.Inplace = 1
	a, err := tensor.Make(e, args...)
	if err != nil {
		t.Fatal(err)
	}
	return a.Out()
}

// TestCompileGraphOfDestroyers: ops read an input before it is overwritten, or CompileGraph fails.
// No handler is attached.
func TestCompileGraphOfDestroyers(t *testing.T) {
	for _, c := range []struct {
		name    string
		outputs func(x *fgraph.Variable) []*fgraph.Variable
		want    string // values for x = [1, 2], or part of the error
		err     error
	}{
		{"an argument", func(x *fgraph.Variable) []*fgraph.Variable { return []*fgraph.Variable{over(t, array.Neg, x)} },
			"it is memory of x, an input that may not be destroyed", fgraph.ErrInconsistent},
		{"a constant", func(x *fgraph.Variable) []*fgraph.Variable {
			return []*fgraph.Variable{over(t, array.Add, tensor.Constant(array.Of([]float64{1, 1}, 2)), x)}
		}, "memory of the constant", fgraph.ErrInconsistent},
		{"read by others, who can come first", func(x *fgraph.Variable) []*fgraph.Variable {
			a := tensor.Add(x, x)
			return []*fgraph.Variable{over(t, array.Neg, a), tensor.Sqr(a)}
		}, "[[-2.0, -4.0] [4.0, 16.0]]", nil},
		{"read by others, who can't", func(x *fgraph.Variable) []*fgraph.Variable {
			a := tensor.Add(x, x)
			return []*fgraph.Variable{tensor.Add(over(t, array.Neg, a), a)}
		}, "reads it, but has to come later", fgraph.ErrInconsistent},
		{"an output", func(x *fgraph.Variable) []*fgraph.Variable {
			a := tensor.Add(x, x)
			return []*fgraph.Variable{a, over(t, array.Neg, a)}
		}, "an output of the graph", fgraph.ErrInconsistent},
		{"twice", func(x *fgraph.Variable) []*fgraph.Variable {
			a := tensor.Add(x, x)
			return []*fgraph.Variable{over(t, array.Neg, a), over(t, array.Sqr, a)}
		}, "multiple destroyers", fgraph.ErrInconsistent},
	} {
		x := tensor.Vector("x")
		g, err := tensor.NewGraph([]*fgraph.Variable{x}, c.outputs(x))
		if err != nil {
			t.Fatal(err)
		}
		f, err := exec.CompileGraph(g)
		if err != nil {
			if f != nil || !errors.Is(err, c.err) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, %v", c.name, f, err)
			}
			continue
		}
		arg := array.Of([]float64{1, 2}, 2)
		got, err := f.Call(t.Context(), arg)
		if err != nil || fmt.Sprint(got) != c.want || arg.String() != "[1.0, 2.0]" {
			t.Errorf("%s: %v, %v, and the argument is %v", c.name, got, err, arg)
		}
	}
}

// TestArgumentsInOneMemory: an array that is passed twice is not overwritten before it is read.
func TestArgumentsInOneMemory(t *testing.T) {
	x, y := tensor.Vector("x"), tensor.Vector("y")
	for range 2 {
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, []*fgraph.Variable{tensor.Add(over(t, array.Neg, x), tensor.Sqr(y))},
			exec.FunctionOptions{Mutable: []*fgraph.Variable{x}})
		if err != nil {
			t.Fatal(err)
		}
		a := array.Of([]float64{1, 2}, 2)
		if got, err := f.Call(t.Context(), a, a); err != nil || got[0].String() != "[0.0, 2.0]" {
			t.Errorf("%v, %v", got, err)
		}
		if got, err := f.Call(t.Context(), a, a.Clone()); err != nil || got[0].String() != "[0.0, 2.0]" || a.String() != "[-1.0, -2.0]" {
			t.Errorf("%v, %v, and the argument that may be overwritten is %v", got, err, a)
		}
		x, y = tensor.Vector("x"), tensor.Vector("y")
	}
}

// TestArgumentsThatOverlap: memory that arguments, constants or elements of an argument have in common is not
// overwritten before it is read, wherever each of them begins.
func TestArgumentsThatOverlap(t *testing.T) {
	vector := func(elements ...float64) *array.Array { return array.Of(elements, len(elements)) }
	times := func(x *fgraph.Variable, by *array.Array) *fgraph.Variable {
		return over(t, array.Mul, x, tensor.Constant(by))
	}
	x, y := tensor.Vector("x"), tensor.Vector("y")
	constants := []float64{1, 2, 3, 4}
	for _, c := range []struct {
		name    string
		outputs []*fgraph.Variable
		args    func(buf []float64) (x, y *array.Array)
		want    []*array.Array
	}{
		{"two arguments", []*fgraph.Variable{times(x, vector(2)), times(y, vector(3))}, func(buf []float64) (x, y *array.Array) {
			return array.Of(buf[:3], 3), array.Of(buf[1:], 3)
		}, []*array.Array{vector(2, 4, 6), vector(6, 9, 12)}},
		{"one that is read", []*fgraph.Variable{tensor.Add(times(x, vector(2)), tensor.Sqr(y))}, func(buf []float64) (x, y *array.Array) {
			return array.Of(buf[1:], 3), array.Of(buf[:3], 3)
		}, []*array.Array{vector(5, 10, 17)}},
		{"a constant", []*fgraph.Variable{times(x, array.Of(constants[1:], 3)), times(y, vector(1))}, func([]float64) (x, y *array.Array) {
			return array.Of(constants[:3], 3), vector(0)
		}, []*array.Array{vector(2, 6, 12), vector(0)}},
	} {
		for _, check := range []bool{false, true} {
			f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x, y}, c.outputs, exec.FunctionOptions{Mutable: []*fgraph.Variable{x, y}, Check: check})
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for range 2 {
				first, second := c.args([]float64{1, 2, 3, 4})
				got, err := f.Call(t.Context(), first, second)
				if err != nil {
					t.Errorf("%s: %v", c.name, err)
				}
				for i, a := range got {
					if !array.Equal(a, c.want[i]) {
						t.Errorf("%s: output %d is %v, not %v", c.name, i, a, c.want[i])
					}
				}
			}
		}
	}
}

// TestArgumentThatRepeats: an element of an argument that stands for several is not overwritten before all are read.
func TestArgumentThatRepeats(t *testing.T) {
	const n = 2000 // of the elements of a block more than one
	repeat := func(v float64) *array.Array {
		rows, err := array.Full(array.Float64, v, 1, n).BroadcastTo(2, n)
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	x := tensor.Matrix("x")
	two := tensor.Constant(array.Full(array.Float64, 2, 1, 1))
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{over(t, array.Mul, x, two)},
		exec.FunctionOptions{Mutable: []*fgraph.Variable{x}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Call(t.Context(), repeat(1))
	if err != nil || !array.Equal(got[0], repeat(2)) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestNoFunction: a nil or zero Function can be printed.
func TestNoFunction(t *testing.T) {
	var none *exec.Function
	if got := fmt.Sprint(none.String(), new(exec.Function)); !strings.Contains(got, "no function") {
		t.Error(got)
	}
}
