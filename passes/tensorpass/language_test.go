package tensorpass_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/tensor/expr"
)

// TestOneMeaning: a name of an op means in a pattern what it means in an expression. But a
// replacement drops a sum or product of one term, and NumPy's dot of a scalar is another op.
func TestOneMeaning(t *testing.T) {
	compared := 0
	for _, name := range expr.Default().Names() {
		op, ok := tensorpass.Vocabulary().Operator(name)
		if !ok {
			continue // it has parameters
		}
		for _, args := range []string{"x", "X", "x, y", "X, Y", "p, q", "p, x, y", "X, i", "i", "i, j", "s, i, n", "n, n, n", "x, n", "S, X", "X, x, i", "x, s, X, y, s"} {
			s := expr.NewScope()
			if err := s.Declare("x y: vector; X Y: matrix; p q: bool[?]; i j: int64[?]; s t: scalar; n: int64 scalar; S: csr"); err != nil {
				t.Fatal(err)
			}
			typed, err := s.Parse(name + "(" + args + ")")
			oneTerm := (name == "add" || name == "mul") && !strings.Contains(args, ",")
			if err != nil || oneTerm || name == "dot" && args == "x, n" {
				continue
			}
			var in []*fgraph.Variable
			for _, a := range strings.Split(args, ", ") {
				in = append(in, s.Lookup(a))
			}
			made, err := op.Make(pattern.Making{Inputs: in, Like: typed[0]})
			if err != nil {
				t.Errorf("%s(%s) is an expression, but as a replacement: %v", name, args, err)
				continue
			}
			compared++
			if a, b := fgraph.Sprint(0, typed[0]), fgraph.Sprint(0, made); a != b {
				t.Errorf("%s(%s) is %s as an expression and %s in a pattern", name, args, a, b)
			}
			if a := typed[0].Owner(); a == nil || !op.Match(a.Op()) {
				t.Errorf("the pattern %s does not match %s", name, fgraph.Sprint(0, typed[0]))
			}
		}
	}
	if compared < 200 {
		t.Errorf("only %d names were compared", compared)
	}
}
