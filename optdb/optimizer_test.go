package optdb_test

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/profiletest"
	"github.com/nnopt/nnopt/rewrite"
)

func TestOptimizerPrintsAsTree(t *testing.T) {
	o := build(t, nested(t), "+fast_run -inplace -merge")
	want := `optdb SeqOptimizer +fast_run -inplace -merge
    0.6 useless TopoOptimizer
        join group
            local_join_1 rule
            local_join_empty rule
        local_useless_fill rule
    1 canonicalize EquilibriumOptimizer
        constant_folding rule
        local_add_canonizer rule
        serialize FromFunctionOptimizer
        topo_folding FromFunctionOptimizer
    1.5 stabilize EquilibriumOptimizer
        constant_folding rule
        local_log1p rule
    1.7 blas SeqOptimizer
        0 local_dot_to_dot22 FromFunctionOptimizer
        10 gemm_optimizer FromFunctionOptimizer
`
	if diff := cmp.Diff(want, o.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if o.Name() != "+fast_run -inplace -merge" || o.Query().String() != o.Name() || rewrite.Describe(o).Name != o.Name() {
		t.Errorf("name %s, query %s", o.Name(), o.Query())
	}
	if o := build(t, nested(t), "fast_run"); o.Name() != "OPT_FAST_RUN" {
		t.Error(o.Name())
	}
	if o := build(t, nested(t), "none"); o.Name() != "OPT_NONE" || o.String() != "optdb SeqOptimizer none\n" {
		t.Error(o.Name(), o.String())
	}
}

func TestEntries(t *testing.T) {
	db := nested(t)
	list := db.Entries()
	if len(list) != 20 {
		t.Errorf("%d entries", len(list))
	}
	want := optdb.Listing{
		Path: "canonicalize", Name: "canonicalize", Class: profile.ClassEquilibrium, Doc: "Brings the graph to a normal form.",
		Position: 1, Placed: true, Tags: []string{"fast_compile", "fast_run"}, Database: true,
	}
	var settings []string
	for _, s := range list[6].Settings {
		settings = append(settings, s.Name+"="+s.Value)
	}
	if got := strings.Join(settings, " "); got != "max-use=3 order=in-to-out ignore-new-trees=false" {
		t.Errorf("settings %s", got)
	}
	list[6].Settings = nil
	if diff := cmp.Diff(want, list[6]); diff != "" {
		t.Error(diff)
	}
	want = optdb.Listing{
		Path: "useless/join/local_join_1", Name: "local_join_1", Depth: 2, Class: "rule", Doc: "Never fires.",
		Tags: []string{"fast_run"}, Why: "selected by +fast_run",
	}
	if diff := cmp.Diff(want, build(t, db, "fast_run").Entries()[3]); diff != "" {
		t.Error(diff)
	}
	list[6].Tags[0] = "changed"
	if db.Entries()[6].Tags[0] != "fast_compile" {
		t.Error("a listing is the database itself")
	}
}

// firing returns a rule that replaces the op named from by that named to.
func firing(from, to string) rewrite.Rule {
	return rewrite.Rule{
		Name: "unnamed", Doc: "Replaces an op.", On: []rewrite.Track{rewrite.TrackOp(letter(from))},
		Fn: func(c *rewrite.Context, n *fgraph.Apply) (rewrite.Result, error) {
			return rewrite.Replace(fgraph.NewApply(letter(to), n.Inputs(), thing{}).Out()), nil
		},
	}
}

type letter string

func (l letter) String() string { return string(l) }

func letters(t *testing.T, word string) *fgraph.FunctionGraph {
	t.Helper()
	x := fgraph.NewInput(thing{}, "x")
	v := x
	for _, l := range word {
		v = fgraph.NewApply(letter(l), []*fgraph.Variable{v}, thing{}).Out()
	}
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{v})
	must(t, err)
	return g
}

