package onnxpass_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
)

var graphs = flag.Int("graphs", 300, "how many random graphs are optimized")

// TestRandomGraphs optimizes random graphs of nodes that move, cut and join tensors of sizes that are not
// all known, and compares values.
func TestRandomGraphs(t *testing.T) {
	query, err := optdb.ParseQuery("+fast_run -unsafe_nan")
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(query)
	if err != nil {
		t.Fatal(err)
	}
	n := *graphs
	if !longtest.Enabled() {
		n = min(n, 60)
	}
	computed, before, after := 0, 0, 0
	for seed := range uint64(n) {
		g, positive := randomGraph(seed)
		text := g.String()
		c, err := fgraph.NewCopy(g.Inputs(), g.Outputs(), sourceForTests())
		if err != nil {
			t.Fatal(err)
		}
		if err := opt.Rewrite(context.Background(), c, nil); err != nil {
			t.Fatalf("seed %d: %v: %s", seed, err, text)
		}
		before, after = before+g.NumApplies(), after+c.NumApplies()
		for size := range uint64(5) {
			inputs := draw(t, g, size)
			want, err := evaluate(g, inputs)
			if err != nil || positive && slices.ContainsFunc(want, empty) {
				continue
			}
			computed++
			got, err := evaluate(c, inputs)
			if err != nil {
				t.Errorf("seed %d, inputs %v: %v\n%s\n%s", seed, shapes(inputs), err, text, c)
				break
			}
			for i := range want {
				if !equal(got[i], want[i]) {
					t.Errorf("seed %d, output %d of inputs %v is %v, not %v\n%s\n%s", seed, i, shapes(inputs), got[i], want[i], text, c)
				}
			}
		}
	}
	t.Logf("%d graphs, %d runs, %d nodes, %d after", n, computed, before, after)
	if computed < n {
		t.Errorf("only %d runs of %d graphs", computed, n)
	}
}

func empty(a *array.Array) bool { return a.Len() == 0 }

func sourceForTests() *ir.Source {
	s := ir.NewSource(ir.Standard())
	s.Evaluator = lower.Evaluator{}
	return s
}

// A drawing makes a random graph.
type drawing struct {
	*rand.Rand
	operators *ir.Operators
	vars      []*fgraph.Variable
	positive  bool
}

// randomGraph returns a graph, and whether symbols are among the sizes of a Reshape, where a 0 would not
// be a size.
func randomGraph(seed uint64) (g *fgraph.FunctionGraph, positive bool) {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 7)), operators: ir.Standard()}
	var inputs []*fgraph.Variable
	for i, text := range []string{"float[n,3,4]", "float[n,m]", "float[1,n,2]", "float[6]", "bool[]"} {
		t, err := ir.ParseType(text)
		if err != nil {
			panic(err)
		}
		inputs = append(inputs, fgraph.NewInput(t, fmt.Sprintf("x%d", i)))
	}
	d.vars = slices.Clone(inputs[:4])
	for range 4 + d.IntN(12) {
		d.step(inputs[4])
	}
	outputs := []*fgraph.Variable{d.vars[len(d.vars)-1], d.vars[len(d.vars)-1-d.IntN(min(3, len(d.vars)))]}
	g, err := fgraph.New(inputs, outputs, sourceForTests())
	if err != nil {
		panic(err)
	}
	return g, d.positive
}

// pick returns a variable, more often one of the last.
func (d *drawing) pick() *fgraph.Variable {
	if d.IntN(3) > 0 {
		return d.vars[len(d.vars)-1-d.IntN(min(3, len(d.vars)))]
	}
	return d.vars[d.IntN(len(d.vars))]
}

func (d *drawing) apply(text string, inputs ...*fgraph.Variable) *fgraph.Variable {
	op, err := d.operators.ParseOp(text)
	if err != nil {
		panic(err)
	}
	a, err := d.operators.Apply(op, inputs...)
	if err != nil {
		return nil
	}
	return a.Outputs()[d.IntN(len(a.Outputs()))]
}

// list returns so many integers from low to high.
func (d *drawing) list(n, low, high int) []int64 {
	list := make([]int64, n)
	for i := range list {
		list[i] = int64(low + d.IntN(high-low+1))
	}
	return list
}

func (d *drawing) one(options ...string) string { return options[d.IntN(len(options))] }

