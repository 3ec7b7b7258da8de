package optdb_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// pass is a graph rewriter that only notes that it ran.
type pass struct {
	doc     string
	inplace bool
	ran     *[]string
	says    string
}

func (p pass) AddRequirements(*fgraph.FunctionGraph) error { return nil }
func (p pass) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
	if p.ran != nil {
		*p.ran = append(*p.ran, p.says)
	}
	return nil
}
func (p pass) Describe() rewrite.Description {
	return rewrite.Description{Doc: p.doc, Destroys: p.inplace}
}

// undocumented is a graph rewriter and nothing else.
type undocumented struct{}

func (undocumented) AddRequirements(*fgraph.FunctionGraph) error { return nil }
func (undocumented) Apply(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error {
	return nil
}

func doc(says string) pass { return pass{doc: "Does nothing.", says: says} }

func inplace() pass { return pass{doc: "Does nothing, in place.", inplace: true} }

// node returns a node rewriter that never fires.
func node() rewrite.Rule {
	return rewrite.Rule{Name: "its_own_name", Doc: "Never fires.", Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) {
		return rewrite.Result{}, nil
	}}
}

// is checks that err wraps all of the errors and that its text contains all of the words.
func is(t *testing.T, err error, wants []error, words ...string) {
	t.Helper()
	for _, want := range wants {
		if !errors.Is(err, want) {
			t.Errorf("%v\nis not %v", err, want)
		}
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nhas no %q", err, w)
		}
	}
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// undocumentedRule returns a rule without a sentence that says what it does.
func undocumentedRule() rewrite.Rule {
	return rewrite.Rule{Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { return rewrite.Result{}, nil }}
}

