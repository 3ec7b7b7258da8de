package repro_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool/repro"
)

// Circuits are a small dialect: gates of booleans. A value is a uint64, 64 cases at once.

// boolean is the type of all values.
type boolean struct{}

func (boolean) String() string             { return "bool" }
func (boolean) Accepts(u fgraph.Type) bool { return u == fgraph.Type(boolean{}) }

// gate is an op. A "!" at its end says that it overwrites its first input.
type gate string

func (g gate) String() string { return string(g) }

func (g gate) DestroyMap() []fgraph.Alias {
	if strings.HasSuffix(string(g), "!") {
		return []fgraph.Alias{{Output: 0, Input: 0}}
	}
	return nil
}

// arity is the number of inputs of each gate.
var arity = map[gate]int{"not": 1, "not!": 1, "and": 2, "or": 2, "xor": 2}

// circuitDialect is how circuits are written.
type circuitDialect struct{}

func (circuitDialect) OpText(op fgraph.Op) (string, error) { return op.String(), nil }

func (circuitDialect) ParseOp(text string) (fgraph.Op, error) {
	if arity[gate(text)] == 0 {
		return nil, fmt.Errorf("no gate %q", text)
	}
	return gate(text), nil
}

func (circuitDialect) ParseType(text string) (fgraph.Type, error) {
	if text != "bool" {
		return nil, fmt.Errorf("no type %q", text)
	}
	return boolean{}, nil
}

func (circuitDialect) DataText(_ fgraph.Type, data any) (string, error) {
	return strconv.FormatUint(data.(uint64), 16), nil
}

func (circuitDialect) ParseData(_ fgraph.Type, text string) (any, error) {
	return strconv.ParseUint(text, 16, 64)
}

func (circuitDialect) Check(a *fgraph.Apply) error {
	if n := arity[a.Op().(gate)]; len(a.Inputs()) != n || len(a.Outputs()) != 1 {
		return fmt.Errorf("%v has %d inputs", a.Op(), n)
	}
	return nil
}

// circuits is a world that knows only how circuits are written.
type circuits struct{}

func (circuits) Dialect() graphfile.Dialect { return circuitDialect{} }

// computed is a world that also computes circuits.
type computed struct {
	circuits
	zero bool // whether random values are all false
}

func (w computed) Random(_ context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	r := rand.New(rand.NewPCG(seed, 0))
	values := make([]any, len(g.Inputs()))
	for i := range values {
		if values[i] = r.Uint64(); w.zero {
			values[i] = uint64(0)
		}
	}
	return values, nil
}

func (computed) Evaluate(_ context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	return repro.Interpret(g, inputs, func(a *fgraph.Apply, in []any) ([]any, error) {
		x, y := in[0].(uint64), in[len(in)-1].(uint64)
		switch a.Op() {
		case gate("not"), gate("not!"):
			return []any{^x}, nil
		case gate("and"):
			return []any{x & y}, nil
		case gate("or"):
			return []any{x | y}, nil
		case gate("xor"):
			return []any{x ^ y}, nil
		}
		return nil, errors.ErrUnsupported
	})
}

func (computed) Differ(outputs, right []any) string {
	if slices.Equal(outputs, right) {
		return ""
	}
	return fmt.Sprintf("%x, not %x", outputs, right)
}

// circuit returns the case of a circuit, whose lines are those of a graph file, under rules.
func circuit(t *testing.T, w repro.World, text string, rules ...rewrite.NodeRewriter) *repro.Case {
	t.Helper()
	f, err := graphfile.Parse("circuit", "graph {\n"+text+"\n}\n", w.Dialect())
	check(t, err)
	db := optdb.NewSequenceDB("circuits")
	check(t, db.Register("simplify", rewrite.In2Out("simplify", rules...), 1, "fast_run"))
	return &repro.Case{World: w, Build: db.Build, Graph: f.Graph, Query: optdb.Include("fast_run")}
}

// rewiring returns a rule for the applies of one gate.
func rewiring(name string, op gate, fn func(a *fgraph.Apply) *fgraph.Variable) rewrite.Rule {
	return rewrite.Rule{Name: name, Doc: "Rewires a gate.", On: []rewrite.Track{rewrite.TrackOp(op)},
		Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(fn(a)), nil
		}}
}

// xorIsOr is wrong where both inputs are true.
var xorIsOr = rewiring("xor_is_or", "xor", func(a *fgraph.Apply) *fgraph.Variable {
	return fgraph.NewApply(gate("or"), a.Inputs(), boolean{}).Out()
})

// adder is the circuit of a full adder.
const adder = `
	input %a : bool
	input %b : bool
	input %c : bool
	%1 = and(%a, %b) : bool
	%2 = xor(%a, %b) : bool
	%3 = and(%2, %c) : bool
	%4 = xor(%2, %c) : bool
	%5 = or(%1, %3) : bool
	return %4, %5`