// step adds an apply, if the one that is drawn is possible.
func (d *drawing) step(condition *fgraph.Variable) {
	x := d.pick()
	rank := ir.TypeOf(x).Rank()
	if rank < 0 {
		return
	}
	axis := func() int64 { return int64(d.IntN(2*max(rank, 1)) - rank) }
	var v *fgraph.Variable
	switch d.IntN(20) {
	case 0:
		v = d.apply(d.one("Relu", "Neg", "Abs", "Identity", "Ceil", "Cast{to=11}", "Cast{to=7}", "Cast{to=1}"), x)
	case 1:
		v = d.apply(d.one("Add", "Mul", "Sub", "Max"), x, d.pick())
	case 2:
		c, _ := ir.Filled(float64(d.IntN(3)-1), ir.TypeOf(x).Elem(), slices.Repeat([]int64{1}, d.IntN(3))...)
		if c != nil {
			v = d.apply(d.one("Add", "Mul", "Sub"), x, c)
		}
	case 3, 4:
		perm := d.Perm(rank)
		v = d.apply("Transpose{perm="+strings.ReplaceAll(strings.ReplaceAll(fmt.Sprint(perm), " ", ","), "[", "ints[")+"}", x)
	case 5:
		v = d.apply("Reshape", x, ir.Int64s(d.list(1+d.IntN(3), -1, 4)...))
	case 6: // sizes that are computed
		s := d.apply("Shape", x)
		parts := []*fgraph.Variable{d.apply("Gather", s, ir.Int64s(axis())), d.apply("Slice", s, ir.Int64s(d.list(1, 0, 1)...), ir.Int64s(d.list(1, 1, 3)...)), ir.Int64s(d.list(1, -1, 4)...)}
		d.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		parts = slices.DeleteFunc(parts[:1+d.IntN(3)], func(v *fgraph.Variable) bool { return v == nil })
		if len(parts) > 0 {
			d.positive = true
			v = d.apply(d.one("Reshape", "Reshape", "Expand"), x, d.apply("Concat{axis=0}", parts...))
		}
	case 7:
		v = d.apply("Unsqueeze", x, ir.Int64s(axis()))
	case 8:
		v = d.apply("Squeeze", x, ir.Int64s(axis()))
	case 9:
		v = d.apply(fmt.Sprintf("Flatten{axis=%d}", d.IntN(rank+1)), x)
	case 10, 11:
		in := []*fgraph.Variable{x, ir.Int64s(d.list(1, -3, 3)...), ir.Int64s(d.list(1, -2, 5)...), ir.Int64s(axis())}
		if d.IntN(4) == 0 {
			in = append(in, ir.Int64s([]int64{-1, 2, 1}[d.IntN(3)]))
		}
		v = d.apply("Slice", in...)
	case 12:
		v = d.apply(fmt.Sprintf("Concat{axis=%d}", axis()), []*fgraph.Variable{x, d.pick(), d.pick()}[:1+d.IntN(3)]...)
	case 13:
		v = d.apply(fmt.Sprintf("Split/2{axis=%d, num_outputs=2}", axis()), x)
	case 14:
		i := ir.Int64(int64(d.IntN(2)))
		if d.IntN(2) == 0 {
			i = ir.Int64s(d.list(1+d.IntN(3), 0, 2)...)
		}
		v = d.apply(fmt.Sprintf("Gather{axis=%d}", axis()), x, i)
	case 15:
		v = d.apply("Pad", x, ir.Int64s(d.list(2*rank, 0, 1)...))
	case 16:
		v = d.apply(fmt.Sprintf("%s{keepdims=%d}", d.one("ReduceSum", "ReduceMax", "ReduceMean"), d.IntN(2)), x, ir.Int64s(axis()))
	case 17:
		v = d.apply("Expand", x, d.apply("Shape", d.pick()))
	case 18:
		if s := d.apply("ConstantOfShape", d.apply("Shape", d.pick())); s != nil && ir.TypeOf(x).Elem() == onnx.Float {
			v = d.apply(d.one("Add", "Mul"), x, s)
		}
	case 19:
		if y := d.pick(); ir.TypeOf(y).Elem() == ir.TypeOf(x).Elem() {
			v = d.apply("If", condition, x, y)
		}
	}
	if v != nil {
		d.vars = append(d.vars, v)
	}
}
