package fgraph

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestToposortIsDeterministic(t *testing.T) {
	build := func() *FunctionGraph {
		x := input("x")
		var outs []*Variable
		for i := range 20 {
			outs = append(outs, call(op(fmt.Sprint("g", i)), call(op(fmt.Sprint("f", i)), x)))
		}
		return newGraph(t, list(x), outs)
	}
	names := func(order []*Apply, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(order)
	}
	g := build()
	if a, b := names(g.Toposort()), names(build().Toposort()); a != b {
		t.Error("not the same order for the same graph")
	}
}

func TestBitQueue(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	const n = 300_000
	q := newBitQueue(n)
	in := map[int32]bool{}
	for range 20_000 {
		if x := r.Int32N(n); !in[x] {
			in[x] = true
			q.push(x)
		}
		if r.IntN(3) == 0 && !q.empty() {
			least := int32(n)
			if r.IntN(200) == 0 { // the comparison is slow
				for x := range in {
					least = min(least, x)
				}
			}
			x := q.pop()
			if !in[x] || x > least {
				t.Fatalf("popped %d, least %d", x, least)
			}
			delete(in, x)
		}
	}
	last := int32(-1)
	for !q.empty() {
		x := q.pop()
		if x <= last || !in[x] {
			t.Fatal("out of order")
		}
		last = x
		delete(in, x)
	}
	if len(in) > 0 {
		t.Error("lost something")
	}
}

type adjacent [][]int32

func (e adjacent) successors(x int32, dst []int32) []int32 { return append(dst, e[x]...) }

func (e adjacent) predecessors(x int32, dst []int32) []int32 {
	for p := range e {
		if slices.Contains(e[p], x) {
			dst = append(dst, int32(p))
		}
	}
	return dst
}

func (e adjacent) fanOut(x int32) int { return len(e[x]) }

func (e adjacent) fanIn(int32) int { return 1 }

func TestOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		const n = 40
		e := make(adjacent, n)
		var o order
		o.init(&e)
		o.grow(n)
		for i := range int32(n) {
			o.insertFirst(i)
		}
		reaches := func(from, to int32) bool {
			seen := make([]bool, n)
			todo := list(from)
			for len(todo) > 0 {
				x := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				if x == to {
					return true
				}
				for _, y := range e[x] {
					if !seen[y] {
						seen[y] = true
						todo = append(todo, y)
					}
				}
			}
			return false
		}
		for range 3 * n {
			x, y := r.Int32N(n), r.Int32N(n)
			want := !reaches(y, x)
			if got := o.require(x, y); got != want {
				t.Fatalf("edge %d to %d: %v, want %v", x, y, got, want)
			}
			if want {
				e[x] = append(e[x], y)
			}
			for x := range e {
				for _, y := range e[x] {
					if !o.less(int32(x), y) {
						t.Fatalf("%d is not before %d", x, y)
					}
				}
			}
		}
	}
}

func TestOrderRelabels(t *testing.T) {
	const n = 200_000
	for name, put := range map[string]func(o *order, i int32){
		"first":       func(o *order, i int32) { o.insertFirst(i) },
		"last":        func(o *order, i int32) { o.insertLast(i) },
		"after zero":  func(o *order, i int32) { o.insertAfter(0, i) },
		"alternating": func(o *order, i int32) { o.insertAfter((i-1)/2*(i%2), i) },
	} {
		var o order
		o.init(adjacent(nil))
		o.grow(n)
		o.insertLast(0)
		for i := int32(1); i < n; i++ {
			put(&o, i)
		}
		count, last := 0, uint64(0)
		for x := range o.all() {
			if o.tag[x+1] <= last {
				t.Fatalf("%s: tags do not grow", name)
			}
			last = o.tag[x+1]
			count++
		}
		if count != n {
			t.Errorf("%s: %d of %d", name, count, n)
		}
	}
}