func TestCase54Faults(t *testing.T) {
	ok := doc("")
	tests := []struct {
		name string
		add  func() error
		want error
		text string
	}{
		{"duplicate name", func() error {
			return optdb.NewSequenceDB("db").Add(optdb.Entry{Name: "a", Rewriter: ok}, optdb.Entry{Name: "a", Rewriter: ok})
		}, optdb.ErrDuplicate, "optdb: db/a: name is taken"},
		{"wrong object", func() error { return optdb.NewSequenceDB("db").Register("a", 7, 1) }, optdb.ErrKind, "int is neither a rewriter nor a database"},
		{"nothing", func() error { return optdb.NewEquilibriumDB("db").Register("a", nil) }, optdb.ErrKind, "<nil> is neither"},
		{"nil rewriter", func() error { return optdb.NewSequenceDB("db").Register("a", (*rewrite.Walk)(nil), 1) }, optdb.ErrKind, "nil in place of a rewriter"},
		{"nil in a rewriter", func() error {
			return optdb.NewSequenceDB("db").Register("a", &rewrite.Sequence{Members: []rewrite.Member{{Rewriter: &rewrite.Equilibrium{Rules: []rewrite.NodeRewriter{nil}}}}}, 1)
		}, optdb.ErrKind, "nil in place of a rewriter"},
		{"rule without a function", func() error { return optdb.NewTopoDB("db").Register("a", rewrite.Rule{Doc: "d"}) }, optdb.ErrKind, "Rule has no function"},
		{"pass without a function", func() error { return optdb.NewSequenceDB("db").Register("a", rewrite.Global{Name: "g", Doc: "d"}, 1) }, optdb.ErrKind, "g has no function"},
		{"function that is nil", func() error { return optdb.NewSequenceDB("db").Register("a", rewrite.FromFunc("f", "d", nil, nil), 1) }, optdb.ErrKind, "f has no function"},
		{"later by nil", func() error {
			return optdb.NewTopoDB("db").Register("a", rewrite.Later(rewrite.Description{Name: "l", Doc: "d"}, nil))
		}, optdb.ErrKind, "l has no function"},
		{"nil database", func() error { return optdb.NewSequenceDB("db").Register("a", (*optdb.GroupDB)(nil), 1) }, optdb.ErrKind, "make it with New"},
		{"database of no kind", func() error { return optdb.NewSequenceDB("db").Register("a", optdb.DB{}, 1) }, optdb.ErrKind, "make it with New"},
		{"in a database of no kind", func() error { return new(optdb.SequenceDB).Register("a", ok, 1) }, optdb.ErrKind, "make it with New"},
		{"build of no kind", func() error { _, err := optdb.New("db", nil).Build(optdb.Query{}); return err }, optdb.ErrKind, "make it with New"},
		{"node rewriter in a sequence", func() error { return optdb.NewSequenceDB("db").Register("a", node(), 1) }, optdb.ErrKind, "rewrite.Walk"},
		{"group in a sequence", func() error { return optdb.NewSequenceDB("db").Register("a", optdb.NewGroupDB("g"), 1) }, optdb.ErrKind, "the group g can't be in a SequenceDB"},
		{"graph rewriter in a walk", func() error { return optdb.NewTopoDB("db").Register("a", ok) }, optdb.ErrKind, "a TopoDB holds node rewriters"},
		{"sequence in a group", func() error { return optdb.NewGroupDB("db").Register("a", optdb.NewSequenceDB("s")) }, optdb.ErrKind, "not the SequenceDB s"},
		{"cleanup and final", func() error {
			return optdb.NewEquilibriumDB("db").Add(optdb.Entry{Name: "a", Rewriter: ok, Cleanup: true, Final: true})
		}, optdb.ErrKind, "both final and cleanup"},
		{"final in a sequence", func() error { return optdb.NewSequenceDB("db").Add(optdb.Entry{Name: "a", Rewriter: ok, Final: true}) }, optdb.ErrKind, "only a graph rewriter in an EquilibriumDB"},
		{"cleanup node rewriter", func() error {
			return optdb.NewEquilibriumDB("db").Add(optdb.Entry{Name: "a", Rewriter: node(), Cleanup: true})
		}, optdb.ErrKind, "only a graph rewriter"},
		{"rewriter and database", func() error {
			return optdb.NewSequenceDB("db").Add(optdb.Entry{Name: "a", Rewriter: ok, DB: optdb.NewSequenceDB("x")})
		}, optdb.ErrKind, "both a rewriter and a database"},
		{"position", func() error { return optdb.NewSequenceDB("db").Register("a", ok, math.NaN()) }, optdb.ErrPosition, "NaN"},
		{"infinite position", func() error { return optdb.NewSequenceDB("db").Register("a", ok, math.Inf(1)) }, optdb.ErrPosition, "+Inf"},
		{"name", func() error { return optdb.NewSequenceDB("db").Register("a b", ok, 1) }, optdb.ErrName, `"a b" is not a name`},
		{"no name", func() error { return optdb.NewSequenceDB("db").Register("", ok, 1) }, optdb.ErrName, `"" is not a name`},
		{"tag", func() error { return optdb.NewSequenceDB("db").Register("a", ok, 1, "+t") }, optdb.ErrName, `"+t" is not a tag`},
		{"no documentation", func() error { return optdb.NewSequenceDB("db").Register("a", undocumented{}, 1) }, optdb.ErrNoDoc, "set Entry.Doc"},
		{"walk of undocumented rules", func() error {
			return optdb.NewSequenceDB("db").Register("a", rewrite.In2Out("w", undocumentedRule(), undocumentedRule()), 1)
		}, optdb.ErrNoDoc, "set Entry.Doc"},
		{"inside of itself", func() error {
			outer, inner := optdb.NewSequenceDB("outer"), optdb.NewSequenceDB("inner")
			must(t, outer.Register("inner", inner, 1))
			return inner.Register("outer", outer, 1)
		}, optdb.ErrNested, "outer has inner in it"},
		{"itself", func() error {
			db := optdb.NewSequenceDB("db")
			return db.Register("a", db, 1)
		}, optdb.ErrNested, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { is(t, test.add(), []error{test.want}, test.text) })
	}
}

