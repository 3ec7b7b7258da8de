package pattern_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
)

// axes is an op with a parameter.
type axes struct{ n int }

func (o axes) String() string { return fmt.Sprintf("sum{%d}", o.n) }

// wide is a vocabulary without bounds: f0, f1, ... have one input, add and mul any number in any
// order, sub two; sum{0}, sum{1}, ... are tracked by their type.
type wide struct{}

func (wide) Operator(name string) (pattern.Operator, bool) {
	op := pattern.Operator{MinInputs: 1, MaxInputs: 1}
	var of fgraph.Op = toy(name)
	switch {
	case name == "add" || name == "mul":
		op.Commutes, op.MaxInputs = true, -1
	case name == "sub":
		op.MinInputs, op.MaxInputs = 2, 2
	case strings.HasPrefix(name, "sum{"):
		n, err := strconv.Atoi(strings.TrimSuffix(name[4:], "}"))
		if err != nil {
			return op, false
		}
		of = axes{n}
	case name[0] != 'f':
		return op, false
	}
	op.Match = pattern.Is(of)
	op.Tracks = []rewrite.Track{rewrite.TrackOp(of)}
	if _, typed := of.(axes); typed {
		op.Tracks = []rewrite.Track{rewrite.TrackType[axes]()}
	}
	op.Make = func(m pattern.Making) (*fgraph.Variable, error) {
		return fgraph.NewApply(of, m.Inputs, float).Out(), nil
	}
	return op, true
}

func (wide) Equal(l pattern.Literal, c *fgraph.Variable) bool {
	return c.IsConstant() && c.Data() == l.Float()
}

func (wide) Constant(l pattern.Literal, _ *fgraph.Variable) (*fgraph.Variable, error) {
	return fgraph.NewConstant(float, l.Float(), ""), nil
}

// valued is wide for a vocabulary that knows values.
type valued struct{ wide }

func (valued) Number(v *fgraph.Variable) (float64, bool) {
	x, ok := v.Data().(float64)
	return x, ok && v.IsConstant()
}

// A family is rules of one form in any number, and a graph for them.
type family struct {
	name  string
	vocab pattern.Vocabulary
	rule  func(i int) string
	graph func(b *builder)
}

// builder makes graphs of random applies.
type builder struct {
	*rand.Rand
	vars []*fgraph.Variable
	ins  []*fgraph.Variable
}

func newBuilder(seed uint64) *builder {
	b := &builder{Rand: rand.New(rand.NewPCG(seed, 1))}
	for i := range 8 {
		b.ins = append(b.ins, fgraph.NewInput(float, fmt.Sprint("x", i)))
	}
	b.vars = append(b.vars, b.ins...)
	return b
}

// any returns one of the last variables.
func (b *builder) any() *fgraph.Variable { return b.vars[max(0, len(b.vars)-1-b.IntN(30))] }

func (b *builder) apply(op fgraph.Op, in ...*fgraph.Variable) *fgraph.Variable {
	v := fgraph.NewApply(op, in, float).Out()
	b.vars = append(b.vars, v)
	return v
}

func (b *builder) f(n int, in *fgraph.Variable) *fgraph.Variable {
	return b.apply(toy(fmt.Sprint("f", n)), in)
}

func (b *builder) number(x float64) *fgraph.Variable { return fgraph.NewConstant(float, x, "") }

