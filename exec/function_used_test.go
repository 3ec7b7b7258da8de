package exec_test

import (
	"slices"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestUsed: a function tells of each constant once, when the last op that reads it has run, and not before: also of
// one that is read through a view, and by ops that were not needed.
func TestUsed(t *testing.T) {
	constants := make([]*array.Array, 3)
	vars := make([]*fgraph.Variable, len(constants))
	for i := range constants {
		constants[i] = numbers(3)
		vars[i] = tensor.Constant(constants[i])
	}
	x := tensor.Vector("x")
	first := tensor.Add(x, vars[0])
	second := tensor.Mul(first, tensor.Flip(vars[1], 0))
	chosen := tensor.IfElse(tensor.Sum(second), []*fgraph.Variable{second}, []*fgraph.Variable{tensor.Mul(first, vars[2])})[0]
	out := tensor.Sub(chosen, vars[0])
	var told []*array.Array
	f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{out}, exec.FunctionOptions{Used: func(a *array.Array, _ bool) {
		told = append(told, a)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := f.NewRunner()
		for range 2 {
			got, err := r.Run(t.Context(), numbers(3))
			if err != nil || got[0].String() != "[5.0, 6.0, 3.0]" {
				t.Fatal(got, err)
			}
		}
	}
	var ours []*array.Array // the function has constants of its own, too
	for _, a := range told {
		if slices.Contains(constants, a) {
			ours = append(ours, a)
		}
	}
	if len(ours) != 3 || ours[2] != constants[0] {
		t.Errorf("%d constants, the last one %v", len(ours), slices.Index(constants, ours[len(ours)-1]))
	}
}

// TestUsedParts: memory of a large factor may be given back while the rest of it is prepared, in either order.
func TestUsedParts(t *testing.T) {
	for _, turned := range []bool{false, true} {
		x := fgraph.NewInput(tensor.NewType(array.Float32, 1, 1, 1200), "x")
		w := array.Full(array.Float32, 1, 1200, 3000)
		factor := tensor.Constant(w)
		if turned {
			w = array.Full(array.Float32, 1, 1, 3000, 1200)
			factor = tensor.DimShuffle(tensor.Constant(w), 0, 2, 1)
		}
		parts, elements := 0, 0
		f, err := exec.NewFunction(t.Context(), []*fgraph.Variable{x}, []*fgraph.Variable{tensor.Matmul(x, factor)}, exec.FunctionOptions{Used: func(a *array.Array, _ bool) {
			if a.Overlaps(w) && a.Len() < w.Len() {
				parts, elements = parts+1, elements+a.Len()
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if out, err := f.Call(t.Context(), array.Full(array.Float32, 1, 1, 1, 1200)); err != nil || out[0].Float(2999) != 1200 {
				t.Fatal(out, err)
			}
		}
		if parts < 2 || elements != w.Len() {
			t.Errorf("turned %t: %d parts of %d elements", turned, parts, elements)
		}
	}
}

// TestUsedSpent: constants whose elements are read in the first call only are spent, and nothing misses them in later ones,
// also of other runners. Those that more reads than products, or that a later call may be the first to need, are not.
func TestUsedSpent(t *testing.T) {
	window := func(size int) array.Window {
		return array.Window{Dims: 2, Size: [array.MaxSpatial]int{size, size}, Stride: [array.MaxSpatial]int{1, 1}, Dilation: [array.MaxSpatial]int{1, 1}}
	}
	plain, tiles := tensor.ConvLastOp{Window: window(1), Groups: 1}, tensor.WinogradOp{Window: window(3), Tile: 2}
	weights := func(size int) *fgraph.Variable {
		w := array.New(array.Float32, size, size, 16, 16)
		for i, s := 0, array.Slice[float32](w); i < len(s); i++ {
			s[i] = float32(i%7) - 3
		}
		return tensor.Constant(w)
	}
	x, some := fgraph.NewInput(tensor.NewType(array.Float32, 1, 6, 6, 16), "x"), fgraph.NewInput(tensor.NewType(array.Bool), "some")
	relu := array.NewProgram(array.Float32)
	relu.Return(relu.Append(array.Maximum, 0, relu.Constant(array.Full(array.Float32, 0))))
	type list = []*fgraph.Variable
	conv := func(x, w *fgraph.Variable) *fgraph.Variable { return tensor.MustApply(plain, x, w) }
	for _, c := range []struct {
		name  string
		size  int
		check bool
		want  bool
		graph func(w *fgraph.Variable) list
	}{
		{"plain", 1, false, true, func(w *fgraph.Variable) list { return list{conv(x, w)} }},
		{"tiles", 3, false, true, func(w *fgraph.Variable) list { return list{tensor.MustApply(tiles, x, w)} }},
		{"completed", 1, false, true, func(w *fgraph.Variable) list { return list{tensor.MustApply(tensor.NewEpilogue(plain, relu), x, w)} }},
		{"twice", 1, false, true, func(w *fgraph.Variable) list { return list{conv(conv(x, w), w)} }},
		{"checked", 1, true, false, func(w *fgraph.Variable) list { return list{conv(x, w)} }},
		{"shown", 1, false, false, func(w *fgraph.Variable) list { return list{conv(x, w), w} }},
		{"added", 1, false, false, func(w *fgraph.Variable) list { return list{conv(x, w), tensor.Add(w, w)} }},
		{"convolved", 1, false, false, func(w *fgraph.Variable) list { return list{conv(w, w)} }},
		{"of a branch", 1, false, false, func(w *fgraph.Variable) list { return tensor.IfElse(some, list{conv(x, w)}, list{x}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := weights(c.size)
			told, arg := 0, array.Full(array.Float32, 1, 1, 6, 6, 16)
			outputs := c.graph(w)
			inputs, args := list{x, some}, []*array.Array{arg, array.Full(array.Bool, 0)}
			f, err := exec.NewFunction(t.Context(), inputs, outputs, exec.FunctionOptions{Check: c.check, Used: func(a *array.Array, spent bool) {
				if a != tensor.ConstantOf(w) {
					return
				}
				if told++; spent != c.want {
					t.Errorf("spent: %t", spent)
				}
				if spent {
					*a = *array.Unmade(a.DType(), a.Shape()...)
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			same, err := exec.NewFunction(t.Context(), inputs, c.graph(weights(c.size)), exec.FunctionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, yes := range []float64{0, 1, 1} {
				args[1] = array.Full(array.Bool, yes)
				want, err := same.Call(t.Context(), args...)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					got, err := f.NewRunner().Run(t.Context(), args...)
					if err != nil {
						t.Fatal(err)
					}
					for i := range want {
						if !array.Equal(got[i], want[i]) {
							t.Errorf("another result: %v", got[i])
						}
					}
				}
			}
			if told != 1 {
				t.Errorf("told %d times", told)
			}
		})
	}
}
