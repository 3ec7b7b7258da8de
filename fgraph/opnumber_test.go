package fgraph

import "testing"

// other is an op that equals an op of another Go type with the same name, and hashes like it.
type other struct{ name string }

func (o other) String() string { return o.name }
func (o other) HashOp() uint64 { return uint64(len(o.name)) }
func (o other) EqualOp(p Op) bool {
	return p.String() == o.name
}

// another is other as another Go type.
type another struct{ other }

// TestOpNumber: equal ops have one number, also of applies that come later or come back, and others
// have another.
func TestOpNumber(t *testing.T) {
	a := input("a")
	x := call(op("f"), call(op("g"), a))
	y := call(op("f"), call(other{"f"}, call(another{other{"f"}}, call(other{"f"}, call(other{"h"}, a)))))
	g := newGraph(t, list(a), list(x, y))
	number := func(v *Variable) int { return g.OpNumber(v.owner) }
	if number(x) != number(y) || number(x) == number(x.owner.inputs[0]) {
		t.Errorf("f has the numbers %d and %d, g has %d", number(x), number(y), number(x.owner.inputs[0]))
	}
	first := y.owner.inputs[0]
	second := first.owner.inputs[0]
	third := second.owner.inputs[0]
	if n := number(first); n == number(y) || n == number(second) || n != number(third) || n == number(third.owner.inputs[0]) {
		t.Errorf("equal ops have the numbers %d and %d, others have %d, %d and %d", n, number(third), number(y), number(second), number(third.owner.inputs[0]))
	}
	was := number(x)
	z := call(op("h"), a)
	if err := g.Replace(x, z, Reason{}); err != nil {
		t.Fatal(err)
	}
	if x.owner.opNumber != 0 {
		t.Error("an apply has kept its number outside of the graph")
	}
	if err := g.Replace(z, x, Reason{}); err != nil {
		t.Fatal(err)
	}
	if number(x) != was || number(y) != was {
		t.Errorf("f has the numbers %d and %d, was %d", number(x), number(y), was)
	}
}
