package rewrite

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/profile"
)

func mergeGraph(t *testing.T, outputs func(x, y, z *fgraph.Variable) []*fgraph.Variable) *fgraph.FunctionGraph {
	x, y, z := input("x"), input("y"), input("z")
	return newGraph(t, list(x, y, z), outputs(x, y, z))
}

func TestCase41MergeEqualApplies(t *testing.T) {
	g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
		o := op("op2")
		return list(call(op("op1"), call(o, x, y), call(o, x, y), call(o, x, z)))
	})
	run(t, &Merge{}, g)
	wantString(t, g, "[op1(*1 -> op2(x, y), *1, op2(x, z))]")
}

func TestCase42MergeConstants(t *testing.T) {
	c := func(x any) *fgraph.Variable { return fgraph.NewConstant(num, x, "") }
	g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
		return list(call(op("op1"), c(2), c(2), c(3)), call(op("op1"), c(2), c("2"), c([]int{2})), call(op("op1"), c([]int{2})))
	})
	rec := run(t, &Merge{}, g)
	wantString(t, g, "[op1(2, 2, 3), op1(2, 2, [2]), op1([2])]")
	twos := map[*fgraph.Variable]bool{}
	for v := range g.Variables() {
		if v.IsConstant() && v.Data() == any(2) {
			twos[v] = true
		}
	}
	if n, _ := rec.Counter("nb_constant"); n != 2 || len(twos) != 1 {
		t.Errorf("%g constants merged, %d twos left", n, len(twos))
	}
}

func TestCase43MergeDeep(t *testing.T) {
	g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
		e := func() *fgraph.Variable { return call(op("op3"), call(op("op2"), x, y), z) }
		return list(call(op("op1"), e(), call(op("op4"), e())))
	})
	rec := run(t, &Merge{}, g)
	wantString(t, g, "[op1(*1 -> op3(op2(x, y), z), op4(*1))]")
	if n, _ := rec.Counter("nb_merged"); n != 2 {
		t.Errorf("%g merged", n)
	}
}

type commuting string

func (o commuting) String() string { return string(o) }

func (commuting) Commutes() bool { return true }

func TestCase44MergeAndTheOrderOfInputs(t *testing.T) {
	for _, c := range []struct {
		merge Merge
		want  string
	}{
		{Merge{}, "add(x, y), add(y, x), add(x, y, x), add(y, x, x)"},
		{Merge{Commutative: true}, "*1 -> add(x, y), *1, add(x, y, x), add(y, x, x)"},
		{Merge{AnyOrder: true}, "*1 -> add(x, y), *1, *2 -> add(x, y, x), *2"},
	} {
		g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
			add := commuting("add")
			return list(call(op("op1"), call(op("op2"), x, y), call(op("op2"), y, x)),
				call(add, x, y), call(add, y, x), call(add, x, y, x), call(add, y, x, x))
		})
		run(t, &c.merge, g)
		wantString(t, g, "[op1(op2(x, y), op2(y, x)), "+c.want+"]")
		if c.merge == (Merge{}) && g.Commits() != 0 {
			t.Error("something changed")
		}
	}
}

func TestCase45MergeOutputs(t *testing.T) {
	g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
		return list(call(op("op1"), x, y), call(op("op1"), x, y))
	})
	run(t, &Merge{}, g)
	wantString(t, g, "[*1 -> op1(x, y), *1]")
	if g.Outputs()[0] != g.Outputs()[1] {
		t.Error("two variables")
	}
}

type equalOp struct{ key []int }

func (o *equalOp) String() string { return fmt.Sprint("op", o.key) }

func (o *equalOp) HashOp() uint64 { return uint64(len(o.key)) }

func (o *equalOp) EqualOp(p fgraph.Op) bool {
	q, ok := p.(*equalOp)
	return ok && slices.Equal(o.key, q.key)
}

type unmergeable string

func (o unmergeable) String() string { return string(o) }

func (unmergeable) Unmergeable() bool { return true }

func TestCase46MergeWithoutInputs(t *testing.T) {
	g := mergeGraph(t, func(x, y, z *fgraph.Variable) []*fgraph.Variable {
		return list(call(op("op1"), call(op("new")), call(op("new")), call(&equalOp{list(1)}), call(&equalOp{list(1)}), call(&equalOp{list(2)}),
			call(unmergeable("random")), call(unmergeable("random"))))
	})
	run(t, &Merge{}, g)
	wantString(t, g, "[op1(*1 -> new(), *1, *2 -> op[1](), *2, op[2](), random(), random())]")
}

func TestCase47MergeKeepsSpecificType(t *testing.T) {
	for _, types := range [][2]fgraph.Type{{typ("num"), typ("number")}, {typ("number"), typ("num")}} {
		x := input("x")
		a, b := fgraph.NewApply(op("op1"), list(x), types[0]), fgraph.NewApply(op("op1"), list(x), types[1])
		g := newGraph(t, list(x), list(call(op("op2"), call(op("f"), a.Out()), call(op("f"), b.Out())), a.Out(), b.Out()))
		if types[0] == typ("number") {
			// Outputs of the graph may become more specific: number instead of num.
			run(t, &Merge{}, g)
		} else {
			run(t, &Merge{}, g)
		}
		wantString(t, g, "[op2(*1 -> f(*2 -> op1(x)), *1), *2, *2]")
		if got := g.Outputs()[1].Type(); got != typ("number") {
			t.Errorf("kept %v", got)
		}
	}
}

