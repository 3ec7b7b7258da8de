package saturate_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// toy is an op that computes nothing. "scale{3}" belongs to the family scale, and so does double.
type toy string

func (o toy) String() string { return string(o) }

// DestroyMap makes overwrite destroy its input.
func (o toy) DestroyMap() []fgraph.Alias {
	if o == "overwrite" {
		return []fgraph.Alias{{}}
	}
	return nil
}

// ViewMap makes view a view of its input.
func (o toy) ViewMap() []fgraph.Alias {
	if o == "view" {
		return []fgraph.Alias{{}}
	}
	return nil
}

type toyType string

func (t toyType) String() string             { return string(t) }
func (t toyType) Accepts(u fgraph.Type) bool { return t == u || t == "any" }

const (
	number toyType = "number"
	whole  toyType = "whole"
)

// toys is a vocabulary. Ops cost 1, those whose names begin with "dear" cost 10, views nothing, and
// sums one less than they have terms.
type toys struct{}

var arities = map[string][2]int{
	"add": {1, -1}, "mul": {1, -1}, "sub": {2, 2}, "neg": {1, 1}, "double": {1, 1}, "dear": {1, 1}, "dear_pair": {2, 2}, "cheap": {1, 1}, "split": {1, 1},
	"f": {1, 1}, "g": {1, 1}, "h": {1, 1}, "to_whole": {1, 1}, "view": {1, 1}, "overwrite": {1, 1}, "list": {0, -1},
}

func (toys) Operator(name string) (pattern.Operator, bool) {
	n, ok := arities[name]
	o := pattern.Operator{MinInputs: n[0], MaxInputs: n[1], Match: pattern.Is(toy(name)), Commutes: name == "add" || name == "mul"}
	o.Tracks = []rewrite.Track{rewrite.TrackOp(toy(name))}
	o.Make = func(m pattern.Making) (*fgraph.Variable, error) { return call(name, m.Inputs...), nil }
	return o, ok
}

func (toys) Family(name string) (pattern.Operator, bool) {
	scale := func(o fgraph.Op) (int, bool) {
		if o == toy("double") {
			return 2, true
		}
		text, ok := strings.CutPrefix(o.String(), name+"{")
		n, err := strconv.Atoi(strings.TrimSuffix(text, "}"))
		return n, ok && err == nil
	}
	return pattern.Operator{
		MinInputs: 1, MaxInputs: 1,
		Match: func(o fgraph.Op) bool { _, ok := scale(o); return ok },
		Param: func(o fgraph.Op) any { n, _ := scale(o); return n },
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return call(fmt.Sprintf("%s{%d}", name, m.Param), m.Inputs...), nil
		},
	}, name == "scale"
}

func (toys) Equal(l pattern.Literal, v *fgraph.Variable) bool {
	return v.IsConstant() && v.Data() == l.Float()
}

func (toys) Number(v *fgraph.Variable) (float64, bool) {
	x, ok := v.Data().(float64)
	return x, ok
}

func (toys) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	return fgraph.NewConstant(like.Type(), l.Float(), ""), nil
}

func (toys) Functions() []pattern.Function {
	isNumber := func(v *fgraph.Variable) bool { return v.Type() == number }
	return []pattern.Function{
		pattern.NewGuardOfEach("number(x)", 1, "x is a number", isNumber),
		pattern.NewGuardOfEach("constant(x)", 1, "x is a constant", (*fgraph.Variable).IsConstant),
		pattern.NewGuardOfEach("once(x)", 1, "x has one use", func(v *fgraph.Variable) bool { return len(v.Clients()) == 1 }),
		pattern.NewGuard("even({a})", 1, "a is even", func(a pattern.Args) bool { return a.Params[0].(int)%2 == 0 }),
		pattern.NewGuard("root_is_number(x)", 1, "the result is a number", func(a pattern.Args) bool { return a.Root.Out().Type() == number }),
		pattern.NewGuardOfEach("by_f(x)", 2, "f computes x", func(v *fgraph.Variable) bool { return v.Owner() != nil && v.Owner().Op() == toy("f") }),
		{Name: "times", Usage: "times({a}, {b})", Param: func(a pattern.Args) (any, error) { return a.Params[0].(int) * a.Params[1].(int), nil }},
	}
}

