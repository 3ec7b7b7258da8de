package repro_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/passes/tensorpass"
	"github.com/nnopt/nnopt/passes/tensortest"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
	"github.com/nnopt/nnopt/tool/repro"
	"github.com/nnopt/nnopt/tool/tensors"
)

// A fault is a pass or a rule that does harm, and what is to be found out about it.
type fault struct {
	name  string
	plant func(t *testing.T, db *optdb.SequenceDB)
	want  repro.Failure
	after string // of the culprit, if there is one
}

var faults = []fault{
	{"a wrong rule", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, pattern.Must(tensorpass.Vocabulary(), "(tanh x)", "(sigmoid x)", pattern.Named("wrong")))
	}, repro.Failure{Kind: repro.Values, Pass: "canonicalize", Rule: "wrong"}, "sigmoid("},
	{"a rule that panics", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, ruleOn("panics", array.Tanh, func(a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(a.Inputs()[1]), nil
		}))
	}, repro.Failure{Kind: repro.Panic, Pass: "canonicalize", Rule: "panics"}, ""},
	{"a rule that returns an error", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, ruleOn("fails", array.Tanh, func(a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Result{}, errors.ErrUnsupported
		}))
	}, repro.Failure{Kind: repro.Error, Pass: "canonicalize", Rule: "fails"}, ""},
	{"a replacement of another type", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, ruleOn("mistyped", array.Tanh, func(a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.Scalar("other")), nil
		}))
	}, repro.Failure{Kind: repro.Proposal, Pass: "canonicalize", Rule: "mistyped"}, ""},
	{"rules without end", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, pattern.Must(tensorpass.Vocabulary(), "(tanh x)", "(sin x)", pattern.Named("there")))
		register(t, db, pattern.Must(tensorpass.Vocabulary(), "(sin x)", "(tanh x)", pattern.Named("back")))
	}, repro.Failure{Kind: repro.NoEnd, Pass: "canonicalize"}, "sin("},
	{"a pass that damages the graph", func(t *testing.T, db *optdb.SequenceDB) {
		check(t, db.Register("damage", rewrite.Global{Name: "damage", Doc: "Changes operands behind the back of the graph.", Fn: func(_ context.Context, h *rewrite.Handle) error {
			for a := range h.Graph().Applies() {
				if a.Op() == fgraph.Op(tensor.OpFor(array.Tanh)) {
					a.Inputs()[0] = h.Graph().Inputs()[0]
					if a.Inputs()[0] == a.Outputs()[0] {
						return nil
					}
				}
			}
			return nil
		}}, 1.6, "fast_run"))
	}, repro.Failure{Kind: repro.Damage, Pass: "damage"}, ""},
	{"an op that overwrites what is read later", func(t *testing.T, db *optdb.SequenceDB) {
		check(t, db.Register("overwrite", rewrite.In2Out("overwrite", ruleOn("in_place", array.Tanh, func(a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.MustApply(overwriting{}, a.Inputs()...)), nil
		})), 1.7, "fast_run"))
	}, repro.Failure{Kind: repro.Declaration, Pass: "overwrite", Rule: "in_place"}, "overwriting("},
	{"an op in place before anybody watches", func(t *testing.T, db *optdb.SequenceDB) {
		register(t, db, ruleOn("early", array.Tanh, func(a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(tensor.MustApply(tensor.Elemwise{Op: array.Tanh, Inplace: 1}, a.Inputs()...)), nil
		}))
	}, repro.Failure{Kind: repro.Overwrite, Pass: "canonicalize", Rule: "early"}, ""},
	{"a pass that loses an output's value", func(t *testing.T, db *optdb.SequenceDB) {
		check(t, db.Register("lose", rewrite.Global{Name: "lose", Doc: "Replaces what it should keep.", Fn: func(_ context.Context, h *rewrite.Handle) error {
			for a := range h.Graph().Applies() {
				if a.Op() == fgraph.Op(tensor.OpFor(array.Tanh)) {
					_, err := h.Replace("", a, fgraph.Replacement{Old: a.Out(), New: a.Inputs()[0]})
					return err
				}
			}
			return nil
		}}, 1.6, "fast_run"))
	}, repro.Failure{Kind: repro.Values, Pass: "lose"}, ""},
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// register adds a rule to canonicalize.
func register(t *testing.T, db *optdb.SequenceDB, rule rewrite.NodeRewriter) {
	t.Helper()
	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	check(t, err)
	check(t, canonicalize.Register(rewrite.Describe(rule).Name, rule, "fast_run"))
}