// Collisions of tags and names are found whichever was registered first.
func TestCase54TagsAndNames(t *testing.T) {
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		db := optdb.NewSequenceDB("db")
		tag := map[string]string{"a": "b", "b": "t"}
		must(t, db.Register(order[0], doc(""), 1, tag[order[0]]))
		is(t, db.Register(order[1], doc(""), 1, tag[order[1]]), []error{optdb.ErrTagIsName}, "db/a: tag is the name of another entry: b")
	}
	db := optdb.NewSequenceDB("db")
	is(t, db.Register("db", doc(""), 1), []error{optdb.ErrTagIsName}, "the database has that name")
	must(t, db.Register("a", doc(""), 1, "a", "db", "t", "t"))
	must(t, db.Check())
	if diff := cmp.Diff([]string{"a", "db", "t"}, db.Entries()[0].Tags); diff != "" {
		t.Error(diff)
	}
}

func TestCase54Replace(t *testing.T) {
	var ran []string
	db := optdb.NewSequenceDB("db")
	must(t, db.Register("a", pass{"d", false, &ran, "old"}, 1, "t"), db.Register("b", pass{"d", false, &ran, "b"}, 2, "t"))
	before, err := db.Build(optdb.Include("t"))
	must(t, err, db.Replace(optdb.Entry{Name: "a", Rewriter: pass{"d", false, &ran, "new"}, Position: 3, Tags: []string{"t"}}))
	after, err := db.Build(optdb.Include("t"))
	must(t, err, before.Rewrite(t.Context(), graph(t), nil), after.Rewrite(t.Context(), graph(t), nil))
	if got := strings.Join(ran, " "); got != "old b b new" {
		t.Error(got)
	}
	is(t, db.Replace(optdb.Entry{Name: "A", Rewriter: doc("")}), []error{optdb.ErrUnknownEntry}, "did you mean a?")
	is(t, db.Replace(optdb.Entry{Name: "a", Rewriter: 3}), []error{optdb.ErrKind})
	must(t, db.Check(), db.Register("in", optdb.NewTopoDB("x"), 1))
	is(t, db.Replace(optdb.Entry{Name: "a", Rewriter: doc(""), Tags: []string{"b"}}), []error{optdb.ErrTagIsName})
	must(t, db.Check())
	if !db.Has("a") || db.Has("A") {
		t.Error("Has")
	}
}

// What a new entry leaves out, Replace takes from the old one, except for the documentation.
func TestReplaceKeeps(t *testing.T) {
	db := optdb.NewEquilibriumDB("db")
	old := optdb.Entry{Name: "a", Rewriter: doc(""), Position: 2, Tags: []string{"s", "t"}, Dialect: "letters", Cleanup: true,
		Before: []optdb.Constraint{{Name: "b", Reason: "reason"}}}
	must(t, db.Add(old, optdb.Entry{Name: "b", Rewriter: doc(""), Position: 3}))
	must(t, db.Replace(optdb.Entry{Name: "a", Rewriter: pass{doc: "New."}}))
	if l := db.Outline()[0]; l.Name != "a" || l.Doc != "New." || l.Position != 2 || l.Dialect != "letters" || !slices.Equal(l.Tags, []string{"s", "t"}) {
		t.Errorf("%+v", l)
	}
	is(t, db.Replace(optdb.Entry{Name: "a", Rewriter: doc(""), Position: 4}), []error{optdb.ErrOrder}, "because reason")
	is(t, db.Replace(optdb.Entry{Name: "a", Rewriter: undocumented{}}), []error{optdb.ErrNoDoc})
	is(t, db.Replace(optdb.Entry{Name: "a", Rewriter: node()}), []error{optdb.ErrKind}, "only a graph rewriter")
	must(t, db.Replace(optdb.Entry{Name: "a", Rewriter: doc(""), Position: 4, Tags: []string{}, Before: []optdb.Constraint{}}))
	if l := db.Outline()[1]; l.Name != "a" || len(l.Tags) > 0 {
		t.Errorf("%+v", l)
	}
}

