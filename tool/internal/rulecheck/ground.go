package rulecheck

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/pattern"
)

// A Ground is what terms are made of, and how they are computed.
type Ground struct {
	Leaves []*fgraph.Variable
	// Runs are lists of values of the leaves. Each term is computed in all runs.
	Runs [][]any
	// Guard is a function of rules that holds for all values of run 0, or "". Guarded returns a variable
	// of the type of another for which it is known to hold.
	Guard   string
	Guarded func(v *fgraph.Variable) *fgraph.Variable
	// Cells returns intervals that are all numbers together but for those that it is given, which are sorted. To follow by
	// cases is to follow in each. It is nil where bounds of variables tell nothing.
	Cells func(numbers []float64) [][2]float64
	// All says that these are all values that there are. Every returns all values of some leaves, or nil if they are
	// too many. It may be nil.
	All   bool
	Every func(leaves []*fgraph.Variable) *Ground
	// Constant returns the value of a constant.
	Constant func(v *fgraph.Variable) any
	// Compute computes the output of an apply with one output.
	Compute func(ctx context.Context, a *fgraph.Apply, inputs []any) (any, error)
	// Digest returns a number for a value of a run. It is equal for values that are the same up to
	// rounding, and probably not for others. ok is false for values by which nothing can be told, such
	// as NaNs.
	Digest func(run int, v any) (near uint64, ok bool)
	// Wide draws many other values, for which guard says of which variables the guard holds, to compare
	// two terms with. It is nil where Runs are all values. Same reports whether two values of such a run
	// are the same up to rounding, where both are numbers.
	Wide func(rng *rand.Rand, guard func(v *fgraph.Variable) bool) *Ground
	Same func(x, y any) bool
	// Guards are functions that rules may need to hold for variables of a type, the weakest first.
	Guards func(t fgraph.Type) []string
	// Conditions are further guards that rules may need, the weakest first.
	Conditions []Condition
}

// A Condition is a guard with letters as arguments: p for a parameter, x for a variable, and c for a number
// that has been a literal. Holds says for which numbers it holds.
type Condition struct {
	pattern.Guard
	Holds func(numbers []float64) bool
}

// groundRuns is how often terms of a [World] are computed, and maxEvery how often to prove that two are equal.
const (
	groundRuns = 32
	maxEvery   = 1 << 12
)

// Ground draws values of a world.
func (d *worldDomain) Ground(types string, each int, rng *rand.Rand, known []map[string]any) (*Ground, error) {
	list := d.Types
	if types != "" {
		list = nil
		for text := range strings.SplitSeq(types, ";") {
			t, ok := d.typeNamed(strings.TrimSpace(text))
			if !ok {
				return nil, fmt.Errorf("rulecheck: there are no values of type %q", strings.TrimSpace(text))
			}
			list = append(list, t)
		}
	}
	g := &Ground{Compute: d.computeOne, Constant: func(v *fgraph.Variable) any { return v.Data() }}
	for _, text := range d.Conditions {
		w, err := pattern.ParseRewrite("(op x) && " + text + " => x")
		if err != nil {
			return nil, fmt.Errorf("rulecheck: the condition %q: %w", text, err)
		}
		for _, guard := range w.In.Guards {
			g.Conditions = append(g.Conditions, Condition{Guard: guard})
		}
	}
	names := Namer{}
	for _, t := range list {
		for range each {
			g.Leaves = append(g.Leaves, fgraph.NewInput(t, names.Next()))
		}
	}
	draw := func(g *Ground, rng *rand.Rand) {
		for run := range groundRuns {
			values := make([]any, len(g.Leaves))
			for i, v := range g.Leaves {
				values[i] = d.Random(v.Type(), run%4 == 3, rng)
				if run < len(known) && known[run][v.Name()] != nil {
					values[i] = known[run][v.Name()]
				}
			}
			g.Runs = append(g.Runs, values)
		}
	}
	g.Every = func(leaves []*fgraph.Variable) *Ground { return d.every(g, leaves, maxEvery) }
	g.Same = func(x, y any) bool { c := d.Compare(x, y); return c == Exact || c == Rounding }
	if all := d.every(g, g.Leaves, 4*groundRuns); all != nil {
		g.Runs, g.All = all.Runs, true
	} else {
		draw(g, rng)
		g.Wide = func(rng *rand.Rand, _ func(*fgraph.Variable) bool) *Ground {
			wide := *g
			wide.Runs = nil
			draw(&wide, rng)
			return &wide
		}
	}
	// A world compares values, and has no digest: the first of equal values stands for all.
	seen := make([][]any, len(g.Runs))
	g.Digest = func(run int, v any) (uint64, bool) {
		for i, w := range seen[run] {
			// What may replace a value, such as rows in some order, need not be replaced by it.
			if g.Same(w, v) && g.Same(v, w) {
				return uint64(i), true
			}
		}
		seen[run] = append(seen[run], v)
		return uint64(len(seen[run]) - 1), true
	}
	return g, nil
}

// every returns the values of leaves in all runs, at most some.
func (d *worldDomain) every(g *Ground, leaves []*fgraph.Variable, most int) *Ground {
	all := *g
	all.Leaves, all.Runs = leaves, [][]any{nil}
	for _, v := range leaves {
		if d.Values == nil {
			return nil
		}
		values := d.Values(v.Type())
		if len(values) == 0 || len(all.Runs)*len(values) > most {
			return nil
		}
		var runs [][]any
		for _, run := range all.Runs {
			for _, value := range values {
				runs = append(runs, append(slices.Clip(run), value))
			}
		}
		all.Runs = runs
	}
	return &all
}

func (d *worldDomain) typeNamed(text string) (fgraph.Type, bool) {
	for _, t := range d.Types {
		if fmt.Sprint(t) == text {
			return t, true
		}
	}
	return nil, false
}

// computeOne computes an apply in a graph of its own.
func (d *worldDomain) computeOne(ctx context.Context, a *fgraph.Apply, inputs []any) (v any, err error) {
	defer recovered(&err, errPanic)
	var vars []*fgraph.Variable
	for i, in := range a.Inputs() {
		vars = append(vars, fgraph.NewInput(in.Type(), fmt.Sprintf("in%d", i)))
	}
	out := fgraph.NewApply(a.Op(), vars, a.Out().Type()).Out()
	g, err := d.graph(vars, []*fgraph.Variable{out})
	if err != nil {
		return nil, err
	}
	values, err := d.Evaluate(ctx, g, inputs)
	if err != nil {
		return nil, err
	}
	return values[0], nil
}

// A Namer names the variables of rules: x, y, z, then u, v, w, then those with numbers.
type Namer struct{ n int }

// Next returns a new name.
func (n *Namer) Next() string {
	n.n++
	if n.n <= len(letters) {
		return letters[n.n-1 : n.n]
	}
	return fmt.Sprintf("x%d", n.n-len(letters))
}

const letters = "xyzuvwst"