// ruleOn is a Go rule for one op.
func ruleOn(name string, op array.Opcode, fn func(a *fgraph.Apply) (rewrite.Result, error)) rewrite.Rule {
	return rewrite.Rule{Name: name, Doc: "Does harm.", On: []rewrite.Track{rewrite.TrackOp(tensor.OpFor(op))},
		Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) { return fn(a) }}
}

// overwriting computes the hyperbolic tangent in place, and doesn't say so.
type overwriting struct{}

func (overwriting) String() string { return "overwriting" }

func (overwriting) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	return []fgraph.Type{in[0].Type()}, nil
}

func (overwriting) Compile(*fgraph.Apply) (tensor.Kernel, error) {
	return func(_ *array.Workspace, in, out []*array.Array) error {
		*out[0] = *in[0].Clone()
		for i := range out[0].Len() {
			in[0].SetFloat(i, in[0].Float(i)+1)
		}
		return nil
	}, nil
}

// large returns a random graph of about a thousand applies with hyperbolic tangents somewhere.
func large(t *testing.T, seed uint64, applies int) *fgraph.FunctionGraph {
	t.Helper()
	gen := tensortest.NewGenerator(seed)
	gen.Motifs = []tensortest.Motif{"tanh(x)*y", "x + z", "exp(-abs(X))", "sum(x*y)", "tanh(X) + r", "dot(X, Y)"}
	var g *fgraph.FunctionGraph
	for n := 50; ; n += 50 {
		gen.Grow(50)
		inputs, _ := gen.Inputs()
		var err error
		if g, err = tensor.NewGraph(inputs, gen.Outputs(n)); err != nil {
			t.Fatal(err)
		}
		if g.NumApplies() >= applies {
			break
		}
	}
	return g
}

// planted returns the case of a fault.
func planted(t *testing.T, f fault, g *fgraph.FunctionGraph) *repro.Case {
	t.Helper()
	db := passes.Default()
	f.plant(t, db)
	q, _ := optdb.Mode(optdb.ModeDebug)
	return &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: db.Build, Graph: g, Query: q, Seed: 1}
}

// TestFaults: every planted fault is found in a graph of a thousand applies, bisected to the
// rewrite, and reduced to a few applies that fail in the same way when they are read from a file.
func TestFaults(t *testing.T) {
	g := large(t, 6, longtest.Of(30, 1000)) // some have no shapes for a call
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			testFault(t, f, planted(t, f, g))
		})
	}
}

// testFault tests a case with a planted fault.
func testFault(t *testing.T, f fault, c *repro.Case) {
	t.Helper()
	var err error
	c.Failure, err = repro.Check(t.Context(), c)
	if f.want.Kind == repro.NoEnd {
		// Which of the two rules fires once too often depends on the graph.
		f.want.Rule = c.Failure.Rule
	}
	if err != nil || !c.Failure.Same(f.want) {
		t.Fatalf("%v: %v, %v", c.Failure, c.Failure.Err, err)
	}
	found, err := repro.Bisect(t.Context(), c)
	check(t, err)
	if f.after != "" && (!strings.Contains(found.Culprit.After, f.after) || found.Culprit.Pass != f.want.Pass) {
		t.Errorf("to blame: %v", found.Culprit)
	}
	if again, err := repro.Check(t.Context(), found.Before); err != nil || !again.Same(f.want) {
		t.Errorf("before the culprit: %v, %v", again, err)
	}
	runs := 0
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{Progress: func(p repro.Progress) { runs = p.Runs }})
	check(t, err)
	again := reread(t, small)
	if got, err := repro.Check(t.Context(), again); err != nil || !got.Same(f.want) {
		t.Errorf("reduced: %v, %v", got, err)
	}
	if n := again.Graph.NumApplies(); n > 5 {
		t.Errorf("%d applies are left: %v", n, again.Graph)
	}
	t.Logf("%d applies, %d runs, query %v: %v", c.Graph.NumApplies(), runs, again.Query, again.Graph)
}

// reread writes a case to a file and reads it.
func reread(t *testing.T, c *repro.Case) *repro.Case {
	t.Helper()
	f, err := c.File()
	check(t, err)
	text, err := graphfile.Format(f, c.World.Dialect())
	check(t, err)
	if f, err = graphfile.Parse("case", text, c.World.Dialect()); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	again, err := repro.FromFile(f, c.World, c.Build)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	second, err := again.File()
	check(t, err)
	if printed, err := graphfile.Format(second, c.World.Dialect()); err != nil || printed != text {
		t.Errorf("%v\n%s\nreads as\n%s", err, text, printed)
	}
	return again
}
