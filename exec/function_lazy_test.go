package exec_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// TestIfElse: what only the other branch needs is not computed, where it would fail.
func TestIfElse(t *testing.T) {
	for _, c := range []struct{ text, yes, no string }{
		{"ifelse(s > 0, x + 1, x[[7]])", "[2.0, 3.0, 4.0]", "index out of range: 7"},
		{"ifelse(s > 0, x[[7]] + 1, exp(x)*0)", "index out of range: 7", "[0.0, 0.0, 0.0]"},
		{"ifelse(s > 0, x, X[0, :2])", "[1.0, 2.0, 3.0]", "[1.0, 2.0]"},
		{"ifelse(s > 0, [x, y*2], [y + 1, x])[0]", "[1.0, 2.0, 3.0]", "[2.0, 3.0, 4.0]"},
		{"ifelse(s > 0, ifelse(sum(x) > 100, x[[7]], x*2), ifelse(sum(x) > 100, x[[8]], x*3))", "[2.0, 4.0, 6.0]", "[3.0, 6.0, 9.0]"},
		// Both branches need it, and so does the condition.
		{"ifelse(sum(x*y)*s > 0, x*y, x*y + s)", "[1.0, 4.0, 9.0]", "[0.0, 3.0, 8.0]"},
		// A branch of a later one, whose condition depends on the first one, needs the same.
		{"ifelse(sum(ifelse(s > 0, exp(x*0), x)) < 4, exp(x*0) + 1, x)", "[2.0, 2.0, 2.0]", "[1.0, 2.0, 3.0]"},
		{"ifelse(s > 0, x, y)[ifelse(s > 0, i, i + 7)]", "[3.0, 1.0, 3.0]", "index out of range: 9"},
	} {
		for _, optimize := range []string{"none", "+fast_run"} {
			t.Run(c.text+"/"+optimize, func(t *testing.T) {
				for k, want := range []string{c.yes, c.no} {
					s := scope(t)
					out, err := s.Parse(c.text)
					if err != nil {
						t.Fatal(err)
					}
					opts := exec.FunctionOptions{}
					if optimize != "none" {
						opts.Optimizer = fastRun(t)
					}
					f, err := exec.NewFunction(t.Context(), s.Inputs(), out, opts)
					if err != nil {
						t.Fatal(err)
					}
					args := values()
					args[4] = array.Scalar(float64(1 - 2*k))
					r := f.NewRunner()
					for range 3 { // each call begins with the memory of the one before
						got, err := r.Run(t.Context(), args...)
						text := fmt.Sprint(err)
						if err == nil {
							text = got[0].String()
						}
						if err == nil && text != want || err != nil && !strings.Contains(text, want) {
							t.Errorf("case %d: %s, want %s", k, text, want)
						}
					}
				}
			})
		}
	}
}

var errBomb = errors.New("a bomb")

// A lazyDraw is a random graph with IfElses, and what it should compute.
type lazyDraw struct {
	*rand.Rand
	vars []*fgraph.Variable // vectors
	args map[*fgraph.Variable][]float64
}

// next adds a value that is computed from others. Few are asserts that fail.
func (d *lazyDraw) next() {
	pick := func() *fgraph.Variable { return d.vars[max(d.IntN(len(d.vars)), d.IntN(len(d.vars)))] }
	condition := func() *fgraph.Variable {
		return tensor.Map(array.Gt, tensor.Sum(pick()), tensor.Float(float64(d.IntN(5)-2)))
	}
	switch d.IntN(12) {
	case 0, 1, 2:
		d.vars = append(d.vars, tensor.Add(pick(), pick()))
	case 3, 4:
		d.vars = append(d.vars, tensor.Map(array.Tanh, tensor.Mul(pick(), pick())))
	case 5:
		d.vars = append(d.vars, tensor.Flip(pick(), 0))
	case 6:
		d.vars = append(d.vars, tensor.Assert(pick(), errBomb.Error(), condition()))
	case 7, 8:
		d.vars = append(d.vars, tensor.IfElse(condition(), []*fgraph.Variable{pick(), pick()}, []*fgraph.Variable{pick(), pick()})...)
	default:
		d.vars = append(d.vars, tensor.IfElse(condition(), []*fgraph.Variable{pick()}, []*fgraph.Variable{pick()})...)
	}
}

// want computes a variable, and nothing that it does not need.
func (d *lazyDraw) want(v *fgraph.Variable, known map[*fgraph.Variable]*array.Array) (*array.Array, error) {
	a := v.Owner()
	switch {
	case known[v] != nil:
		return known[v], nil
	case v.IsConstant():
		return tensor.ConstantOf(v), nil
	case a == nil:
		return array.Of(d.args[v], len(d.args[v])), nil
	}
	in := make([]*array.Array, len(a.Inputs()))
	for i, x := range a.Inputs() {
		if op, ok := a.Op().(tensor.IfElseOp); ok && i > 0 && ((i-1)/op.Outputs == 0) != (in[0].Int(0) != 0) {
			continue
		}
		var err error
		if in[i], err = d.want(x, known); err != nil {
			return nil, err
		}
	}
	k, err := tensor.Compile(a)
	if err != nil {
		return nil, err
	}
	out := make([]*array.Array, len(a.Outputs()))
	for i := range out {
		out[i] = new(array.Array)
	}
	if err := k(new(array.Workspace), in, out); err != nil {
		return nil, err
	}
	for i, x := range a.Outputs() {
		known[x] = out[i]
	}
	return known[v], nil
}

// TestRandomIfElse: random graphs with IfElses in IfElses, and with parts that only some branches need, compute
// what is computed one by one, and fail where that fails.
func TestRandomIfElse(t *testing.T) {
	opt := fastRun(t)
	values, faults := 0, 0
	for seed := range uint64(longtest.Of(200, 10000)) {
		d := &lazyDraw{Rand: rand.New(rand.NewPCG(seed, 1)), args: make(map[*fgraph.Variable][]float64)}
		for _, name := range []string{"x", "y"} {
			d.vars = append(d.vars, tensor.Vector(name))
		}
		inputs := d.vars[:2:2]
		for range 2 + d.IntN(25) {
			d.next()
		}
		outputs := []*fgraph.Variable{d.vars[len(d.vars)-1], d.vars[len(d.vars)-1-d.IntN(3)]}
		opts := exec.FunctionOptions{Check: seed%4 == 1}
		if seed%2 == 0 {
			opts.Optimizer = opt
		}
		f, err := exec.NewFunction(t.Context(), inputs, outputs, opts)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := f.NewRunner()
		for range 4 {
			for _, v := range inputs {
				d.args[v] = []float64{d.NormFloat64(), d.NormFloat64(), d.NormFloat64()}
			}
			got, err := r.Run(t.Context(), array.Of(d.args[inputs[0]], 3), array.Of(d.args[inputs[1]], 3))
			known := make(map[*fgraph.Variable]*array.Array)
			for i, v := range outputs {
				want, fault := d.want(v, known)
				if fault != nil {
					faults++
					if err == nil && opts.Optimizer == nil { // passes may find that the value is not needed
						t.Errorf("seed %d: no fault, but %v", seed, fault)
					}
					break
				}
				if err != nil && i == len(outputs)-1 {
					t.Errorf("seed %d: %v", seed, err)
				}
				if values++; err == nil && !(array.MaxRelDiff(got[i], want) <= 1e-9) {
					t.Errorf("seed %d: output %d is %v, not %v", seed, i, got[i], want)
				}
			}
		}
		if t.Failed() {
			return
		}
	}
	if values < 100 || faults < 100 {
		t.Errorf("%d values and %d faults", values, faults)
	}
}