// Rank prefers results of f.
func (toys) Rank(v *fgraph.Variable) int {
	if a := v.Owner(); a != nil && a.Op() == toy("f") {
		return 1
	}
	return 0
}

func (toys) ClassFunctions() []pattern.Function {
	return []pattern.Function{pattern.NewGuardOfEach("once(x)", 1, "always", func(*fgraph.Variable) bool { return true })}
}

func (toys) Cost(a *fgraph.Apply) float64 {
	switch name := a.Op().String(); {
	case strings.HasPrefix(name, "dear"):
		return 10
	case name == "view":
		return 0
	case name == "add", name == "mul":
		return float64(len(a.Inputs()) - 1)
	}
	return 1
}

// FusedCost says that f costs nothing as a part of another op.
func (v toys) FusedCost(a *fgraph.Apply) float64 {
	if a.Op() == toy("f") {
		return 0
	}
	return v.Cost(a)
}

// call applies an op. split has two outputs, to_whole another type.
func call(name string, in ...*fgraph.Variable) *fgraph.Variable {
	types := []fgraph.Type{number}
	switch name {
	case "split":
		types = append(types, number)
	case "to_whole":
		types[0] = whole
	}
	return fgraph.NewApply(toy(name), in, types...).Out()
}

// graph makes a graph of expressions in the language of patterns. Names are inputs.
func graph(t testing.TB, texts ...string) *fgraph.FunctionGraph {
	t.Helper()
	var inputs, outputs []*fgraph.Variable
	named := make(map[string]*fgraph.Variable)
	known := make(map[string]*fgraph.Variable)
	var build func(e pattern.Expr) *fgraph.Variable
	build = func(e pattern.Expr) *fgraph.Variable {
		if v := known[e.String()]; v != nil {
			return v
		}
		var v *fgraph.Variable
		switch e := e.(type) {
		case pattern.Name:
			if v = named[string(e)]; v == nil {
				v = fgraph.NewInput(number, string(e))
				named[string(e)] = v
				inputs = append(inputs, v)
			}
			return v
		case pattern.Literal:
			return fgraph.NewConstant(number, e.Float(), "")
		case *pattern.Call:
			var args []*fgraph.Variable
			for _, a := range e.Args {
				args = append(args, build(a))
			}
			first := pattern.Call{Op: e.Op, Args: e.Args}
			if v = known[first.String()]; v == nil {
				v = call(e.Op, args...)
				known[first.String()] = v
			}
			v = v.Owner().Outputs()[e.Output]
		default:
			t.Fatalf("%v in a graph", e)
		}
		known[e.String()] = v
		return v
	}
	for _, text := range texts {
		e, err := pattern.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, build(e))
	}
	g, err := fgraph.New(inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// pass returns the pass of rules.
func pass(t testing.TB, rules string) *saturate.Pass {
	t.Helper()
	list, err := pattern.ParseRules("test", rules)
	if err != nil {
		t.Fatal(err)
	}
	p := &saturate.Pass{Name: "saturate"}
	for _, r := range list {
		s, err := pattern.New(toys{}, r)
		if err != nil {
			t.Fatal(err)
		}
		p.Rules = append(p.Rules, s)
	}
	if err := p.Prepare(); err != nil {
		t.Fatal(err)
	}
	return p
}

// result runs a pass, and returns the graph as text.
func result(t testing.TB, p rewrite.GraphRewriter, g *fgraph.FunctionGraph) (string, *profile.Record) {
	t.Helper()
	rec := profile.New("saturate", "")
	if err := rewrite.Run(t.Context(), p, g, rec); err != nil {
		t.Fatal(err)
	}
	rec.End()
	if err := g.Check(); err != nil {
		t.Error(err)
	}
	if err := g.Validate(); err != nil {
		t.Error(err)
	}
	return g.String(), rec.Record()
}
