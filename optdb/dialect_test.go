package optdb_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// word is a type of the dialect that it names.
type word string

func (w word) String() string             { return string(w) }
func (w word) Dialect() string            { return string(w) }
func (w word) Accepts(u fgraph.Type) bool { return u == fgraph.Type(w) }

// TestDialect: what is for another dialect neither runs nor is recorded.
func TestDialect(t *testing.T) {
	db, eq, seq := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("eq"), optdb.NewSequenceDB("seq")
	entry := func(name, dialect string, position float64) optdb.Entry {
		return optdb.Entry{Name: name, Doc: "a walk", Rewriter: rewrite.In2Out(name), Dialect: dialect, Position: position, Tags: []string{"t"}}
	}
	rule := func(name, dialect string) optdb.Entry {
		e := entry(name, dialect, 0)
		e.Rewriter = rewrite.Rule{Name: name, Fn: func(c *rewrite.Context, _ *fgraph.Apply) (rewrite.Result, error) { return c.Miss("never"), nil }}
		return e
	}
	must(t, db.Add(entry("for_all", "", 0), entry("for_a", "a", 1), entry("for_b", "b", 2),
		optdb.Entry{Name: "eq", DB: eq, Position: 3, Tags: []string{"t"}}, optdb.Entry{Name: "seq", DB: seq, Position: 4, Tags: []string{"t"}, Dialect: "b"}))
	must(t, eq.Add(rule("rule_a", "a"), rule("rule_b", "b")))
	must(t, seq.Add(entry("inner", "", 0)))
	o, err := db.Build(optdb.Include("t"))
	must(t, err)
	for _, test := range []struct {
		types  []fgraph.Type
		want   string // what runs, rules in parentheses
		whyNot string // of rule_a
	}{
		{[]fgraph.Type{word("a"), word("a")}, "for_all for_a eq(rule_a)", "eq/rule_a: never"},
		{[]fgraph.Type{word("b"), thing{}}, "for_all for_b eq(rule_b) seq", "eq/rule_a: it is for graphs of a"},
		{[]fgraph.Type{word("c"), word("c")}, "for_all", "eq/rule_a: it is for graphs of a"},
		{[]fgraph.Type{word("a"), word("b")}, "for_all for_a for_b eq(rule_a rule_b) seq", "eq/rule_a: never"},
		{[]fgraph.Type{thing{}, thing{}}, "for_all for_a for_b eq(rule_a rule_b) seq", "eq/rule_a: never"},
	} {
		x := fgraph.NewInput(test.types[0], "x")
		a := fgraph.NewApply(letter("f"), []*fgraph.Variable{x}, test.types[1])
		g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{a.Out()})
		must(t, err)
		rec := profile.New("", "")
		must(t, o.Rewrite(t.Context(), g, rec))
		rec.End()
		var ran, names []string
		for _, r := range rec.Record().Children {
			text := r.Name
			if len(r.Rules) > 0 {
				var rules []string
				for _, u := range r.Rules {
					rules = append(rules, u.Name)
				}
				text += "(" + strings.Join(rules, " ") + ")"
			}
			ran, names = append(ran, text), append(names, r.Name)
		}
		if got := strings.Join(ran, " "); got != test.want {
			t.Errorf("on a graph of %q %s runs, want %s", g.Dialect(), got, test.want)
		}
		if passes := o.Passes(g.Dialect()); !slices.Equal(passes, names) {
			t.Errorf("Passes of %q: %q, ran %q", g.Dialect(), passes, names)
		}
		if why := o.WhyNot(t.Context(), "rule_a", g, a); !strings.HasPrefix(why, test.whyNot) {
			t.Errorf("why not: %s, want %s", why, test.whyNot)
		}
	}
	if s := o.String(); !strings.Contains(s, "for_a") || !strings.Contains(s, "inner") {
		t.Errorf("the optimizer prints without what is for one dialect:\n%s", s)
	}
}

// TestBuildIsFrozen: settings that change after Build do not change the optimizer.
func TestBuildIsFrozen(t *testing.T) {
	db, topo := optdb.NewSequenceDB("db"), optdb.NewTopoDB("topo")
	must(t, db.Add(optdb.Entry{Name: "topo", DB: topo, Tags: []string{"t"}}))
	var seen []string
	see := rewrite.Rule{Name: "see", Doc: "sees", Fn: func(_ *rewrite.Context, a *fgraph.Apply) (rewrite.Result, error) {
		seen = append(seen, a.Op().String())
		return rewrite.Result{}, nil
	}}
	must(t, topo.Register("see", see, "t"))
	o, err := db.Build(optdb.Include("t"))
	must(t, err)
	topo.Configure(rewrite.Walk{Order: rewrite.OutToIn})
	x := fgraph.NewInput(thing{}, "x")
	v := fgraph.NewApply(letter("f"), []*fgraph.Variable{x}, thing{}).Out()
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{fgraph.NewApply(letter("g"), []*fgraph.Variable{v}, thing{}).Out()})
	must(t, err)
	must(t, o.Rewrite(t.Context(), g, nil))
	if !slices.Equal(seen, []string{"f", "g"}) {
		t.Errorf("visited %q, want inputs first", seen)
	}
}