func runnerDB(t *testing.T) *optdb.SequenceDB {
	t.Helper()
	db := optdb.NewSequenceDB("optdb")
	eq, topo, group, seq := optdb.NewEquilibriumDB("eq"), optdb.NewTopoDB("topo"), optdb.NewGroupDB("group"), optdb.NewSequenceDB("seq")
	must(t,
		db.Register("topo", topo, 1, "fast_run"),
		db.Register("eq", eq, 2, "fast_run"),
		db.Register("seq", seq, 3, "fast_run"),
		topo.Register("group", group, "fast_run"),
		topo.Register("a_to_b", firing("a", "b"), "fast_run"),
		group.Register("q_to_r", firing("q", "r"), "fast_run"),
		eq.Register("b_to_c", firing("b", "c"), "fast_run"),
		eq.Register("c_to_d", firing("c", "d"), "fast_run", "last"),
		seq.Register("d_to_e", rewrite.In2Out("own_name", firing("d", "e")), 1, "fast_run", "last"))
	return db
}

func TestRewrite(t *testing.T) {
	tests := []struct{ query, want string }{
		{"fast_run", "[e(r(e(e(e(x)))))]"},
		{"+fast_run -last", "[c(r(d(c(c(x)))))]"},
		{"+fast_run -eq", "[b(r(e(c(b(x)))))]"},
		{"+fast_run -topo", "[a(q(e(e(e(x)))))]"},
		{"+c_to_d", "[a(q(d(d(b(x)))))]"},
		{"none", "[a(q(d(c(b(x)))))]"},
	}
	db := runnerDB(t)
	for _, test := range tests {
		g := letters(t, "bcdqa")
		must(t, build(t, db, test.query).Rewrite(t.Context(), g, nil))
		if g.String() != test.want {
			t.Errorf("%s: %s, want %s", test.query, g, test.want)
		}
	}
}