// What is in a nested database is replaced and removed there, and the error says where that is.
func TestRemove(t *testing.T) {
	var ran []string
	db, rules := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("rules")
	entry := func(name string, before ...optdb.Constraint) optdb.Entry {
		return optdb.Entry{Name: name, Rewriter: pass{"d", false, &ran, name}, Tags: []string{"t"}, Before: before}
	}
	must(t, db.Add(entry("z", optdb.Constraint{Name: "y"}, optdb.Constraint{Name: "a"}), entry("y", optdb.Constraint{Name: "a"}), entry("a")),
		db.Register("rules", rules, 1, "t"), rules.Register("fold", node(), "t"))
	before, err := db.Build(optdb.Include("t"))
	must(t, err, db.Remove("y"))
	after, err := db.Build(optdb.Include("t"))
	must(t, err, before.Rewrite(t.Context(), graph(t), nil), after.Rewrite(t.Context(), graph(t), nil))
	if got := strings.Join(ran, " "); got != "z y a z a" {
		t.Error(got)
	}
	if db.Has("y") || after.Has("y") || !before.Selected("y") {
		t.Error("y is still there")
	}
	is(t, db.Remove("y"), []error{optdb.ErrUnknownEntry}, "db/y: unknown entry: nothing to remove")
	is(t, db.Remove("fould"), []error{optdb.ErrUnknownEntry}, "did you mean fold?")
	for _, err := range []error{db.Remove("fold"), db.Replace(optdb.Entry{Name: "fold", Rewriter: node()})} {
		is(t, err, []error{optdb.ErrUnknownEntry}, "here: it is in rules, see DatabaseOf")
	}
	must(t, rules.Remove("fold"), db.Remove("rules"), db.Check())
	// A name that was removed is free, and a database that was removed is inside no other.
	must(t, db.Register("y", doc(""), 3), rules.Register("db", optdb.NewGroupDB("g")), db.Register("rules", rules, 60))
}

func TestDatabaseOf(t *testing.T) {
	db := optdb.NewSequenceDB("db")
	must(t, db.Register("a", doc(""), 1), db.Register("canonicalize", optdb.NewEquilibriumDB("x"), 1))
	in, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
	must(t, err)
	must(t, in.Register("rule", node()))
	any, err := optdb.DatabaseOf[optdb.Database](db, "canonicalize")
	if err != nil || any.Name() != "x" {
		t.Error(any, err)
	}
	_, err = optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalise")
	is(t, err, []error{optdb.ErrUnknownEntry}, "db/canonicalise: unknown entry: no database has that name, did you mean canonicalize?")
	_, err = optdb.DatabaseOf[*optdb.EquilibriumDB](db, "a")
	is(t, err, []error{optdb.ErrUnknownEntry}, "no database has that name")
	_, err = optdb.DatabaseOf[*optdb.TopoDB](db, "canonicalize")
	is(t, err, []error{optdb.ErrKind}, "it is a EquilibriumDB")
}

