package pattern_test

import (
	"testing"

	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

func TestOpSubAndOpRemove(t *testing.T) {
	named := pattern.Named("named")
	tests := []struct {
		rule                    rewrite.Rule
		graph, want, name, what string
	}{
		{pattern.OpSub(toy("op1"), toy("op2"), pattern.Doc("Documented.")), "(op3 (op1 (op1 x) y) (op2 x))", "[op3(op2(op2(x), y), op2(x))]", "op1 -> op2", "Documented."},
		{pattern.OpSub(toy("two"), toy("pair"), named), "(op1 (two x).1 (two y))", "[op1(pair(x)::1, pair(y)::0)]", "named", "two -> pair"},
		{pattern.OpSub(toy("op1"), toy("op2")), "(op3 x)", "[op3(x)]", "op1 -> op2", "op1 -> op2"},
		{pattern.OpRemove(toy("exp")), "(op1 (exp (exp x)) (exp y))", "[op1(x, y)]", "remove exp", "remove exp"},
		{pattern.OpRemove(toy("two")), "(op1 (two x y).1 (two x))", "[op1(y, two(x)::0)]", "remove two", "remove two"},
		{pattern.OpRemove(toy("two")), "(op1 (two x y z))", "[op1(x)]", "remove two", "remove two"},
		{pattern.OpRemove(toy("toint")), "(op1 (toint x) (toint i))", "[op1(toint(x), i)]", "remove toint", "remove toint"},
	}
	for _, test := range tests {
		g := newWorld(t).graph(test.graph)
		walk(t, g, rewrite.In2Out("", test.rule))
		if g.String() != test.want {
			t.Errorf("%s: %s, want %s", test.graph, g, test.want)
		}
		if test.rule.Describe().Name != test.name || test.rule.Describe().Doc != test.what {
			t.Errorf("%q %q", test.rule.Describe().Name, test.rule.Describe().Doc)
		}
	}
}
