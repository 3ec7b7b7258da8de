package optdb_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
	"github.com/nnopt/nnopt/rewrite"
)

// words is a vocabulary in which every name is an op.
type words struct{}

func (words) Operator(name string) (pattern.Operator, bool) {
	return pattern.Operator{
		Match: pattern.Is(letter(name)), MaxInputs: -1, Commutes: name == "add" || name == "mul",
		Tracks: []rewrite.Track{rewrite.TrackOp(letter(name))},
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return fgraph.NewApply(letter(name), m.Inputs, thing{}).Out(), nil
		},
	}, true
}

func (words) Equal(pattern.Literal, *fgraph.Variable) bool { return false }

func (words) Constant(l pattern.Literal, _ *fgraph.Variable) (*fgraph.Variable, error) {
	return nil, fmt.Errorf("%s: words know no numbers", l)
}

// algebra is a database of patterns, of walks and an equilibrium.
func algebra(t *testing.T) *optdb.SequenceDB {
	t.Helper()
	db, eq, topo := optdb.NewSequenceDB("optdb"), optdb.NewEquilibriumDB("canonicalize"), optdb.NewTopoDB("specialize")
	merge := func(name string, position float64) optdb.Entry {
		return optdb.Entry{Name: name, Doc: "Unites what is computed twice.", Rewriter: &rewrite.Merge{}, Position: position, Tags: []string{"fast_run"}}
	}
	must(t, db.Add(merge("merge1", 0), merge("merge2", 49)), db.Register("canonicalize", eq, 1, "fast_run"), db.Register("specialize", topo, 2, "fast_run"))
	for name, text := range map[string]string{
		"local_neg_neg":  "(neg (neg x)) => x",
		"local_mul_div":  "(true_div (mul x y) y) => x",
		"local_factor":   "(add (mul x y) (mul x z)) => (mul x (add y z))",
		"local_exp_log":  "(log (exp x)) => x",
		"local_sub_self": "(sub (add x y) y) => x",
	} {
		r, err := pattern.Compile(words{}, text)
		must(t, err)
		must(t, eq.Add(optdb.Entry{Name: name, Doc: text + ".", Rewriter: r, Tags: []string{"fast_run"}}))
	}
	r, err := pattern.Compile(words{}, "(exp (neg x)) => (inv (exp x))")
	must(t, err)
	must(t, topo.Add(optdb.Entry{Name: "local_exp_neg", Doc: "One over an exponential.", Rewriter: r, Tags: []string{"fast_run"}}))
	return db
}

// term returns a graph that grows with n and differs for every n.
func term(t *testing.T, n int) *fgraph.FunctionGraph {
	t.Helper()
	call := func(name string, in ...*fgraph.Variable) *fgraph.Variable {
		return fgraph.NewApply(letter(name), in, thing{}).Out()
	}
	x, y := fgraph.NewInput(thing{}, "x"), fgraph.NewInput(thing{}, "y")
	v := x
	for i := range n + 1 {
		switch (i * (n + 3)) % 5 {
		case 0:
			v = call("neg", call("neg", v))
		case 1:
			v = call("true_div", call("mul", y, v), y)
		case 2:
			v = call("log", call("exp", call("f", v)))
		case 3:
			v = call("add", call("mul", v, x), call("mul", y, v))
		case 4:
			v = call("exp", call("neg", v))
		}
	}
	g, err := fgraph.New([]*fgraph.Variable{x, y}, []*fgraph.Variable{v, call("g", v)})
	must(t, err)
	return g
}

// TestOptimizeConcurrently shares one optimizer among goroutines that optimize a hundred graphs. It
// is for the race detector.
func TestOptimizeConcurrently(t *testing.T) {
	const graphs = 100
	db := algebra(t)
	o := build(t, db, "+fast_run")
	want := make([]string, graphs)
	for n := range want {
		g := term(t, n)
		must(t, o.Rewrite(t.Context(), g, nil))
		want[n] = g.String()
	}
	if got := want[3]; got == term(t, 3).String() {
		t.Fatalf("nothing is rewritten in %s", got)
	}
	var wg sync.WaitGroup
	for n := range graphs {
		wg.Go(func() {
			g := term(t, n)
			rec := profile.New(o.Name(), o.Class())
			misses := 0
			ctx := rewrite.WithOptions(context.Background(), rewrite.Options{WhyNot: func(rewrite.Miss) { misses++ }})
			err := o.Rewrite(ctx, g, rec)
			rec.End()
			if err := errors.Join(err, g.Check(), profiletest.Check(rec.Record())); err != nil || g.String() != want[n] {
				t.Errorf("%d: %v: %v, want %s", n, err, g, want[n])
			}
			// Databases and queries are shared as well.
			if again, err := db.Build(o.Query()); err != nil || again.String() != o.String() || !o.Selected("local_factor") || o.Explain("merge1") == "" {
				t.Errorf("%d: %v", n, err)
			}
		})
	}
	wg.Wait()
}