// The name in the profile is that of the entry, not that of the rewriter.
func TestRewriteRecords(t *testing.T) {
	o := build(t, runnerDB(t), "fast_run")
	rec := profile.New(o.Name(), "")
	must(t, o.Rewrite(t.Context(), letters(t, "bcdqa"), rec))
	rec.End()
	r := rec.Record()
	must(t, profiletest.Check(r))
	var got []string
	for depth, c := range r.All() {
		line := strings.Repeat(" ", depth) + c.Class + " " + c.Name
		for _, u := range c.Rules {
			line += " " + u.Name
		}
		got = append(got, line)
	}
	want := []string{
		"SeqOptimizer OPT_FAST_RUN", " TopoOptimizer topo a_to_b q_to_r", " EquilibriumOptimizer eq b_to_c c_to_d",
		" SeqOptimizer seq", "  TopoOptimizer d_to_e unnamed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOptimizerIsFrozen(t *testing.T) {
	db := runnerDB(t)
	o := build(t, db, "fast_run")
	tree := o.String()
	must(t, db.Register("later", doc(""), 0, "fast_run"), db.Replace(optdb.Entry{Name: "topo", Doc: "Nothing.", Rewriter: doc(""), Position: 1}))
	if o.String() != tree {
		t.Errorf("%s\nbecame %s", tree, o)
	}
	g := letters(t, "a")
	must(t, o.Rewrite(t.Context(), g, nil))
	if g.String() != "[e(x)]" {
		t.Error(g)
	}
}

func TestExtras(t *testing.T) {
	db := runnerDB(t)
	walk := rewrite.In2Out("mine", firing("a", "z"))
	q := optdb.Include("fast_run").With("first", walk, 0.5)
	o, err := db.Build(q)
	must(t, err)
	g := letters(t, "a")
	must(t, o.Rewrite(t.Context(), g, nil))
	if g.String() != "[z(x)]" {
		t.Errorf("%s by\n%s", g, o)
	}
	if !o.Selected("first") || o.Explain("first") != "first: added by the query" || db.Has("first") {
		t.Error(o.Explain("first"))
	}
	for _, test := range []struct {
		q    optdb.Query
		want error
	}{
		{q.With("topo", walk, 1), optdb.ErrDuplicate},
		{q.With("first", walk, 1), optdb.ErrDuplicate},
		{q.With("x", node(), 1), optdb.ErrKind},
		{q.With("x", inplace(), 49), optdb.ErrInplace},
		{q.With("x y", walk, 49), optdb.ErrName},
	} {
		_, err := db.Build(test.q)
		is(t, err, []error{test.want})
	}
	// A rewriter that a subquery adds joins the nested database.
	early := func(x any) optdb.Query {
		return q.Subquery("eq", optdb.Include("fast_run").With("mine", x, 0))
	}
	o, err = db.Build(early(firing("d", "z")))
	must(t, err)
	g = letters(t, "bcd")
	must(t, o.Rewrite(t.Context(), g, nil))
	if g.String() != "[z(z(z(x)))]" || !o.Selected("eq/mine") {
		t.Errorf("%s by\n%s", g, o)
	}
	_, err = db.Build(early(inplace()))
	is(t, err, []error{optdb.ErrInplace}, "optdb: eq/mine: in-place rewriter")
	_, err = db.Build(early(7))
	is(t, err, []error{optdb.ErrKind})
	// It may be a database.
	in := optdb.NewTopoDB("in")
	must(t, in.Register("d_to_y", firing("d", "y"), "fast_run"))
	o, err = db.Build(q.With("in", in, 99))
	must(t, err)
	if got := o.Explain("d_to_y"); got != "in/d_to_y: selected by +fast_run" {
		t.Error(got)
	}
	// Its entries may be named although the database that is queried has no such tag.
	brought := optdb.Query{}.With("in", in, 1)
	if _, err = db.Build(brought.Subquery("in", optdb.Include("no_such_tag"))); !errors.Is(err, optdb.ErrUnknownTag) {
		t.Error(err)
	}
	o, err = db.Build(brought.Subquery("in", optdb.Include("in")))
	must(t, err)
	g = letters(t, "d")
	must(t, o.Rewrite(t.Context(), g, nil))
	if g.String() != "[y(x)]" || !o.Selected("in/d_to_y") {
		t.Errorf("%s by\n%s", g, o)
	}
	eq := optdb.NewEquilibriumDB("eq")
	o, err = eq.Build(optdb.Query{}.With("rule", firing("a", "b"), 0))
	must(t, err)
	g = letters(t, "a")
	must(t, o.Rewrite(t.Context(), g, nil))
	if g.String() != "[b(x)]" || o.Class() != profile.ClassEquilibrium {
		t.Error(g, o.Class())
	}
}

// A database may be registered in two places, under two names.
func TestDatabaseTwice(t *testing.T) {
	db, in := optdb.NewSequenceDB("db"), optdb.NewSequenceDB("in")
	var ran []string
	must(t, in.Register("a", pass{"d", false, &ran, "a"}, 1, "t"), db.Register("one", in, 1, "t"), db.Register("two", in, 2, "t"),
		db.Register("between", pass{"d", false, &ran, "between"}, 1.5, "t"))
	o := build(t, db, "+t")
	must(t, o.Rewrite(t.Context(), graph(t), nil))
	if got := strings.Join(ran, " "); got != "a between a" {
		t.Error(got)
	}
	if got := build(t, db, "+t -two").Explain("a"); got != "one/a: selected by +t\ntwo/a: not selected: two, which contains it, is not selected: excluded by -two" {
		t.Error(got)
	}
}

func TestBuildAndRunConcurrently(t *testing.T) {
	db := runnerDB(t)
	o := build(t, db, "fast_run")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			q, _ := optdb.Mode(optdb.ModeFastRun)
			other, err := db.Build(q)
			g := letters(t, "abc")
			if err := errors.Join(err, o.Rewrite(t.Context(), g, nil)); err != nil || other.String() != o.String() || g.String() != "[e(e(e(x)))]" {
				t.Error(err, g)
			}
		})
	}
	wg.Wait()
}

// No optimizer, as a failed Build returns it, can be printed.
func TestPrintNothing(t *testing.T) {
	if got := (*optdb.Optimizer)(nil).String(); got != "no optimizer\n" {
		t.Error(got)
	}
}
