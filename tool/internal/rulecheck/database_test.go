package rulecheck_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/tensors"
)

// shift is an op from outside: it adds a number to a vector of float64s.
type shift struct{ by float64 }

func (s shift) String() string { return map[float64]string{1: "next", -1: "previous"}[s.by] }

func (s shift) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 1 || in[0].Type() != tensor.VectorType(array.Float64) {
		return nil, &tensor.Error{Op: s.String(), Arg: 0, Text: "is no vector"}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

func (s shift) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := ws.New(out[0], array.Float64, in[0].Shape()...); err != nil {
			return err
		}
		for i := range in[0].Len() {
			out[0].SetFloat(i, in[0].Float(i)+s.by)
		}
		return nil
	}, nil
}

// words is a vocabulary with two ops, and nothing that is optional.
type words struct{}

func (words) Operator(name string) (pattern.Operator, bool) {
	for _, op := range []shift{{1}, {-1}} {
		if op.String() == name {
			return pattern.Operator{
				Match: pattern.Is(op), MinInputs: 1, MaxInputs: 1, Tracks: []rewrite.Track{rewrite.TrackOp(op)},
				Make: func(m pattern.Making) (*fgraph.Variable, error) {
					a, err := tensor.Make(op, m.Inputs...)
					if err != nil {
						return nil, err
					}
					return a.Out(), nil
				},
			}, true
		}
	}
	return pattern.Operator{}, false
}

func (words) Equal(pattern.Literal, *fgraph.Variable) bool { return false }

func (words) Constant(pattern.Literal, *fgraph.Variable) (*fgraph.Variable, error) {
	return nil, errors.New("no numbers")
}

// TestStranger: the machine knows nothing of the ops and their names.
func TestStranger(t *testing.T) {
	for text, want := range map[string]rulecheck.Class{
		"(next (previous x)) => x":        rulecheck.Rounding,
		"(next (next x)) => (next x)":     rulecheck.Wrong,
		"(next x) && never(x) => x":       rulecheck.NeverFires,
		"(next x) => (previous (next x))": rulecheck.Wrong,
	} {
		v := library{words{}}
		r, err := rulecheck.Check(t.Context(), tensors.Domain(v, nil, nil), rule(t, text), rulecheck.Options{})
		if err != nil || r.Class != want {
			t.Errorf("%s is %s: %s, %v", text, r.Class, r.Counterexample, err)
		}
	}
}

// library adds a guard that is never true.
type library struct{ words }

func (library) Functions() []pattern.Function {
	return []pattern.Function{{Name: "never", Usage: "never(x)", Doc: "nothing", Holds: func(pattern.Args) bool { return false }}}
}

// TestUndone: rules of one group that undo each other are found, whether they are text or Go, and
// those of different groups are not.
func TestUndone(t *testing.T) {
	entry := func(group, text string) rulecheck.Entry {
		s, err := pattern.New(tensorpass.Vocabulary(), rule(t, text), pattern.Shared(), pattern.Named(text))
		if err != nil {
			t.Fatal(err)
		}
		return rulecheck.Entry{Rule: s, Groups: []string{group}}
	}
	square := rewrite.Rule{
		Name: "product", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Sqr))}, Depth: 1,
		Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.Mul(n.Inputs()[0], n.Inputs()[0])), nil
		},
	}
	entries := []rulecheck.Entry{
		entry("a", "(mul x x) => (sqr x)"), {Rule: square, Groups: []string{"a"}, Cases: []rulecheck.Case{{Vars: "x: vector", Expr: "sqr(x)"}}},
		entry("a", "(lt x y) => (gt y x)"), entry("b", "(gt x y) => (lt y x)"), entry("b", "(sub (exp x) y) => (sub y (exp x))"), entry("b", "(neg (sub x y)) => (sub y x)"),
	}
	reports, undone, err := rulecheck.CheckDatabase(t.Context(), tensors.Domain(nil, nil, nil), entries, rulecheck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range undone {
		got = append(got, u.Group+": "+u.First+", "+u.Second)
	}
	if len(got) != 1 || !strings.Contains(got[0], "a: ") || !strings.Contains(got[0], "product") {
		t.Errorf("%q", got)
	}
	if r := reports[1]; r.Class != rulecheck.Exact || r.Tried == 0 || r.Name != "product" {
		t.Errorf("%+v", r)
	}
}

// TestGoRules: a Go function that is wrong on its cases is found, with the values.
func TestGoRules(t *testing.T) {
	drop := rewrite.Rule{
		Name: "drop", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(array.Abs))}, Depth: 1,
		Fn: func(_ *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(n.Inputs()[0]), nil
		},
	}
	r, err := rulecheck.CheckRewriter(t.Context(), tensors.Domain(nil, nil, nil), drop, nil, rulecheck.Options{Cases: []rulecheck.Case{{Vars: "x: vector", Expr: "exp(abs(x))"}}})
	if err != nil || r.Class != rulecheck.Wrong || r.Counterexample != "x: float64 vector = [-1.0]; left: abs(x) = [1.0]; right: x = [-1.0]" {
		t.Errorf("%+v, %v", r, err)
	}
	r, err = rulecheck.CheckRewriter(t.Context(), tensors.Domain(nil, nil, nil), drop, nil, rulecheck.Options{Cases: []rulecheck.Case{{Expr: "exp(x)"}}})
	if err != nil || r.Class != rulecheck.NeverFires {
		t.Errorf("%+v, %v", r, err)
	}
}
