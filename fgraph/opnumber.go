package fgraph

import (
	"iter"
	"reflect"
)

// opNumbers numbers ops. It counts their applies from the first call of Ops on.
type opNumbers struct {
	plain    map[Op]int32
	byHash   map[uint64][]numberedOp // ops that are an [OpEqualer]
	count    int32
	counting bool
	applies  []opCount // by number, if counting
}

type opCount struct {
	op Op
	n  int32 // applies in the graph
}

type numberedOp struct {
	op     Op
	number int32
}

// OpNumber returns a number of the op of a, which belongs to the graph: equal ops of one Go type
// have equal numbers. The numbers are small, from 1, and remain valid, so what a rewriter knows
// about ops can be in a slice.
func (g *FunctionGraph) OpNumber(a *Apply) int {
	if a.opNumber == 0 {
		a.opNumber = g.opNumbers.of(a.op)
	}
	return int(a.opNumber)
}

// Ops yields the numbers and the ops that the graph has applies of, by increasing numbers. It takes time
// in proportion to the ops, not the applies, so a rewriter can find out quickly that a graph has nothing
// for it. The graph must not change meanwhile.
func (g *FunctionGraph) Ops() iter.Seq2[int, Op] {
	g.countOps()
	return func(yield func(int, Op) bool) {
		for i, c := range g.opNumbers.applies {
			if c.n > 0 && !yield(i, c.op) {
				return
			}
		}
	}
}

// countOps begins to count, unless it is done already.
func (g *FunctionGraph) countOps() {
	if g.opNumbers.counting {
		return
	}
	g.opNumbers.counting = true
	for _, a := range g.applies {
		if a != nil {
			g.countOp(a, 1)
		}
	}
}

// countOp follows that the graph gets or loses a.
func (g *FunctionGraph) countOp(a *Apply, by int32) {
	at := g.OpNumber(a)
	for at >= len(g.opNumbers.applies) {
		g.opNumbers.applies = append(g.opNumbers.applies, opCount{})
	}
	c := &g.opNumbers.applies[at]
	c.op, c.n = a.op, c.n+by
}

func (t *opNumbers) of(op Op) int32 {
	if e, ok := op.(OpEqualer); ok {
		return t.ofEqualer(e, op)
	}
	n, ok := t.plain[op]
	if !ok {
		if t.plain == nil {
			t.plain = make(map[Op]int32)
		}
		n = t.next()
		t.plain[op] = n
	}
	return n
}

func (t *opNumbers) ofEqualer(e OpEqualer, op Op) int32 {
	h, typ := e.HashOp(), reflect.TypeOf(op)
	for _, known := range t.byHash[h] {
		if reflect.TypeOf(known.op) == typ && e.EqualOp(known.op) {
			return known.number
		}
	}
	if t.byHash == nil {
		t.byHash = make(map[uint64][]numberedOp)
	}
	n := t.next()
	t.byHash[h] = append(t.byHash[h], numberedOp{op, n})
	return n
}

func (t *opNumbers) next() int32 {
	t.count++
	return t.count
}