// A registration with faults reports all of them and leaves the database unchanged.
func TestFailedRegisterChangesNothing(t *testing.T) {
	db, inner := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("inner")
	must(t, inner.Register("z", node(), "t"), db.Register("inner", inner, 3, "t"), db.Register("a", doc(""), 1, "t"))
	late := optdb.Entry{Name: "late", Rewriter: doc(""), Position: 1, After: []optdb.Constraint{{"inner", "it reads what inner leaves"}}}
	deep := optdb.NewEquilibriumDB("deep")
	must(t, deep.Register("wild", node(), "inplace"))
	state := fmt.Sprint(db.Entries())
	for _, c := range []struct {
		err   error
		wants []error
		words []string
	}{
		{db.Add(optdb.Entry{Name: "fine", Rewriter: doc("")}, optdb.Entry{Name: "a", Rewriter: doc("")}, optdb.Entry{Name: "b c", Rewriter: undocumented{}, Position: math.NaN()}),
			[]error{optdb.ErrDuplicate, optdb.ErrName, optdb.ErrNoDoc, optdb.ErrPosition}, []string{"4 faults:", "\n\toptdb: db/a: name is taken"}},
		{inner.Register("x", 3), []error{optdb.ErrKind}, []string{"optdb: inner/x: wrong kind of entry"}},
		{inner.Register("y", node(), "z"), []error{optdb.ErrTagIsName}, []string{"optdb: inner/y: tag is the name"}},
		{inner.Register("t", node()), []error{optdb.ErrTagIsName}, []string{"optdb: inner/z: tag is the name of another entry: t"}},
		{db.Register("wild", doc(""), 49.9, "inplace"), []error{optdb.ErrInplace}, []string{"optdb: db/wild: in-place rewriter before position 50: it is at 49.9"}},
		{inner.Register("wild", node(), "inplace"), []error{optdb.ErrInplace}, []string{"inner/wild: in-place rewriter before position 50: inner, which contains it, is at 3 in db"}},
		{db.Register("deep", deep, 4), []error{optdb.ErrInplace}, []string{"deep/wild: in-place rewriter before position 50: deep, which contains it, is at 4 in db"}},
		{db.Add(late), []error{optdb.ErrOrder}, []string{"optdb: db/late: wrong order: it is at 1 and must run after inner, which is at 3, because it reads what inner leaves"}},
	} {
		is(t, c.err, c.wants, c.words...)
		if got := fmt.Sprint(db.Entries()); got != state {
			t.Errorf("%v\nleft %s", c.err, got)
		}
	}
	must(t, db.Check(), db.Register("deep", deep, 70), db.Register("fine", doc(""), 1, "t"))
	o, err := db.Build(optdb.Include("t"))
	must(t, err)
	if got := names(o); got != "a fine inner z" {
		t.Error(got)
	}
	if o, err := optdb.NewSequenceDB("a b").Build(optdb.Include("nonesuch")); o != nil || !errors.Is(err, optdb.ErrName) || !errors.Is(err, optdb.ErrUnknownTag) {
		t.Error(o, err)
	}
}

func TestInplaceBelow50(t *testing.T) {
	tests := []struct {
		name string
		fill func(db *optdb.SequenceDB) error
		want string
	}{
		{"tag", func(db *optdb.SequenceDB) error { return db.Register("a", doc(""), 49.999, "inplace") }, "db/a"},
		{"rewriter", func(db *optdb.SequenceDB) error { return db.Register("a", inplace(), 10) }, "db/a"},
		{"tag of a database", func(db *optdb.SequenceDB) error {
			return db.Register("in", optdb.NewSequenceDB("in"), 10, "inplace")
		}, "db/in"},
		{"deep", func(db *optdb.SequenceDB) error {
			in, eq, g := optdb.NewSequenceDB("in"), optdb.NewEquilibriumDB("eq"), optdb.NewGroupDB("g")
			return errors.Join(g.Register("a", node(), "inplace"), eq.Register("g", g), in.Register("eq", eq, 70), db.Register("in", in, 49))
		}, "g/a: in-place rewriter before position 50: in, which contains it, is at 49 in db"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			is(t, test.fill(optdb.NewSequenceDB("db")), []error{optdb.ErrInplace}, test.want)
		})
	}
	db, in := optdb.NewSequenceDB("db"), optdb.NewSequenceDB("in")
	must(t, db.Register("a", doc(""), 50, "inplace"), db.Register("b", inplace(), 75), db.Register("c", doc(""), 49.5),
		db.Register("in", in, 70), in.Register("d", inplace(), 0), db.Check())
	for _, l := range db.Entries() {
		if want := strings.Contains("abd", l.Name); l.Inplace != want {
			t.Errorf("%s in place: %v", l.Name, l.Inplace)
		}
	}
}

