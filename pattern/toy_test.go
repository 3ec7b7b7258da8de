package pattern_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// toy is an op identified by its name, which computes nothing.
type toy string

func (o toy) String() string { return string(o) }

// pointer is an op that equals others with its name.
type pointer struct{ name string }

func (p *pointer) String() string { return p.name }
func (p *pointer) EqualOp(o fgraph.Op) bool {
	q, ok := o.(*pointer)
	return ok && *q == *p
}
func (p *pointer) HashOp() uint64 { return uint64(len(p.name)) }

type toyType string

func (t toyType) String() string             { return string(t) }
func (t toyType) Accepts(u fgraph.Type) bool { return t == u || t == "any" }

const (
	float toyType = "float"
	whole toyType = "int"
)

// toys is a vocabulary. op1 to op6 take any number of inputs; so do add and mul, in any
// order; two has two outputs; toint returns an integer; sum{...} sums over the axes in
// braces; equal is compared by EqualOp.
type toys struct{}

func (toys) Operator(name string) (pattern.Operator, bool) {
	op := pattern.Operator{MinInputs: 0, MaxInputs: -1}
	typ := []fgraph.Type{float}
	switch base, _, _ := strings.Cut(name, "{"); base {
	case "op1", "op2", "op3", "op4", "op5", "op6", "zeros":
	case "add", "mul":
		op.Commutes = true
	case "exp", "sum":
		op.MinInputs, op.MaxInputs = 1, 1
	case "toint":
		op.MinInputs, op.MaxInputs = 1, 1
		typ = []fgraph.Type{whole}
	case "true_div":
		op.MinInputs, op.MaxInputs = 2, 2
	case "clip":
		op.MinInputs, op.MaxInputs = 1, 3
	case "two":
		typ = []fgraph.Type{float, float}
	case "matched_only":
		op.Match = pattern.Is(toy(name))
		return op, true
	case "equal":
		op.Match = pattern.Is(&pointer{"equal"})
		op.Tracks = []rewrite.Track{rewrite.TrackOp(&pointer{"equal"})}
		return op, true
	default:
		return op, false
	}
	op.Match = pattern.Is(toy(name))
	op.Tracks = []rewrite.Track{rewrite.TrackOp(toy(name))}
	op.Make = func(m pattern.Making) (*fgraph.Variable, error) {
		for _, v := range m.Inputs {
			if v.Type() == whole && name == "exp" {
				return nil, errors.New("exp of an integer")
			}
		}
		return fgraph.NewApply(toy(name), m.Inputs, typ...).Out(), nil
	}
	return op, true
}

func (toys) Equal(l pattern.Literal, c *fgraph.Variable) bool {
	if n, isInt := l.Int(); isInt && c.Type() == whole {
		return c.Data() == n
	}
	return c.IsConstant() && c.Type() == float && c.Data() == l.Float()
}

func (toys) Constant(l pattern.Literal, like *fgraph.Variable) (*fgraph.Variable, error) {
	if like.Type() == whole {
		n, ok := l.Int()
		if !ok {
			return nil, fmt.Errorf("%s is not an integer", l)
		}
		return fgraph.NewConstant(whole, n, ""), nil
	}
	return fgraph.NewConstant(float, l.Float(), ""), nil
}

// A world builds a graph from expressions of the pattern language. Names are inputs, of type
// int if they start with "i". Use let for shared expressions.
type world struct {
	t      *testing.T
	inputs []*fgraph.Variable
	named  map[string]*fgraph.Variable
}

func newWorld(t *testing.T) *world {
	return &world{t: t, named: make(map[string]*fgraph.Variable)}
}

// let names the value of an expression.
func (w *world) let(name, text string) { w.named[name] = w.make(text) }

func (w *world) make(text string) *fgraph.Variable {
	w.t.Helper()
	e, err := pattern.ParseExpr(text)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.build(e)
}

func (w *world) build(e pattern.Expr) *fgraph.Variable {
	switch e := e.(type) {
	case pattern.Name:
		v := w.named[string(e)]
		if v == nil {
			typ := float
			if e[0] == 'i' {
				typ = whole
			}
			v = fgraph.NewInput(typ, string(e))
			w.named[string(e)] = v
			w.inputs = append(w.inputs, v)
		}
		return v
	case pattern.Literal:
		return fgraph.NewConstant(float, e.Float(), string(e))
	case *pattern.Call:
		var args []*fgraph.Variable
		for _, a := range e.Args {
			args = append(args, w.build(a))
		}
		if e.Op == "equal" {
			return fgraph.NewApply(&pointer{"equal"}, args, float).Out()
		}
		op, ok := toys{}.Operator(e.Op)
		if !ok || op.Make == nil {
			return fgraph.NewApply(toy(e.Op), args, float).Out()
		}
		v, err := op.Make(pattern.Making{Inputs: args})
		if err != nil {
			w.t.Fatal(err)
		}
		return v.Owner().Outputs()[e.Output]
	}
	w.t.Fatalf("%s in a graph", e)
	return nil
}

// graph returns the graph of outputs.
func (w *world) graph(outputs ...string) *fgraph.FunctionGraph {
	w.t.Helper()
	var outs []*fgraph.Variable
	for _, text := range outputs {
		outs = append(outs, w.make(text))
	}
	g, err := fgraph.New(w.inputs, outs)
	if err != nil {
		w.t.Fatal(err)
	}
	return g
}

// walk applies rules in one walk and returns how often each fired.
func walk(t *testing.T, g *fgraph.FunctionGraph, w *rewrite.Walk) {
	t.Helper()
	if err := rewrite.Run(t.Context(), w, g, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.Check(); err != nil {
		t.Fatal(err)
	}
}

func compile(t *testing.T, rule string, options ...pattern.Option) *pattern.Substitution {
	t.Helper()
	s, err := pattern.Compile(toys{}, rule, options...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
