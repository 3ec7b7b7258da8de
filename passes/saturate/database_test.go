package saturate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/saturate"
	"github.com/nnopt/nnopt/pattern"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

// letterWords is a vocabulary whose ops are letters. Capitals cost ten times as much.
type letterWords struct{}

func (letterWords) Operator(name string) (pattern.Operator, bool) {
	return pattern.Operator{
		Match: pattern.Is(letter(name)), MinInputs: 1, MaxInputs: 1, Tracks: []rewrite.Track{rewrite.TrackOp(letter(name))},
		Make: func(m pattern.Making) (*fgraph.Variable, error) {
			return fgraph.NewApply(letter(name), m.Inputs, thing{}).Out(), nil
		},
	}, len(name) == 1
}

func (letterWords) Equal(pattern.Literal, *fgraph.Variable) bool { return false }
func (letterWords) Constant(pattern.Literal, *fgraph.Variable) (*fgraph.Variable, error) {
	return nil, errors.New("there are no numbers")
}

func (letterWords) Cost(a *fgraph.Apply) float64 {
	if name := a.Op().String(); name == strings.ToUpper(name) {
		return 10
	}
	return 1
}

// letterRule returns a rule that is text.
func letterRule(name, text string) optdb.Entry {
	r, err := pattern.ParseRewrite(text)
	if err != nil {
		panic(err)
	}
	s, err := pattern.New(letterWords{}, pattern.Rule{Name: name, Doc: "A rule.", Cases: []pattern.Rewrite{r}})
	if err != nil {
		panic(err)
	}
	return optdb.Entry{Name: name, Rewriter: s, Tags: []string{"t"}}
}

// saturating returns a database with a SaturationDB between an EquilibriumDB and a walk.
func saturating(t *testing.T) (*optdb.SequenceDB, *saturate.DB) {
	t.Helper()
	db, simplify, sat, group := optdb.NewSequenceDB("db"), optdb.NewEquilibriumDB("simplify"), saturate.NewDB("saturate"), optdb.NewGroupDB("more")
	must(t, db.Add(
		optdb.Entry{Name: "simplify", DB: simplify, Position: 1, Tags: []string{"fast_run"}},
		optdb.Entry{Name: "saturate", DB: sat, Position: 2},
	))
	ff := letterRule("ff", "(f (f x)) => (f x)")
	ff.Tags = []string{"fast_run"}
	must(t, simplify.Add(ff))
	must(t, sat.Add(letterRule("swap", "(A (b x)) <=> (b (A x))"), letterRule("cut", "(A (A x)) => (c x)"), letterRule("ff", "(f (f x)) => (f x)"), optdb.Entry{Name: "more", DB: group}))
	must(t, group.Add(letterRule("aside", "(c (b x)) => (d x)")))
	return db, sat
}

func TestDB(t *testing.T) {
	db, _ := saturating(t)
	for _, test := range []struct{ query, want, graph string }{
		{"+fast_run", "simplify ff", "[A(b(A(b(f(x)))))]"},
		{"+fast_run +saturate", "simplify ff saturate cut ff swap", "[b(c(b(f(x))))]"},
		{"+fast_run +saturate +t", "simplify ff saturate cut ff more aside swap", "[d(b(f(x)))]"},
		{"+saturate +t", "saturate cut ff more aside swap", "[d(b(f(x)))]"},
		{"+saturate +t -more", "saturate cut ff swap", "[b(c(b(f(x))))]"},
		{"+saturate -swap", "saturate cut ff", "[A(b(A(b(f(x)))))]"},
		{"+swap", "saturate swap", "[A(b(A(b(f(f(x))))))]"},                                        // only the SaturationDB has it
		{"+ff", "simplify ff", "[A(b(A(b(f(x)))))]"},                                               // the name alone does not ask for saturation
		{"+ff +saturate -cut", "simplify ff saturate ff swap", "[A(b(A(b(f(x)))))]"},               // now it is asked for
		{"[saturate(cut, swap), simplify]", "saturate cut swap simplify ff", "[b(c(b(f(x))))]"},    // in another order
		{"+saturate saturate{nodes=1, growth=0.01}", "saturate cut ff swap", "[A(b(A(b(f(x)))))]"}, // the limit comes too early
	} {
		q, err := optdb.ParseQuery(test.query)
		must(t, err)
		o, err := db.Build(q.Lenient())
		must(t, err)
		if got := names(o); test.want != "" && got != test.want {
			t.Errorf("%s selects %s, not %s", test.query, got, test.want)
		}
		pipeline, err := optdb.ParsePipeline(o.Pipeline())
		must(t, err)
		again, err := db.Build(pipeline)
		must(t, err)
		for _, o := range []*optdb.Optimizer{o, again} {
			g := letters(t, "ffbAbA")
			must(t, o.Rewrite(t.Context(), g, profile.New("", "")))
			if sorted(g.String()) != sorted(test.graph) {
				t.Errorf("%s makes %v, not %s", test.query, g, test.graph)
			}
		}
	}
	o := build(t, db, "+saturate")
	if got := o.String(); !strings.Contains(got, "    2 saturate Saturation\n        cut rule\n") {
		t.Error(got)
	}
	if list := o.Settings("saturate"); len(list) != 7 || list[0].Name != "nodes" {
		t.Error(list)
	}
}