// TestCircuits: a dialect with an Evaluator and nothing else has wrong values found, bisected and
// reduced.
func TestCircuits(t *testing.T) {
	c := circuit(t, computed{}, adder, xorIsOr)
	testFault(t, fault{want: repro.Failure{Kind: repro.Values, Pass: "simplify", Rule: "xor_is_or"}, after: "or("}, c)
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	check(t, err)
	if n := small.Graph.NumApplies(); n != 1 || small.Query.String() != "+simplify" || small.Values != nil {
		t.Error(text(t, small))
	}
	found, err := repro.Bisect(t.Context(), c)
	check(t, err)
	if found.Culprit.Pass != "simplify" || found.Culprit.Rule != "xor_is_or" {
		t.Errorf("to blame: %v", found.Culprit)
	}
	// A rule that is right does not fail, and neither does it on a graph without inputs.
	right := rewiring("de_morgan", "and", func(a *fgraph.Apply) *fgraph.Variable {
		not := func(v *fgraph.Variable) *fgraph.Variable {
			return fgraph.NewApply(gate("not"), []*fgraph.Variable{v}, boolean{}).Out()
		}
		return not(fgraph.NewApply(gate("or"), []*fgraph.Variable{not(a.Inputs()[0]), not(a.Inputs()[1])}, boolean{}).Out())
	})
	for _, c := range []*repro.Case{circuit(t, computed{}, adder, right), circuit(t, computed{}, "%1 = constant {f0} : bool\n return %1", right)} {
		if f, err := repro.Check(t.Context(), c); err != nil || f.Kind != repro.None {
			t.Errorf("%v, %v", f, err)
		}
	}
}

// TestRecordByDefault: without a Recorder, what is cut off leaves the values that it had.
func TestRecordByDefault(t *testing.T) {
	// Random values are false, for which the rule is right. No operand can take the place of the
	// negation, since the rule would be right, too.
	c := circuit(t, computed{zero: true}, "input %a : bool\n input %b : bool\n %1 = not(%a) : bool\n %2 = xor(%1, %b) : bool\n return %2", xorIsOr)
	c.Values = []any{uint64(0), ^uint64(0)}
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	check(t, err)
	if n := small.Graph.NumApplies(); n != 1 || small.Values == nil {
		t.Errorf("%v of %v", small.Graph, small.Values)
	}
	for _, v := range small.Values {
		if v != ^uint64(0) {
			t.Errorf("values %x", small.Values)
		}
	}
}

// TestWithoutFormatter: values are left out of files, and not read.
func TestWithoutFormatter(t *testing.T) {
	c := circuit(t, computed{}, adder, xorIsOr)
	c.Values = []any{uint64(1), uint64(1), uint64(0)}
	f, err := c.File()
	check(t, err)
	if s := f.Field("values"); s != "" {
		t.Error(s)
	}
	f.Set("values", "\n1\n1\n0")
	if _, err := repro.FromFile(f, c.World, c.Build); !errors.Is(err, repro.ErrCase) || !strings.Contains(err.Error(), "no formatter") {
		t.Error(err)
	}
}

// TestWithoutEvaluator: a dialect whose graphs are not run has failures of the optimizer found.
func TestWithoutEvaluator(t *testing.T) {
	panics := rewiring("panics", "or", func(a *fgraph.Apply) *fgraph.Variable { return a.Inputs()[2] })
	c := circuit(t, circuits{}, adder, xorIsOr, panics)
	testFault(t, fault{want: repro.Failure{Kind: repro.Panic, Pass: "simplify", Rule: "panics"}}, c)
	small, err := repro.Reduce(t.Context(), c, repro.ReduceOptions{})
	check(t, err)
	if n := small.Graph.NumApplies(); n != 1 {
		t.Error(text(t, small))
	}

	// Damage is found although the query asks for no checks.
	damages := rewiring("damages", "or", func(a *fgraph.Apply) *fgraph.Variable {
		a.Inputs()[0] = a.Inputs()[1]
		return a.Out()
	})
	testFault(t, fault{want: repro.Failure{Kind: repro.Damage, Pass: "simplify"}}, circuit(t, circuits{}, adder, damages))

	// A graph that overwrites an input in the end: the rule brings in another reader of it that
	// has to come later.
	late := rewiring("late", "or", func(a *fgraph.Apply) *fgraph.Variable {
		x := a.Inputs()[0]
		return fgraph.NewApply(gate("and"), []*fgraph.Variable{x.Owner().Inputs()[0], x}, boolean{}).Out()
	})
	c = circuit(t, circuits{}, "input %a : bool\n %1 = not(%a) : bool\n %2 = not!(%1) : bool\n %3 = or(%2, %a) : bool\n return %3", late)
	testFault(t, fault{want: repro.Failure{Kind: repro.Overwrite, Pass: "simplify", Rule: "late"}, after: "and("}, c)
}

// TestNeedsEvaluator: wrong values are not looked for, and a case that is about them is an error.
func TestNeedsEvaluator(t *testing.T) {
	c := circuit(t, circuits{}, adder, xorIsOr)
	if f, err := repro.Check(t.Context(), c); err != nil || f.Kind != repro.None {
		t.Errorf("%v, %v", f, err)
	}
	refused := func(c repro.Case) {
		t.Helper()
		_, err := repro.Check(t.Context(), &c)
		_, fault := repro.Bisect(t.Context(), &c)
		_, failed := repro.Reduce(t.Context(), &c, repro.ReduceOptions{})
		for _, err := range []error{err, fault, failed} {
			if !errors.Is(err, repro.ErrCase) || !strings.Contains(err.Error(), "no evaluator: the graph can't be run") {
				t.Error(err)
			}
		}
	}
	for _, kind := range []repro.Kind{repro.Values, repro.Run, repro.Declaration} {
		one := *c
		one.Failure.Kind = kind
		refused(one)
	}
	one := *c
	one.Values = []any{uint64(1), uint64(1), uint64(0)}
	refused(one)
}
