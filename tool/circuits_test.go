package tool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/fgraph/graphfile"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tool"
	"github.com/nnopt/nnopt/tool/internal/rulecheck"
	"github.com/nnopt/nnopt/tool/repro"
)

// A gate is an op of boolean circuits: And, Or, Not.
type gate string

func (g gate) String() string { return string(g) }

// A wire is the type of their values.
type wire struct{}

func (wire) String() string             { return "wire" }
func (wire) Accepts(t fgraph.Type) bool { return t == wire{} }
func (wire) Dialect() string            { return "circuit" }

var gates = map[string]int{"And": 2, "Or": 2, "Not": 1} // inputs

// circuits is the dialect of boolean circuits: how they are written, computed and compared.
type circuits struct{}

func (circuits) Dialect() graphfile.Dialect                   { return circuits{} }
func (circuits) OpText(op fgraph.Op) (string, error)          { return op.String(), nil }
func (circuits) ParseType(string) (fgraph.Type, error)        { return wire{}, nil }
func (circuits) DataText(fgraph.Type, any) (string, error)    { return "", errors.ErrUnsupported }
func (circuits) ParseData(fgraph.Type, string) (any, error)   { return nil, errors.ErrUnsupported }
func (circuits) Equal(pattern.Literal, *fgraph.Variable) bool { return false }
func (circuits) Functions() []pattern.Function                { return nil }
func (circuits) Constant(pattern.Literal, *fgraph.Variable) (*fgraph.Variable, error) {
	return nil, errors.ErrUnsupported
}

func (circuits) ParseOp(text string) (fgraph.Op, error) {
	if gates[text] == 0 {
		return nil, fmt.Errorf("there is no gate %s", text)
	}
	return gate(text), nil
}

func (circuits) Check(a *fgraph.Apply) error {
	if n := gates[a.Op().String()]; len(a.Inputs()) != n {
		return fmt.Errorf("%v has %d inputs", a.Op(), n)
	}
	return nil
}

func (circuits) Operator(name string) (pattern.Operator, bool) {
	n, ok := gates[name]
	return pattern.Operator{Match: pattern.Is(gate(name)), MinInputs: n, MaxInputs: n, Commutes: n == 2, Tracks: []rewrite.Track{rewrite.TrackOp(gate(name))},
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return fgraph.NewApply(gate(name), m.Inputs, wire{}).Out(), nil
		}}, ok
}

func (circuits) Random(_ context.Context, g *fgraph.FunctionGraph, seed uint64) ([]any, error) {
	values := make([]any, len(g.Inputs()))
	for i := range values {
		values[i] = seed>>i&1 == 1
	}
	return values, nil
}

// Draws returns how many inputs there are in all, if they are few: that many seeds in a row draw each.
func (circuits) Draws(g *fgraph.FunctionGraph) int { return 1 << min(len(g.Inputs()), 8) }

func (circuits) Evaluate(_ context.Context, g *fgraph.FunctionGraph, inputs []any) ([]any, error) {
	return repro.Interpret(g, inputs, func(a *fgraph.Apply, in []any) ([]any, error) {
		x, y := in[0].(bool), in[len(in)-1].(bool)
		return []any{map[gate]bool{"And": x && y, "Or": x || y, "Not": !x}[a.Op().(gate)]}, nil
	})
}

func (circuits) Differ(outputs, right []any) string {
	return strings.TrimSuffix(fmt.Sprintf("%v, not %v; ", outputs, right), fmt.Sprintf("%v, not %v; ", right, right))
}

func (circuits) FormatValue(_ fgraph.Type, v any) (string, error) { return fmt.Sprint(v), nil }
func (circuits) ParseValue(_ fgraph.Type, text string) (any, error) {
	return strconv.ParseBool(text)
}

// circuitRules are a right rule and two wrong ones.
const circuitRules = "# De Morgan's law.\nde_morgan: canonicalize; fast_run\n    (Not (And (Not x) (Not y))) => (Or x y)\n\n" +
	"# It is wrong.\nabsorb: canonicalize; wrong\n    (And x (Or x y)) => y\n\n" +
	"# It is wrong, and right for most inputs of a majority.\neither: canonicalize; seldom_wrong\n    (And x y) => (Or x y)\n"

// circuitDatabase has rules of a file.
func circuitDatabase(file, text string, v pattern.Vocabulary) (*optdb.SequenceDB, error) {
	db, rules := optdb.NewSequenceDB("circuits"), optdb.NewEquilibriumDB("canonicalize")
	list, err := pattern.ParseRules(file, text)
	if err != nil {
		return nil, err
	}
	return db, errors.Join(db.Register("canonicalize", rules, 1, "fast_run"), optdb.AddRules(db, v, list))
}

// circuitTool is a program for circuits.
var circuitTool = tool.Config{Name: "circuits", Database: func() (*optdb.SequenceDB, error) {
	return circuitDatabase("circuits.rules", circuitRules, circuits{})
}, Dialects: []*tool.Dialect{{
	Name:       "circuit",
	Open:       func(*tool.Console, string, *graphfile.File) (repro.World, error) { return circuits{}, nil },
	Vocabulary: func() pattern.Vocabulary { return circuits{} },
	Domain: func(string) (rulecheck.Domain, error) {
		return rulecheck.World{
			Rules: circuits{}, Types: []fgraph.Type{wire{}}, Evaluate: circuits{}.Evaluate,
			Random: func(_ fgraph.Type, _ bool, rng *rand.Rand) any { return rng.IntN(2) == 1 },
			Compare: func(x, y any) rulecheck.Class {
				return map[bool]rulecheck.Class{true: rulecheck.Exact, false: rulecheck.Wrong}[x == y]
			},
		}.Domain(), nil
	},
}}}
