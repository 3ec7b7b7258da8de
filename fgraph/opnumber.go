package fgraph

import "reflect"

// opNumbers numbers ops.
type opNumbers struct {
	plain  map[Op]int32
	byHash map[uint64][]numberedOp // ops that are an [OpEqualer]
	count  int32
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