// sorted sorts the letters of a graph, since some orders cost the same.
func sorted(text string) string { return string(slices.Sorted(slices.Values([]byte(text)))) }

// TestSaturationRefuses: a SaturationDB, and a group in one, holds rules that are text.
func TestSaturationRefuses(t *testing.T) {
	db, sat := saturating(t)
	goRule := optdb.Entry{Name: "local_go", Rewriter: rewrite.Rule{Name: "local_go", Doc: "Nothing.", Fn: func(*rewrite.Context, *fgraph.Apply) (rewrite.Result, error) { return rewrite.Result{}, nil }}}
	group, err := optdb.DatabaseOf[*optdb.GroupDB](sat, "more")
	must(t, err)
	others := optdb.NewGroupDB("others")
	must(t, others.Add(goRule))
	for _, err := range []error{sat.Add(goRule), group.Add(goRule), sat.Add(optdb.Entry{Name: "others", DB: others})} {
		if !errors.Is(err, optdb.ErrKind) || !strings.Contains(err.Error(), "it is a Go function") {
			t.Error(err)
		}
	}
	for _, e := range []optdb.Entry{
		{Name: "walk", Doc: "A walk.", Rewriter: rewrite.In2Out("walk")},
		{Name: "seq", DB: optdb.NewSequenceDB("seq")},
		{Name: "other", DB: saturate.NewDB("other")},
	} {
		if err := sat.Add(e); !errors.Is(err, optdb.ErrKind) {
			t.Errorf("%s: %v", e.Name, err)
		}
	}
	if _, err := db.Build(optdb.Include("saturat")); err == nil || !strings.Contains(err.Error(), "did you mean saturate?") {
		t.Error(err)
	}
	for text, want := range map[string]string{"+saturate saturate{nods=3}": "did you mean nodes?", "+saturate saturate{nodes=none}": "not a number from 1"} {
		q, err := optdb.ParseQuery(text)
		must(t, err)
		if _, err = db.Build(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSaturationInEquilibrium: an EquilibriumDB may hold a SaturationDB, and terminates.
func TestSaturationInEquilibrium(t *testing.T) {
	eq, sat := optdb.NewEquilibriumDB("eq"), saturate.NewDB("saturate").Configure(saturate.Pass{Nodes: 100, Laps: 5})
	must(t, eq.Add(letterRule("undo", "(c x) => (A (A x))"), letterRule("e", "(e x) => (A x)"), optdb.Entry{Name: "saturate", DB: sat, Tags: []string{"t"}}))
	must(t, sat.Add(letterRule("swap", "(A (b x)) <=> (b (A x))"), letterRule("cut", "(A (A (A x))) => (d x)")))
	o, err := eq.Build(optdb.Include("t", "saturate"))
	must(t, err)
	g := letters(t, "ebcb")
	must(t, o.Rewrite(t.Context(), g, nil))
	if sorted(g.String()) != sorted("[b(b(d(x)))]") {
		t.Error(g)
	}
}

// A database of rules for ops that the package does not know.
func ExampleDB() {
	db := saturate.NewDB("saturate").Configure(saturate.Pass{Nodes: 1000})
	err := db.Add(letterRule("swap", "(A (b x)) <=> (b (A x))"), letterRule("cut", "(A (A x)) => (c x)"), letterRule("drop", "(b x) => x"))
	if err != nil {
		panic(err)
	}
	optimizer, err := db.Build(optdb.Include("saturate"))
	if err != nil {
		panic(err)
	}
	x := fgraph.NewInput(thing{}, "x")
	b := fgraph.NewApply(letter("b"), []*fgraph.Variable{fgraph.NewApply(letter("A"), []*fgraph.Variable{x}, thing{}).Out()}, thing{})
	a := fgraph.NewApply(letter("A"), []*fgraph.Variable{b.Out()}, thing{})
	g, err := fgraph.New([]*fgraph.Variable{x}, []*fgraph.Variable{a.Out()})
	if err != nil {
		panic(err)
	}
	if err := optimizer.Rewrite(context.Background(), g, nil); err != nil {
		panic(err)
	}
	fmt.Println(g)
	fmt.Print(optimizer.String())
	// Output:
	// [c(x)]
	// saturate Saturation +saturate
	//     cut rule
	//     drop rule
	//     swap rule
}

// letter is an op named by a letter.
type letter string

func (l letter) String() string { return string(l) }

// thing is the type of all values of letters.
type thing struct{}

func (thing) String() string             { return "thing" }
func (thing) Accepts(u fgraph.Type) bool { return u == thing{} }

// letters returns the graph of a word: the first letter is applied to the input.
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

// names returns the selected entries by name, in the order in which they run.
func names(o *optdb.Optimizer) string {
	var list []string
	for _, l := range o.Entries() {
		list = append(list, l.Name)
	}
	return strings.Join(list, " ")
}

// build builds the optimizer of a query.
func build(t *testing.T, db *optdb.SequenceDB, query string) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery(query)
	must(t, err)
	o, err := db.Build(q)
	must(t, err)
	return o
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
