package tensorpass_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// bounds are texts of bounds of slices. The empty one is missing.
var bounds = []string{"", "-7", "-4", "-1", "0", "1", "3", "6"}

// sliceTexts returns all slices with bounds and a step.
func sliceTexts(steps ...int) []string {
	var list []string
	for _, a := range bounds {
		for _, b := range bounds {
			for _, s := range steps {
				list = append(list, fmt.Sprintf("%s:%s:%d", a, b, s))
			}
		}
	}
	return list
}

// mergedPair compiles expressions as they are, and with merged parts.
func mergedPair(t *testing.T, vars, text string) (plain, f *exec.Function, merged bool) {
	t.Helper()
	s, out, g := newGraph(t, vars, text)
	if err := g.Attach(tensor.NewShapes()); err != nil {
		t.Fatal(err)
	}
	before := g.NumApplies()
	if err := rewrite.Run(t.Context(), rewrite.In2Out("merge", ruleNamed(t, "local_subtensor_merge").Rule), g, nil); err != nil {
		t.Fatal(err)
	}
	plain, err := exec.NewFunction(t.Context(), s.Inputs(), out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = exec.CompileGraph(g); err != nil {
		t.Fatal(err)
	}
	return plain, f, g.NumApplies() != before || len(out) > 1
}

// sameOutcome reports a difference of what two functions return. One must fail where the other does.
func sameOutcome(t *testing.T, plain, f *exec.Function, args ...*array.Array) {
	t.Helper()
	want, err := plain.Call(t.Context(), args...)
	got, err2 := f.Call(t.Context(), args...)
	if (err == nil) != (err2 == nil) || err != nil && errors.Is(err, array.ErrIndex) != errors.Is(err2, array.ErrIndex) {
		t.Fatalf("%v of %v: %v, want %v", f, args, err2, err)
	}
	for i := range got {
		if !array.SameShape(got[i], want[i]) || array.MaxRelDiff(got[i], want[i]) != 0 {
			t.Fatalf("%v of %v:\nexpression %d is %v, want %v", f, args, i, got[i], want[i])
		}
	}
}

func numbers(n int) *array.Array {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i + 1)
	}
	return array.Of(x, n)
}

// TestMergeSlices: a slice of a slice has the elements that NumPy selects, for all bounds and steps
// and sizes, whether these are known or not.
func TestMergeSlices(t *testing.T) {
	inner, outer := sliceTexts(-3, -2, -1, 1, 2, 3), sliceTexts(-2, -1, 1, 3)
	for k, i := range inner {
		if !longtest.Enabled() && k%39 != 0 {
			continue
		}
		for l, vars := range []string{"x: vector", "x: float64[5]", "x: float64[1]", "x: float64[0]"} {
			if l > 1 && k%5 != 0 {
				continue
			}
			text := "["
			for _, j := range outer {
				text += fmt.Sprintf("x[%s][%s], ", i, j)
			}
			plain, f, _ := mergedPair(t, vars, text+"]")
			for n := range 8 {
				if vars == "x: vector" || vars == fmt.Sprintf("x: float64[%d]", n) {
					sameOutcome(t, plain, f, numbers(n))
				}
			}
		}
	}
}

// TestMergeElements: an element of a slice is the one that NumPy selects, or out of range, for all
// bounds, steps and sizes that are numbers.
func TestMergeElements(t *testing.T) {
	for k, i := range sliceTexts(-2, -1, 1, 2) {
		if !longtest.Enabled() && k%5 != 0 {
			continue
		}
		for at := -4; at < 5; at++ {
			plain, f, _ := mergedPair(t, "x: vector", fmt.Sprintf("x[%s][%d]", i, at))
			for n := range 7 {
				sameOutcome(t, plain, f, numbers(n))
			}
		}
	}
}

