package fgraph

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nnopt/nnopt/internal/longtest"
)

// These tests count the steps of the orders, so they detect quadratic behaviour on any
// machine. n is the number of links in a chain.
func inplaceChain(t *testing.T, n int, link func(o *Variable) (next *Variable, outs []*Variable), outToIn bool, op Op, from Op) {
	t.Helper()
	o := input("o")
	ins, v := list(o), call(sigmoid, o)
	var outs []*Variable
	for range n {
		next, more := link(v)
		v = next
		outs = append(outs, more...)
	}
	h := NewDestroyHandler(nil)
	g := newGraph(t, ins, append(outs, v), h)
	order, err := g.Toposort()
	if err != nil {
		t.Fatal(err)
	}
	if outToIn {
		slices.Reverse(order)
	}
	done := 0
	for _, a := range order {
		if a.op != from {
			continue
		}
		err := g.ReplaceValidate(a.Out(), call(op, a.inputs...), why("in place"))
		if err == nil {
			done++
		} else if !errors.Is(err, ErrInconsistent) {
			t.Fatal(err)
		}
	}
	if err := h.check(); err != nil {
		t.Error(err)
	}
	if err := consistentShort(g, h); err != nil {
		t.Error(err)
	}
	limit := 60 * len(order)
	t.Logf("%d of %d in place, work %d and %d, %d applies", done, n, g.order.work, h.order.work, len(order))
	if w := g.order.work + h.order.work; w > limit {
		t.Errorf("work %d on %d applies", w, len(order))
	}
}

// consistentShort replaces consistent for large graphs.
func consistentShort(g *FunctionGraph, h *DestroyHandler) error {
	if g.live < 500 {
		if err := consistent(g, h.permits); err != nil {
			return err
		}
	}
	if err := g.Validate(); err != nil {
		return err
	}
	_, err := g.Toposort()
	return err
}

func TestInplaceCostIsLinear(t *testing.T) {
	n := longtest.Of(4_000, 20_000)
	sum := op("sum")
	for name, link := range map[string]func(o *Variable) (*Variable, []*Variable){
		"plain":  func(o *Variable) (*Variable, []*Variable) { return call(add, o), nil },
		"reader": func(o *Variable) (*Variable, []*Variable) { v := call(add, o); return v, list(call(sum, v)) },
		"reader first": func(o *Variable) (*Variable, []*Variable) {
			return call(add, o), list(call(sum, o))
		},
		"read again": func(o *Variable) (*Variable, []*Variable) {
			v := call(add, o)
			return call(sigmoid, v, o), nil
		},
		"diamond": func(o *Variable) (*Variable, []*Variable) {
			return call(sum, call(add, o), call(add, o)), nil
		},
		"view between": func(o *Variable) (*Variable, []*Variable) { return call(add, call(tv, o)), nil },
	} {
		for _, outToIn := range []bool{false, true} {
			t.Run(name, func(t *testing.T) { inplaceChain(t, n, link, outToIn, aip, add) })
		}
	}
	// Every link reads the same variable, so only the last one can overwrite it.
	for _, outToIn := range []bool{false, true} {
		t.Run("one variable for all", func(t *testing.T) {
			shared := call(op("f"), constant(1))
			inplaceChain(t, n/10, func(o *Variable) (*Variable, []*Variable) { return call(add, shared, o), nil }, outToIn, aip, add)
		})
	}
}

// A view is replaced at the bottom of a long chain of views.
func TestViewsOfViewsAreCheap(t *testing.T) {
	const n = 20_000
	x := input("x")
	v := call(sigmoid, x)
	bottom := v
	for range n {
		v = call(tv, v)
	}
	h := NewDestroyHandler(nil)
	g := newGraph(t, list(x), list(call(op("sum"), v)), h)
	before := h.aliases.work
	for range n {
		next := call(sigmoid, x)
		if err := g.ReplaceValidate(bottom, next, why("bottom")); err != nil {
			t.Fatal(err)
		}
		bottom = next
	}
	if w := h.aliases.work - before; w > 20*n {
		t.Errorf("work %d for %d replacements", w, n)
	}
	if root := h.root(v); root != bottom {
		t.Errorf("root is %v", root)
	}
}

// Many regions of one variable, each overwritten in place. Every destruction is
// compared with all others of the variable. This is quadratic, but cheap enough
// for matrices with thousands of blocks.
func BenchmarkRegionsInPlace(b *testing.B) {
	for _, n := range []int{100, 1000, 3000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				x := call(op("make"), constant(1))
				var outs []*Variable
				for i := range n {
					outs = append(outs, call(sigmoid, call(blockOp{Region{i, i + 1, 0, 1}}, x)))
				}
				g, err := New(nil, outs, NewDestroyHandler(nil))
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				for _, v := range outs {
					if err := g.ReplaceValidate(v, call(sip, v.owner.inputs...), why("in place")); err != nil {
						b.Fatal(g, err)
					}
				}
			}
		})
	}
}
