package optdb_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// TestPipelineSelects: a pipeline selects what it lists, in its order, and all of a database unless
// it says what in it. Other terms take away.
func TestPipelineSelects(t *testing.T) {
	db := nested(t)
	tests := []struct{ query, want string }{
		{"[]", ""},
		{"[merge3, merge1]", "merge3 merge1"},
		{"[merge1, blas, merge1]", "merge1 blas local_dot_to_dot22 gemm_optimizer merge1"},
		{"[useless]", "useless join local_join_1 local_join_empty local_useless_fill"},
		{"[useless(local_useless_fill, join(local_join_empty))]", "useless local_useless_fill join local_join_empty"},
		{"[useless()]", ""},
		{"[stabilize, canonicalize(local_add_canonizer), stabilize(local_log1p)]",
			"stabilize constant_folding local_log1p canonicalize local_add_canonizer stabilize local_log1p"},
		{"[merge1, stabilize, inplace_elemwise] -inplace -constant_folding", "merge1 stabilize local_log1p"},
		{"[merge1, canonicalize] &nnet3", "canonicalize local_add_canonizer"},
		{"[merge1, merge3] <50", "merge1"},
		{"[stabilize] stabilize(+local_log1p)", "stabilize local_log1p"},
		{"[stabilize(constant_folding)] stabilize(+local_log1p)", "stabilize constant_folding"},
		{"+fast_run -canonicalize -useless -stabilize -merge -inplace blas([gemm_optimizer])", "blas gemm_optimizer"},
		{"debug [merge1]", "merge1"},
	}
	for _, test := range tests {
		o := build(t, db, test.query)
		if got := names(o); got != test.want {
			t.Errorf("%s\nselects %s\n   want %s", test.query, got, test.want)
		}
		if debugging := strings.HasPrefix(test.query, "debug"); o.Debugging() != debugging {
			t.Errorf("%s: debugging %t", test.query, o.Debugging())
		}
	}
	o := build(t, db, "[merge1, canonicalize(merge)]")
	for name, want := range map[string]string{
		"merge1":                           "merge1: the pipeline lists it",
		"canonicalize/merge":               "canonicalize/merge: the pipeline lists it",
		"canonicalize/constant_folding":    "canonicalize/constant_folding: not selected: the pipeline does not list it",
		"useless/join/local_join_1":        "useless/join/local_join_1: not selected: join, which contains it, is not selected: useless, which contains it, is not selected: the pipeline does not list it",
		"canonicalize/local_add_canonizer": "canonicalize/local_add_canonizer: not selected: the pipeline does not list it",
	} {
		if got := o.Explain(name); got != want {
			t.Errorf("%s", got)
		}
	}
}

// TestPipelinePrints: an optimizer prints as a pipeline from which the same optimizer is built.
func TestPipelinePrints(t *testing.T) {
	db := nested(t)
	tests := []struct{ query, want string }{
		{"none", ""},
		{"fast_run", "merge1, useless, canonicalize, stabilize, blas, inplace_elemwise, merge3"},
		{"fast_run -inplace -constant_folding", "merge1, useless, canonicalize(local_add_canonizer, merge, serialize, topo_folding), stabilize(local_log1p), blas, merge3"},
		{"+fast_run -local_join_1 -stabilize -blas -canonicalize -merge -inplace", "useless(join(local_join_empty), local_useless_fill)"},
		{"+canonicalize canonicalize{max-use=8}", "canonicalize{max-use=8}"},
		{"[blas(gemm_optimizer, local_dot_to_dot22), blas(local_dot_to_dot22, gemm_optimizer)]", "blas(gemm_optimizer, local_dot_to_dot22), blas"},
		{"[useless{order=in-to-out, visit-new=true}(join)]", "useless{order=in-to-out, visit-new=true}(join)"},
	}
	for _, test := range tests {
		o := build(t, db, test.query)
		if o.Pipeline() != test.want {
			t.Errorf("%s\nprints as %s\n     want %s", test.query, o.Pipeline(), test.want)
		}
		q, err := optdb.ParsePipeline(o.Pipeline())
		must(t, err)
		again, err := db.Build(q)
		must(t, err)
		if a, b := tree(o), tree(again); a != b || again.Pipeline() != test.want {
			t.Errorf("%s builds\n%swant\n%s", o.Pipeline(), b, a)
		}
	}
}

// tree returns an optimizer as a tree, without its query.
func tree(o *optdb.Optimizer) string {
	_, lines, _ := strings.Cut(o.String(), "\n")
	return lines
}