func TestCase48MergeDestroyed(t *testing.T) {
	build := func(o1, o2 fgraph.Op) (*fgraph.FunctionGraph, *profile.Record) {
		x, y := input("x"), input("y")
		g := newGraph(t, list(x, y), list(call(op("out"), call(o1, call(op("f"), x)), call(o2, call(op("f"), x)))),
			fgraph.NewDestroyHandler(nil))
		rec := run(t, &Merge{}, g)
		if err := g.Validate(); err != nil {
			t.Error(err)
		}
		return g, rec
	}
	g, rec := build(inplaceOp("i"), inplaceOp("j"))
	wantString(t, g, "[out(i(f(x)), j(f(x)))]")
	if n, _ := rec.Counter("nb_fail"); n != 0 {
		t.Errorf("%g failed attempts", n)
	}
	g, _ = build(inplaceOp("i"), op("reader"))
	wantString(t, g, "[out(i(*1 -> f(x)), reader(*1))]")

	// The reader depends on the destroyer, so their inputs must not be united.
	x := input("x")
	d := call(inplaceOp("i"), call(op("f"), x))
	g = newGraph(t, list(x), list(call(op("reader"), call(op("f"), x), d)), fgraph.NewDestroyHandler(nil))
	rec = run(t, &Merge{}, g)
	wantString(t, g, "[reader(f(x), i(f(x)))]")
	if n, _ := rec.Counter("nb_fail"); n < 1 {
		t.Errorf("%g failed attempts", n)
	}
}

// meaning numbers the computations of the outputs, equal ones alike, and returns the number
// of different applies.
func meaning(g *fgraph.FunctionGraph, ids map[string]int) (outs []int, applies int) {
	of := make(map[*fgraph.Variable]int)
	id := func(key string) int {
		if _, ok := ids[key]; !ok {
			ids[key] = len(ids)
		}
		return ids[key]
	}
	for v := range g.Variables() {
		if v.Owner() == nil {
			of[v] = id(fmt.Sprint(v.IsConstant(), v))
		}
	}
	distinct := make(map[string]bool)
	for a := range g.Ordered() {
		var in []int
		for _, v := range a.Inputs() {
			in = append(in, of[v])
		}
		if _, ok := a.Op().(commuting); ok {
			slices.Sort(in)
		}
		key := fmt.Sprintf("%T %v %v", a.Op(), a.Op(), in)
		distinct[key] = true
		for i, v := range a.Outputs() {
			of[v] = id(fmt.Sprint(key, i))
		}
	}
	for _, v := range g.Outputs() {
		outs = append(outs, of[v])
	}
	return outs, len(distinct)
}

func TestPropertyMerge(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		vars := list(input("x"), input("y"))
		ins := slices.Clone(vars)
		vars = append(vars, fgraph.NewConstant(num, 1, ""), fgraph.NewConstant(num, 1, ""), fgraph.NewConstant(num, 2, ""))
		ops := list[fgraph.Op](op("f"), op("g"), commuting("add"), commuting("mul"), &equalOp{list(1)})
		recent := rapid.IntRange(2, 100).Draw(t, "recent")
		for range rapid.IntRange(0, 150).Draw(t, "size") {
			o := rapid.SampledFrom(ops).Draw(t, "op")
			from := vars[max(0, len(vars)-recent):]
			var in []*fgraph.Variable
			for range rapid.IntRange(0, 2).Draw(t, "inputs") {
				in = append(in, rapid.SampledFrom(from).Draw(t, "input"))
			}
			vars = append(vars, call(o, in...))
		}
		g, err := fgraph.New(ins, vars[2:])
		if err != nil {
			t.Fatal(err)
		}
		ids := make(map[string]int)
		before, distinct := meaning(g, ids)
		if err := Run(context.Background(), &Merge{Commutative: true}, g, nil); err != nil {
			t.Fatal(err)
		}
		if err := g.Check(); err != nil {
			t.Fatal(err)
		}
		after, _ := meaning(g, ids)
		if !slices.Equal(before, after) {
			t.Fatalf("%v before, %v after", before, after)
		}
		if g.NumApplies() != distinct {
			t.Fatalf("%d applies, %d are different", g.NumApplies(), distinct)
		}
		commits := g.Commits()
		ctx := WithOptions(context.Background(), Options{Allow: func(fgraph.Reason) bool { return true }}) // so that it does not rely on the cache
		if err := Run(ctx, &Merge{Commutative: true}, g, nil); err != nil || g.Commits() != commits {
			t.Fatal("merged again", err)
		}
	})
}