// The order of registration decides neither what is selected nor the order in which it runs.
func TestRegisteringOrderDoesNotMatter(t *testing.T) {
	build := func(seed uint64) string {
		r := rand.New(rand.NewPCG(seed, 1))
		db, eq := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("eq")
		var steps []func() error
		for i, name := range []string{"e", "a", "d", "b", "c"} {
			steps = append(steps,
				func() error { return db.Register(name, doc(""), float64(i%3), "t") },
				func() error { return eq.Register("rule_"+name, node(), "t") })
		}
		steps = append(steps,
			func() error { return db.Register("eq", eq, 1, "t") },
			func() error {
				return db.Add(optdb.Entry{Name: "z", Rewriter: doc(""), Position: 1, Tags: []string{"t"}, Before: []optdb.Constraint{{"a", "so"}}})
			},
			func() error {
				return db.Add(optdb.Entry{Name: "early", Rewriter: doc(""), Position: 1, Tags: []string{"t"}, After: []optdb.Constraint{{"eq", "so"}, {"e", "so"}}})
			})
		r.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
		for _, step := range steps {
			must(t, step())
		}
		o, err := db.Build(optdb.Include("t"))
		must(t, err)
		if got := names(o); got != "b e c eq rule_a rule_b rule_c rule_d rule_e early z a d" {
			t.Fatalf("seed %d: %s", seed, got)
		}
		return o.String() + fmt.Sprint(db.Entries())
	}
	want := build(0)
	for seed := range uint64(50) {
		if diff := cmp.Diff(want, build(seed)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func TestOrders(t *testing.T) {
	entry := func(name string, position float64, before, after string) optdb.Entry {
		e := optdb.Entry{Name: name, Rewriter: doc(""), Position: position, Tags: []string{"t"}}
		for _, n := range strings.Fields(before) {
			e.Before = append(e.Before, optdb.Constraint{n, "of reason B"})
		}
		for _, n := range strings.Fields(after) {
			e.After = append(e.After, optdb.Constraint{n, "of reason A"})
		}
		return e
	}
	tests := []struct {
		name    string
		entries []optdb.Entry
		want    string // the order, or what the error says
		err     error
	}{
		{"kept by position", []optdb.Entry{entry("a", 2, "", "b"), entry("b", 1, "a", "")}, "b a", nil},
		{"tie broken", []optdb.Entry{entry("a", 1, "", "c"), entry("b", 1, "", ""), entry("c", 1, "", "b")}, "b c a", nil},
		{"tie by name", []optdb.Entry{entry("c", 1, "", ""), entry("a", 1, "", ""), entry("b", 1, "", "")}, "a b c", nil},
		{"before, but later", []optdb.Entry{entry("a", 2, "b", ""), entry("b", 1, "", "")}, "db/a: wrong order: it is at 2 and must run before b, which is at 1, because of reason B", optdb.ErrOrder},
		{"after, but earlier", []optdb.Entry{entry("a", 1, "", "b"), entry("b", 2, "", "")}, "it is at 1 and must run after b, which is at 2, because of reason A", optdb.ErrOrder},
		{"cycle", []optdb.Entry{entry("a", 1, "b", ""), entry("b", 1, "c", ""), entry("c", 1, "a", ""), entry("d", 1, "", "")}, "contradict each other: a, b, c", optdb.ErrOrder},
		{"itself", []optdb.Entry{entry("a", 1, "a", "")}, "it is at 1 and must run before a", optdb.ErrOrder},
		{"unknown", []optdb.Entry{entry("alpha", 1, "", ""), entry("b", 1, "", "alhpa")}, "db/b: unknown entry: its order is declared against alhpa, did you mean alpha?", optdb.ErrUnknownEntry},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := optdb.NewSequenceDB("db")
			err := db.Add(test.entries...)
			var o *optdb.Optimizer
			if err == nil {
				o, err = db.Build(optdb.Include("t"))
			}
			if test.err != nil {
				is(t, err, []error{test.err}, test.want)
				return
			}
			must(t, err)
			if got := names(o); got != test.want {
				t.Errorf("%s, want %s", got, test.want)
			}
		})
	}
}

// names returns the selected entries by name, in the order in which they run.
func names(o *optdb.Optimizer) string {
	var list []string
	for _, l := range o.Entries() {
		list = append(list, l.Name)
	}
	return strings.Join(list, " ")
}

// graph returns a graph without applies.
func graph(t *testing.T) *fgraph.FunctionGraph {
	t.Helper()
	x := fgraph.NewInput(thing{}, "x")
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{x})
	must(t, err)
	return g
}

type thing struct{}

func (thing) String() string             { return "thing" }
func (thing) Accepts(u fgraph.Type) bool { return u == thing{} }
