package rewrite

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
)

var sizes = []int{1e3, 1e4, 1e5, 1e6}

// chain returns y = f(… f(x)), n times.
func chain(b testing.TB, n int, f fgraph.Op, features ...fgraph.Feature) *fgraph.FunctionGraph {
	x := input("x")
	v := x
	for range n {
		v = call(f, v)
	}
	return newGraph(b, list(x), list(v), features...)
}

// grow runs a benchmark for every size, and reports the time per apply.
func grow(b *testing.B, sizes []int, build func(n int) *fgraph.FunctionGraph, do func(b *testing.B, g *fgraph.FunctionGraph)) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%.0e", float64(n)), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				g := build(n)
				runtime.GC() // do not count garbage of the setup
				b.StartTimer()
				do(b, g)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/apply")
		})
	}
}

func runBench(b *testing.B, g *fgraph.FunctionGraph, r GraphRewriter) {
	if err := Run(context.Background(), r, g, nil); err != nil {
		b.Fatal(err)
	}
}

func BenchmarkMergeDuplicates(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph {
		// Pairs of equal chains of length 10.
		x := input("x")
		var outs []*fgraph.Variable
		for i := range n / 20 {
			k := op(fmt.Sprint("k", i))
			for range 2 {
				v := call(k, x)
				for range 9 {
					v = call(op("f"), v)
				}
				outs = append(outs, v)
			}
		}
		return newGraph(b, list(x), outs)
	}, func(b *testing.B, g *fgraph.FunctionGraph) {
		before := g.NumApplies()
		runBench(b, g, &Merge{})
		if g.NumApplies() != before/2 {
			b.Fatal(g.NumApplies())
		}
	})
}

func BenchmarkWalk(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph { return chain(b, n, op("sin")) },
		func(b *testing.B, g *fgraph.FunctionGraph) { runBench(b, g, In2Out("walk", swap("r", "sin", "cos"))) })
}

func BenchmarkEquilibrium(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph { return chain(b, n, op("sin")) },
		func(b *testing.B, g *fgraph.FunctionGraph) {
			runBench(b, g, &Equilibrium{Rules: []NodeRewriter{swap("r", "sin", "cos")}})
		})
}

func BenchmarkEquilibriumNoChange(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph { return chain(b, n, op("sin")) },
		func(b *testing.B, g *fgraph.FunctionGraph) {
			runBench(b, g, &Equilibrium{Rules: []NodeRewriter{swap("r", "tan", "cos")}})
		})
}

// inplaceOp overwrites its first input.
type inplaceOp string

func (o inplaceOp) String() string             { return string(o) }
func (o inplaceOp) DestroyMap() []fgraph.Alias { return firstInput }

var firstInput = []fgraph.Alias{{Output: 0, Input: 0}}

func destroyAll(*fgraph.Variable) bool { return true }

func BenchmarkInplaceChain(b *testing.B) {
	inplace := Rule{Name: "inplace", On: []Track{TrackOp(op("sin"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(inplaceOp("sin_in_place"), n.Inputs()...)), nil
	}}
	grow(b, sizes, func(n int) *fgraph.FunctionGraph {
		return chain(b, n, op("sin"), fgraph.NewDestroyHandler(destroyAll))
	}, func(b *testing.B, g *fgraph.FunctionGraph) {
		runBench(b, g, In2Out("inplace", inplace))
		for a := range g.Applies() {
			if a.Op() == op("sin") {
				b.Fatal("not everything is in place")
			}
		}
	})
}

// A chain in which a sum also reads every link.
func BenchmarkInplaceChainWithReaders(b *testing.B) {
	inplace := Rule{Name: "inplace", On: []Track{TrackOp(op("exp"))}, Fn: func(c *Context, n *fgraph.Apply) (Result, error) {
		return Replace(call(inplaceOp("exp_in_place"), n.Inputs()...)), nil
	}}
	grow(b, sizes, func(n int) *fgraph.FunctionGraph {
		o, y := input("o"), input("y")
		ins := list(o, y)
		var sums []*fgraph.Variable
		for range n / 3 {
			o = call(op("exp"), call(op("add"), o, y))
			sums = append(sums, call(op("sum"), o))
		}
		return newGraph(b, ins, append(list(o), sums...), fgraph.NewDestroyHandler(destroyAll))
	}, func(b *testing.B, g *fgraph.FunctionGraph) { runBench(b, g, Out2In("inplace", inplace)) })
}

func BenchmarkReplaceValidateIdleDestroyHandler(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph {
		return chain(b, n, op("sin"), fgraph.NewDestroyHandler(nil))
	}, func(b *testing.B, g *fgraph.FunctionGraph) {
		order, err := g.Toposort()
		if err != nil {
			b.Fatal(err)
		}
		for _, a := range order {
			if err := g.ReplaceValidate(a.Out(), call(op("cos"), a.Inputs()...), fgraph.Reason{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("%.0e", float64(n)), func(b *testing.B) {
			for range b.N {
				chain(b, n, op("sin"))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/apply")
		})
	}
}

func BenchmarkToposort(b *testing.B) {
	grow(b, sizes, func(n int) *fgraph.FunctionGraph { return chain(b, n, op("sin")) },
		func(b *testing.B, g *fgraph.FunctionGraph) {
			if _, err := g.Toposort(); err != nil {
				b.Fatal(err)
			}
		})
}