// TestMergeVariables is TestMergeElements for bounds that are variables, all of which are merged.
func TestMergeVariables(t *testing.T) {
	last := 5
	if !longtest.Enabled() {
		last = 2
	}
	for _, slice := range []string{"a:b", "a:", ":b", "a:b:2", "a::3", ":b:2", "a:b:-1", "a::-1", ":b:-2", "a:b:-3", "::2", "1:b", "a:-2", "-3:b:2", "a:4:-2"} {
		for _, at := range []string{"i", "-1", "0", "2", "-3"} {
			plain, f, merged := mergedPair(t, "x: vector; a b i: int64 scalar", "x["+slice+"]["+at+"] + 0*(a + b + i)")
			if !merged {
				t.Errorf("x[%s][%s] is not merged", slice, at)
			}
			for n := range last {
				for a := -last; a <= last; a++ {
					for b := -last; b <= last; b += 1 + last/4 {
						for i := -last; i <= last; i++ {
							if at != "i" && i != 0 {
								continue
							}
							scalar := func(v int) *array.Array { return array.Scalar(int64(v)) }
							sameOutcome(t, plain, f, numbers(n), scalar(a), scalar(b), scalar(i))
						}
					}
				}
			}
		}
	}
}

// TestReadsOfWrites: what is read after one or two writes is right, for many parts and all rules.
func TestReadsOfWrites(t *testing.T) {
	parts := []string{"0", "2", "-1", "-3", "1:", ":2", "-2:", ":-1", "1:3", "::2", "1::2", "::-1", "3:0:-1", "[0, 1]", "[2, 0]", "[0, 2, 1]", "[0, -1]", "[1, 1]", "[-1]"}
	rules := rewrite.In2Out("all", slices.Collect(func(yield func(rewrite.NodeRewriter) bool) {
		for _, l := range tensorpass.In(tensorpass.Canonicalize) {
			if !yield(l.Rule) {
				return
			}
		}
	})...)
	run := 0
	for _, vars := range []string{"x y: vector; s: scalar", "x y: float64[4]; s: scalar"} {
		for k, w := range parts {
			for l, r := range parts {
				for m, write := range []string{"set_subtensor(x[%s], y[%s]*2)[%s]", "inc_subtensor(x[%s], y[%s]*2)[%s]", "set_subtensor(x[%s], s + 0*y[%s])[%s]",
					"set_subtensor(x[%[1]s], x[%[1]s] + y[%[2]s])[%[3]s]", "inc_subtensor(set_subtensor(x[%[1]s], y[%[1]s])[%[3]s], s)", "set_subtensor(inc_subtensor(x[%[1]s], s)[%[3]s], y[%[3]s])[1:]"} {
					if run++; !longtest.Enabled() && run%11 != 0 {
						continue
					}
					text := fmt.Sprintf(write, w, w, r)
					s, out, g := newGraph(t, vars, text)
					if err := g.Attach(tensor.NewShapes()); err != nil {
						t.Fatal(err)
					}
					for range 3 {
						if err := rewrite.Run(t.Context(), rules, g, nil); err != nil {
							t.Fatal(err)
						}
					}
					compareWrites(t, text, s.Inputs(), out, g, k+l+m)
				}
			}
		}
	}
}

// compareWrites compares an expression of x, y and s for several sizes. Where it fails, as an index is
// out of range, only the graph with a part of it may have a value: what is overwritten is not computed.
func compareWrites(t *testing.T, text string, inputs, out []*fgraph.Variable, g *fgraph.FunctionGraph, seed int) {
	t.Helper()
	plain, err := exec.NewFunction(t.Context(), inputs, out, exec.FunctionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := exec.CompileGraph(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{4, 3, 6, 1} {
		args := make([]*array.Array, len(inputs))
		for i, v := range inputs {
			switch {
			case v.Name() == "s":
				args[i] = array.Scalar(float64(seed) + 0.5)
			default:
				args[i] = numbers(n)
				args[i].SetFloat(0, float64(i)*100)
			}
		}
		if tensor.TypeOf(inputs[0]).NDim() > 0 && tensor.TypeOf(inputs[0]).Dim(0) == 4 && n != 4 {
			continue
		}
		want, err := plain.Call(t.Context(), args...)
		if err != nil {
			continue
		}
		got, err := f.Call(t.Context(), args...)
		if err != nil || !array.SameShape(got[0], want[0]) || array.MaxRelDiff(got[0], want[0]) > 1e-14 {
			t.Fatalf("%s, as %v, of %v: %v, %v, want %v", text, f, args, got, err, want)
		}
	}
}