// Rules that are made on first use take their time in the first run only, and its record says so: neither
// the passes nor what is between them hides it.
func TestTimeOfMakingRules(t *testing.T) {
	const took = 20 * time.Millisecond
	later := func(from, to string) rewrite.NodeRewriter {
		return rewrite.Later(rewrite.Description{Name: from, Doc: "Replaces an op."}, func() rewrite.NodeRewriter {
			time.Sleep(took)
			return firing(from, to)
		})
	}
	walk := rewrite.In2Out("walk", later("b", "c"))
	db, rules := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("rules")
	must(t, rules.Register("a_to_b", later("a", "b"), "t"), db.Register("rules", rules, 1, "t"), db.Register("walk", walk, 2, "t"))
	opt, err := db.Build(optdb.Include("t"))
	must(t, err)
	for first := true; ; first = false {
		rec := profile.New("opt", "")
		must(t, opt.Rewrite(t.Context(), letters(t, "a"), rec))
		rec.End()
		r := rec.Record()
		inWalk := r.Find("walk").Prepare
		var text strings.Builder
		must(t, r.WriteText(&text))
		if said := strings.Count(text.String(), "making rules, on first use"); first && (r.Prepare < 2*took || inWalk < took || inWalk > r.Prepare-took || said != 3) {
			t.Errorf("the first run: %v in all, %v in the walk:\n%s", r.Prepare, inWalk, &text)
		} else if !first && (r.Prepare > 0 || said > 0) {
			t.Errorf("the second run: %v", r.Prepare)
		}
		if !first {
			break
		}
	}
}

// Rules that undo each other stop, in every kind of database that could go round,
// and are named with one lap.
func TestCase51RulesThatUndoEachOther(t *testing.T) {
	compile := func(text string) rewrite.NodeRewriter {
		r, err := pattern.Compile(words{}, text)
		must(t, err)
		return r
	}
	there, back := compile("(add x y) => (sub x y)"), compile("(sub x y) => (add x y)")
	register := func(add func(...optdb.Entry) error) {
		must(t, add(optdb.Entry{Name: "add_to_sub", Doc: "There.", Rewriter: there, Tags: []string{"t"}}),
			add(optdb.Entry{Name: "sub_to_add", Doc: "Back.", Rewriter: back, Tags: []string{"t"}}))
	}
	build := func(options ...func(*optdb.SequenceDB)) *optdb.SequenceDB {
		db := optdb.NewSequenceDB("optdb")
		for _, o := range options {
			o(db)
		}
		return db
	}
	for name, db := range map[string]*optdb.SequenceDB{
		"equilibrium": build(func(db *optdb.SequenceDB) {
			eq := optdb.NewEquilibriumDB("canonicalize")
			register(eq.Add)
			must(t, db.Register("canonicalize", eq, 1, "t"))
		}),
		"equilibrium that ignores new trees": build(func(db *optdb.SequenceDB) {
			eq := optdb.NewEquilibriumDB("canonicalize")
			eq.Configure(rewrite.Equilibrium{IgnoreNewTrees: true})
			register(eq.Add)
			must(t, db.Register("canonicalize", eq, 1, "t"))
		}),
		"rule and cleanup": build(func(db *optdb.SequenceDB) {
			eq := optdb.NewEquilibriumDB("canonicalize")
			must(t, eq.Add(optdb.Entry{Name: "add_to_sub", Doc: "There.", Rewriter: there, Tags: []string{"t"}}),
				eq.Add(optdb.Entry{Name: "sub_to_add", Doc: "Back.", Rewriter: rewrite.In2Out("", back), Tags: []string{"t"}, Cleanup: true}),
				db.Register("canonicalize", eq, 1, "t"))
		}),
	} {
		q, err := optdb.ParseQuery("+t")
		must(t, err)
		o, err := db.Build(q)
		must(t, err)
		g := term(t, 0)
		x, y := g.Inputs()[0], g.Inputs()[1]
		must(t, g.Replace(g.Outputs()[0], fgraph.NewApply(letter("add"), []*fgraph.Variable{x, y}, thing{}).Out(), fgraph.Reason{}))
		rewrites := 0
		ctx := rewrite.WithOptions(t.Context(), rewrite.Options{Allow: func(fgraph.Reason) bool { rewrites++; return true }})
		err = o.Rewrite(ctx, g, nil)
		var most *rewrite.MaxUseError
		if !errors.As(err, &most) || !most.Repeats || len(most.Lap) != 2 || rewrites > 100 {
			t.Errorf("%s: %d rewrites: %v", name, rewrites, err)
			continue
		}
		if text := err.Error(); !strings.HasPrefix(text, "canonicalize: ") || !strings.Contains(text, "\n\tadd_to_sub: add(x, y) -> sub(x, y)") || !strings.Contains(text, "\n\tsub_to_add: ") {
			t.Errorf("%s: %s", name, text)
		}
		must(t, g.Check())
	}
}

