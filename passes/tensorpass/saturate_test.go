package tensorpass_test

import (
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/tensor"
)

// saturation returns the optimizer of rules as text.
func saturation(t testing.TB, rules string) *optdb.Optimizer {
	t.Helper()
	list, err := pattern.ParseRules("test", rules)
	if err != nil {
		t.Fatal(err)
	}
	db := saturate.NewDB("saturate")
	for _, r := range list {
		s, err := pattern.New(tensorpass.Vocabulary(), r)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Register(r.Name, s); err != nil {
			t.Fatal(err)
		}
	}
	opt, err := db.Build(optdb.Include("saturate"))
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

func TestSaturate(t *testing.T) {
	opt := saturation(t, `
flat:
    (add s@(add ...xs) ...ys) && float(s, xs, ys) => (add ...xs ...ys)
factor:
    (add (mul x ...ys) (mul x ...zs) ...rest) && float(x, ys, zs, rest) <=> (add (mul x (add (mul ...ys) (mul ...zs))) ...rest)
fold:
    (mul a b ...xs) && number(a, b) && float(a, b) => (mul {a*b} ...xs)
one:
    (mul x) => x
    (add x) => x
    (mul 1 x) => x
negation:
    (neg (neg x)) => x
`)
	for _, c := range [][2]string{
		{"x*y + x*z", "[mul(x, add(y, z))]"},
		{"x*y + x*z + w*y + w*z", "[mul(add(y, z), add(x, w))]"},
		{"neg(neg(neg(x)))", "[neg(x)]"},
		{"neg(neg(A))*x + A*x[None]", "[mul(A, add(*1 -> DimShuffle{x,0}(x), *1))]"},
	} {
		s, out, g := newGraph(t, "x y z w: vector; A B: matrix", c[0])
		rec := profile.New("saturate", "x")
		if err := opt.Rewrite(t.Context(), g, rec); err != nil {
			t.Fatal(err)
		}
		if got := g.String(); got != c[1] {
			t.Errorf("%s becomes %s, not %s", c[0], got, c[1])
		}
		sameValues(t, s, out, g, true)
	}
}

// TestBoundsOfClasses: what is equal to a variable says between which numbers it is, and so do bounds that are given; and
// what can be no number is equal.
func TestBoundsOfClasses(t *testing.T) {
	rules, err := pattern.ParseRules("test", `
larger:
    (maximum x y) && at_least(x, y) => x
same:
    (sub (add x y) y) => x
`)
	if err != nil {
		t.Fatal(err)
	}
	pass := new(saturate.Pass)
	for _, r := range rules {
		s, err := pattern.New(tensorpass.Vocabulary(), r)
		if err != nil {
			t.Fatal(err)
		}
		pass.Rules = append(pass.Rules, s)
	}
	for _, c := range []struct {
		left, right string
		given       map[string][2]float64
		equal       bool
	}{
		{"maximum(exp(x) + y - y, -1)", "exp(x)", nil, true}, // the sum says nothing, what it is equal to does
		{"maximum(x + y - y, -1)", "x", nil, false},
		{"maximum(2 - 3/x, 1)", "2 - 3/x", map[string][2]float64{"x": {3, 5}}, true},
		{"maximum(2 - 3/x, 1)", "2 - 3/x", map[string][2]float64{"x": {2, 5}}, false},
		{"sqrt(x) + y", "log(x) * y", map[string][2]float64{"x": {-2, -1}}, true},
		{"sqrt(x) + y", "log(x) * y", map[string][2]float64{"x": {-2, 1}}, false},
	} {
		s, left, _ := newGraph(t, "x y: vector", c.left)
		right, err := s.Parse(c.right)
		if err != nil {
			t.Fatal(err)
		}
		g, err := tensor.NewGraph(s.Inputs(), append(left, right...))
		if err != nil {
			t.Fatal(err)
		}
		equal, err := pass.Equal(t.Context(), g, c.given)
		if err != nil || equal[0] != c.equal {
			t.Errorf("%s = %s: %v, %v", c.left, c.right, equal, err)
		}
	}
}