// functionGraph returns the graph. Its outputs are the variables without clients.
func (b *builder) functionGraph(tb testing.TB) *fgraph.FunctionGraph {
	used := make(map[*fgraph.Variable]bool)
	for _, v := range b.vars[len(b.ins):] {
		for _, in := range v.Owner().Inputs() {
			used[in] = true
		}
	}
	var outs []*fgraph.Variable
	for _, v := range b.vars[len(b.ins):] {
		if !used[v] {
			outs = append(outs, v)
		}
	}
	g, err := fgraph.New(b.ins, outs)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// families lists rules that share a root op, and rules that don't. In all graphs, ops have numbers
// below 40; the rules with greater numbers can't match, but some of their tests hold.
func families() []family {
	mix := func(b *builder) {
		for range 3 {
			b.f(b.IntN(40), b.any())
		}
		b.apply(toy("mul"), b.any(), b.any())
		b.apply(toy("add"), b.any(), b.any(), b.any())
	}
	chain := func(b *builder) {
		for i := range 8 {
			b.f(i, b.vars[len(b.vars)-1])
		}
		b.apply(toy("mul"), b.any(), b.any())
	}
	constants := func(b *builder) {
		b.apply(toy("mul"), b.any(), b.number(float64(100+b.IntN(2000))+0.5))
		b.apply(toy("mul"), b.any(), b.any())
	}
	return []family{
		{"mul_f", wide{}, func(i int) string { return fmt.Sprintf("(mul (f%d x) (f%d y)) => (f1 x)", 50+i, i%40) }, mix},
		{"mul_deep", wide{}, func(i int) string {
			return fmt.Sprintf("(mul (f%d (f%d (f%d x))) (f%d y)) => (f1 x)", i%40, i/40, 40+i, i%7)
		}, mix},
		{"add_of_mul", wide{}, func(i int) string {
			return fmt.Sprintf("(add (mul (f%d x) y) (f%d z) ...rest) => (add x ...rest)", 50+i, i%40)
		}, mix},
		{"add_rest", wide{}, func(i int) string {
			return fmt.Sprintf("(add (f%d (f%d x)) (f%d x) ...rest) => (add x ...rest)", i%40, i, 50+i)
		}, mix},
		{"numbers", valued{}, func(i int) string { return fmt.Sprintf("(mul x %d) => (f%d x)", i, i) }, constants},
		{"chains", wide{}, func(i int) string {
			s := fmt.Sprintf("(f%d x)", 50+i)
			for j := i % 8; j < 8; j++ {
				s = fmt.Sprintf("(f%d %s)", j, s)
			}
			return s + " => x"
		}, chain},
		{"parameters", wide{}, func(i int) string { return fmt.Sprintf("(sum{%d} (sum{%d} x)) => (sum{1} x)", i%40, 50+i) }, func(b *builder) {
			b.apply(axes{b.IntN(40)}, b.any())
			b.f(b.IntN(40), b.any())
		}},
		{"roots", wide{}, func(i int) string { return fmt.Sprintf("(f%d (f%d x)) => x", i, 50+i) }, mix},
	}
}

// compileAll returns the first n rules of a family.
func (f *family) compileAll(tb testing.TB, n int) []rewrite.NodeRewriter {
	rules := make([]rewrite.NodeRewriter, n)
	for i := range rules {
		r, err := pattern.Compile(f.vocab, f.rule(i), pattern.Shared())
		if err != nil {
			tb.Fatal(err)
		}
		rules[i] = r
	}
	return rules
}

// build returns a graph of at least n applies, in which the first rule matches at one of a hundred.
func (f *family) build(tb testing.TB, n int) *fgraph.FunctionGraph {
	b := newBuilder(7)
	r, err := pattern.ParseRewrite(f.rule(0))
	if err != nil {
		tb.Fatal(err)
	}
	for i := 0; len(b.vars) < n; i++ {
		f.graph(b)
		if i%20 == 0 {
			b.instance(tb, f.vocab, r.In.Expr, make(map[pattern.Name]*fgraph.Variable))
		}
	}
	return b.functionGraph(tb)
}

// instance adds an expression that a pattern matches.
func (b *builder) instance(tb testing.TB, vocab pattern.Vocabulary, e pattern.Expr, named map[pattern.Name]*fgraph.Variable) *fgraph.Variable {
	switch e := e.(type) {
	case pattern.Name:
		if named[e] == nil {
			named[e] = b.any()
		}
		return named[e]
	case pattern.Literal:
		return b.number(e.Float())
	case *pattern.Call:
		var in []*fgraph.Variable
		for _, arg := range e.Args {
			if _, rest := arg.(pattern.Rest); !rest {
				in = append(in, b.instance(tb, vocab, arg, named))
			}
		}
		op, _ := vocab.Operator(e.Op)
		v, err := op.Make(pattern.Making{Inputs: in})
		if err != nil {
			tb.Fatal(err)
		}
		b.vars = append(b.vars, v)
		return v
	}
	tb.Fatalf("%v in a graph", e)
	return nil
}