func TestWhyNot(t *testing.T) {
	db := algebra(t)
	g := term(t, 0) // neg(neg(x)) is not there yet
	top := g.Outputs()[1].Owner()
	n := g.Outputs()[0].Owner()
	for _, c := range []struct {
		query, name string
		n           *fgraph.Apply
		want        string
	}{
		{"+fast_run", "local_neg_neg", n, "canonicalize/local_neg_neg: it fires: neg(neg(x)) -> x"},
		{"+fast_run", "canonicalize/local_neg_neg", n.Inputs()[0].Owner(), "canonicalize/local_neg_neg: "},
		{"+fast_run", "local_neg_neg", top, "canonicalize/local_neg_neg: it does not track g, but neg"},
		{"+fast_run -local_neg_neg", "local_neg_neg", n, "canonicalize/local_neg_neg: not selected: excluded by -local_neg_neg"},
		{"+fast_run", "merge1", n, "merge1: it is not a node rewriter"},
		{"+fast_run", "canonicalize", n, "canonicalize: it is not a node rewriter"},
		{"+fast_run", "local_neg_neh", n, "local_neg_neh: unknown: no entry of that name in optdb"},
	} {
		before := g.String()
		if got := build(t, db, c.query).WhyNot(t.Context(), c.name, g, c.n); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %s: %s, want %s", c.query, c.name, got, c.want)
		}
		if g.String() != before {
			t.Fatalf("%s became %v", before, g)
		}
	}
}

// A failure names the query and the pass, and holds the graph before the pass.
func TestReproduce(t *testing.T) {
	db := algebra(t)
	must(t, db.Add(optdb.Entry{Name: "broken", Doc: "Fails.", Position: 1.5, Tags: []string{"fast_run"},
		Rewriter: rewrite.In2Out("", rewrite.Rule{Name: "local_broken", On: []rewrite.Track{rewrite.TrackOp(letter("g"))},
			Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { panic("no") }})}))
	var got []rewrite.Failure
	ctx := rewrite.WithOptions(t.Context(), rewrite.Options{Reproduce: func(f rewrite.Failure) { got = append(got, f) }})
	err := build(t, db, "+fast_run -merge2").Rewrite(ctx, term(t, 3), nil)
	if !errors.Is(err, rewrite.ErrPanic) || len(got) != 1 {
		t.Fatal(err, got)
	}
	f := got[0]
	if f.Query != "+fast_run -merge2" || f.Pass != "broken" || f.Rule != "local_broken" || !strings.HasPrefix(f.Node, "g(") || len(f.Graph.Inputs()) != 2 {
		t.Errorf("%+v", f)
	}
	// Canonicalized, but not specialized.
	g := term(t, 3)
	must(t, build(t, db, "+fast_run <1.5").Rewrite(t.Context(), g, nil))
	if f.Graph.String() != g.String() {
		t.Errorf("%v, want %v", f.Graph, g)
	}
}