// TestPipelineFaults: what a pipeline can't do is said when it is built.
func TestPipelineFaults(t *testing.T) {
	db := nested(t)
	must(t, db.Add(optdb.Entry{Name: "late", Rewriter: doc(""), Position: 80, After: []optdb.Constraint{{Name: "merge1", Reason: "it is late"}}}),
		db.Add(optdb.Entry{Name: "early", Rewriter: doc(""), Position: 0, Before: []optdb.Constraint{{Name: "merge3", Reason: "it is early"}}}))
	tests := []struct {
		query, want string
		err         error
	}{
		{"[late, merge1]", "optdb: optdb/late: wrong order: in the pipeline it must run after merge1, because it is late", optdb.ErrOrder},
		{"[merge3, early]", "optdb: optdb/early: wrong order: in the pipeline it must run before merge3, because it is early", optdb.ErrOrder},
		{"[mergel]", "optdb: optdb/mergel: unknown entry: the pipeline lists it, did you mean merge1?", optdb.ErrUnknownEntry},
		{"[stabilize(local_log)]", "optdb: stabilize/local_log: unknown entry: the pipeline lists it, did you mean local_log1p?", optdb.ErrUnknownEntry},
		{"[merge1(a)]", "optdb: optdb/merge1: wrong kind of entry: the pipeline lists entries in it, but it is no database", optdb.ErrKind},
		{"[merge1] +fast_run", "+fast_run beside a pipeline", optdb.ErrSyntax},
		{"[merge1{a=1}]", "optdb: optdb/merge1: bad setting: a: it has no settings", optdb.ErrSetting},
		{"[useless(join{a=1})]", "optdb: useless/join: bad setting: a: it has no settings", optdb.ErrSetting},
		{"[canonicalize{maxuse=1}]", "optdb: optdb/canonicalize: bad setting: maxuse, did you mean max-use?; it has max-use, order, ignore-new-trees", optdb.ErrSetting},
		{"[canonicalize{max-use=-1}]", `optdb: optdb/canonicalize: bad setting: max-use: "-1" is not a number of at least 0`, optdb.ErrSetting},
		{"[canonicalize{order=up}]", `"up" is neither in-to-out nor out-to-in`, optdb.ErrSetting},
		{"[useless{visit-new=maybe}]", `"maybe" is neither true nor false`, optdb.ErrSetting},
		{"+fast_run canonicalise{max-use=1}", "unknown entry: settings of canonicalise, did you mean canonicalize?", optdb.ErrUnknownEntry},
	}
	for _, test := range tests {
		q, err := optdb.ParseQuery(test.query)
		must(t, err)
		if _, err := db.Build(q); !errors.Is(err, test.err) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v\nwant %s", test.query, err, test.want)
		}
	}
	for _, fine := range []string{"[late]", "[merge1, late, merge1]", "[early, merge3, early, merge3]"} {
		build(t, db, fine)
	}
}

// TestSettings: a setting changes what runs, in this optimizer only.
func TestSettings(t *testing.T) {
	db := optdb.NewSequenceDB("optdb")
	eq := optdb.NewEquilibriumDB("eq")
	must(t, db.Register("eq", eq, 1, "fast_run"), eq.Register("there", firing("a", "b"), "fast_run"), eq.Register("back", firing("b", "a"), "fast_run"),
		db.Register("walk", rewrite.In2Out("walk", firing("x", "y"), firing("y", "z")), 2, "fast_run"))
	most := func(query string) float64 {
		err := build(t, db, query).Rewrite(context.Background(), letters(t, "a"), nil)
		var use *rewrite.MaxUseError
		if !errors.As(err, &use) {
			t.Fatalf("%s: %v", query, err)
		}
		return use.MaxUse
	}
	if a, b, c := most("+eq eq{max-use=40}"), most("[eq{max-use=20}]"), most("+eq"); a != 40 || b != 20 || c != 8 {
		t.Errorf("rules may fire %g, %g and %g times the applies", a, b, c)
	}
	for query, want := range map[string]string{"+walk": "y", "+walk walk{visit-new=true}": "z", "[walk{visit-new=true}]": "z", "[walk, walk]": "z"} {
		g := letters(t, "x")
		must(t, build(t, db, query).Rewrite(context.Background(), g, nil))
		if got := g.Outputs()[0].Owner().Op().String(); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	o := build(t, db, "+fast_run walk{visit-new=true}")
	for _, s := range o.Settings("walk") {
		if want := map[string]string{"max-use": "0", "order": "in-to-out", "visit-new": "true"}[s.Name]; s.Value != want || s.Doc == "" {
			t.Errorf("%+v", s)
		}
	}
	if o.Settings("there") != nil || o.Settings("nothing") != nil || len(o.Settings("eq")) != 3 {
		t.Error("settings of what has none")
	}
}

// TestIdleSettings: settings of what a query leaves out are an error that says why it is left out.
func TestIdleSettings(t *testing.T) {
	db := nested(t)
	for query, want := range map[string]string{
		"+fast_run canonicalize{max-use=8} -canonicalize":              "settings of canonicalize change nothing: canonicalize is not selected: excluded by -canonicalize",
		"+blas canonicalize{max-use=8}":                                "canonicalize is not selected: no tag of +blas",
		"+fast_run canonicalize{max-use=8} <0":                         "canonicalize is not selected: its position",
		"none canonicalize{max-use=8}":                                 "canonicalize is not selected: the query includes nothing",
		"+fast_run stabilize(+fast_run canonicalize{max-use=8})":       "settings of canonicalize change nothing: no entry has that name here",
		"+fast_run stabilize{max-use=8} stabilize(none)":               "stabilize is not selected: selected by +fast_run, but nothing in it is selected",
		"+fast_run inplace{max-use=8}":                                 "settings of inplace change nothing: no entry has that name here",
		"[merge1] canonicalize{max-use=8}":                             "canonicalize is not selected: the pipeline does not list it",
		"[canonicalize{max-use=9}, merge1] canonicalize{max-use=8}":    "the pipeline gives canonicalize settings of its own",
		"[canonicalize, merge1] canonicalize{max-use=8} -canonicalize": "canonicalize is not selected: excluded by -canonicalize",
	} {
		q, err := optdb.ParseQuery(query)
		must(t, err)
		if _, err := db.Build(q); !errors.Is(err, optdb.ErrSetting) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", query, err, want)
		}
		if _, err := db.Build(q.Lenient()); err != nil {
			t.Errorf("%s ?: %v", query, err)
		}
	}
	for _, fine := range []string{"+fast_run canonicalize{max-use=8}", "[canonicalize, canonicalize{max-use=9}] canonicalize{max-use=8}", "[canonicalize{max-use=9}] -canonicalize"} {
		build(t, db, fine)
	}
	q, err := optdb.ParseQuery("+fast_run canonicalize{max-use=8}")
	must(t, err)
	if got := q.Excluding("canonicalize").String(); got != "+fast_run -canonicalize" {
		t.Error(got)
	}
}
