package optdb_test

import (
	"strings"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// Case 55: what the query algebra selects of a{t,s} b{t} c{t,s,u}.
func TestCase55Flat(t *testing.T) {
	db := optdb.NewSequenceDB("db")
	must(t, db.Register("a", doc(""), 1, "t", "s"), db.Register("b", doc(""), 2, "t"), db.Register("c", doc(""), 3, "t", "s", "u"))
	tests := []struct{ query, want string }{
		{"+t", "a b c"},
		{"+t &s", "a c"},
		{"+t -u", "a b"},
		{"+t &s -u", "a"},
		{"&s", ""},
		{"-u", ""},
		{"none", ""},
		{"+s +b", "a b c"},
		{"+a +c", "a c"},
		{"+u +b", "b c"},
		{"+t -a", "b c"},
		{"+t &b", "b"},
		{"+t &s &u", "c"},
		{"+db", "a b c"},
		{"+db &db -b", "a c"},
		{"+a -a", ""},
		{"+t <2", "a"},
		{"+t <1", ""},
		{"+t <0", ""},
		{"+t <2.0001", "a b"},
		{"+t &s <3 -u", "a"},
		{"+a +fast_run", "a"},
		{"+t +nonesuch &nor_this ?", ""},
		{"+t -nonesuch ?", "a b c"},
	}
	for _, test := range tests {
		q, err := optdb.ParseQuery(test.query)
		must(t, err)
		o, err := db.Build(q)
		if err != nil {
			t.Errorf("%s: %v", test.query, err)
		} else if got := names(o); got != test.want {
			t.Errorf("%s selects %q, want %q", test.query, got, test.want)
		}
	}
}

// nested returns a database with the shape of the standard one.
func nested(t testing.TB) *optdb.SequenceDB {
	t.Helper()
	db := optdb.NewSequenceDB("optdb")
	canonicalize := optdb.NewEquilibriumDB("canonicalize").Configure(rewrite.Equilibrium{MaxUse: 3})
	stabilize := optdb.NewEquilibriumDB("stabilize")
	blas := optdb.NewSequenceDB("BlasOpt")
	useless := optdb.NewTopoDB("useless").Configure(rewrite.Walk{Order: rewrite.OutToIn})
	join := optdb.NewGroupDB("join")
	must(t,
		db.Register("merge1", doc(""), 0, "fast_run", "fast_compile", "merge"),
		db.Register("useless", useless, 0.6, "fast_run"),
		db.Add(optdb.Entry{Name: "canonicalize", DB: canonicalize, Position: 1, Tags: []string{"fast_run", "fast_compile"}, Doc: "Brings the graph to a normal form."}),
		db.Register("stabilize", stabilize, 1.5, "fast_run"),
		db.Register("blas", blas, 1.7, "fast_run", "gemm"),
		db.Register("inplace_elemwise", inplace(), 75, "fast_run", "inplace"),
		db.Register("merge3", doc(""), 100, "fast_run", "merge"),
		canonicalize.Register("constant_folding", node(), "fast_run", "fast_compile"),
		canonicalize.Register("local_add_canonizer", node(), "fast_run", "nnet3"),
		canonicalize.Add(
			optdb.Entry{Name: "merge", Rewriter: doc(""), Cleanup: true, Tags: []string{"fast_run"}},
			optdb.Entry{Name: "topo_folding", Rewriter: doc(""), Final: true, Tags: []string{"fast_run"}},
			optdb.Entry{Name: "serialize", Rewriter: doc(""), Tags: []string{"fast_run"}}),
		stabilize.Register("constant_folding", node(), "fast_run", "fast_compile"),
		stabilize.Register("local_log1p", node(), "fast_run"),
		blas.Register("gemm_optimizer", doc(""), 10, "fast_run"),
		blas.Register("local_dot_to_dot22", doc(""), 0, "fast_run"),
		useless.Register("local_useless_fill", node(), "fast_run"),
		useless.Register("join", join, "fast_run"),
		join.Register("local_join_1", node(), "fast_run"),
		join.Register("local_join_empty", node(), "fast_run"))
	return db
}

func build(t *testing.T, db *optdb.SequenceDB, query string) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery(query)
	must(t, err)
	o, err := db.Build(q)
	must(t, err)
	return o
}

func TestCase55Nested(t *testing.T) {
	db := nested(t)
	const useless = "useless join local_join_1 local_join_empty local_useless_fill"
	const canonicalize = "canonicalize constant_folding local_add_canonizer merge serialize topo_folding"
	tests := []struct{ query, want string }{
		{"fast_run", "merge1 " + useless + " " + canonicalize + " stabilize constant_folding local_log1p blas local_dot_to_dot22 gemm_optimizer inplace_elemwise merge3"},
		{"fast_compile", "merge1 canonicalize constant_folding"},
		{"none", ""},
		{"+fast_run -inplace -useless -canonicalize -stabilize", "merge1 blas local_dot_to_dot22 gemm_optimizer merge3"},
		{"+fast_run -constant_folding -useless -blas -merge -inplace", "canonicalize local_add_canonizer serialize topo_folding stabilize local_log1p"},
		// The query is that of the nested database too, the cutoff is not.
		{"+fast_run -useless -canonicalize <1.75", "merge1 stabilize constant_folding local_log1p blas local_dot_to_dot22 gemm_optimizer"},
		// A subquery takes its place, and has a cutoff of its own.
		{"+fast_compile canonicalize(+fast_run -constant_folding -merge)", "merge1 canonicalize local_add_canonizer serialize topo_folding"},
		{"+gemm blas(+BlasOpt <5)", "blas local_dot_to_dot22"},
		{"+gemm BlasOpt(+BlasOpt -local_dot_to_dot22)", "blas gemm_optimizer"},
		{"+merge blas(+fast_run)", "merge1 canonicalize merge merge3"},
		// A requirement is met through the database as well, and does not stop at it.
		{"+fast_run &nnet3", "canonicalize local_add_canonizer"},
		{"+fast_run &gemm", "blas local_dot_to_dot22 gemm_optimizer"},
		// Names of entries open the database that has them, tags do not.
		{"+local_log1p", "stabilize local_log1p"},
		{"+constant_folding", "canonicalize constant_folding stabilize constant_folding"},
		{"+local_join_1", "useless join local_join_1"},
		{"+nnet3", ""},
		{"+local_log1p -stabilize", ""},
		{"+local_log1p <1.5", ""},
		{"+fast_compile +local_log1p", "merge1 canonicalize constant_folding stabilize local_log1p"},
		{"+canonicalize", canonicalize},
		{"+BlasOpt", ""},
		{"+blas", "" /* its entries have the tag BlasOpt, the name of the database */},
		{"+blas +BlasOpt", "blas local_dot_to_dot22 gemm_optimizer"},
		{"+optdb useless(none) canonicalize(none) stabilize(none) blas(none)", "merge1 inplace_elemwise merge3"},
	}
	for _, test := range tests {
		if got := names(build(t, db, test.query)); got != test.want {
			t.Errorf("%s\nselects %s\n   want %s", test.query, got, test.want)
		}
	}
}

func TestUnknownTags(t *testing.T) {
	db := nested(t)
	tests := []struct {
		query string
		want  error
		text  string
	}{
		{"+fast_rum", optdb.ErrUnknownTag, "optdb: query +fast_rum: unknown tag +fast_rum, did you mean fast_run?"},
		{"+fast_run -inpalce", optdb.ErrUnknownTag, "unknown tag -inpalce, did you mean inplace?"},
		{"+fast_run &zzzzzzzzzz", optdb.ErrUnknownTag, "unknown tag &zzzzzzzzzz"},
		{"+blasopt", optdb.ErrUnknownTag, "did you mean BlasOpt?"},
		{"+fast_run canonicalise(+fast_run)", optdb.ErrUnknownEntry, "no database is named canonicalise, did you mean canonicalize?"},
		{"+fast_run canonicalize(+fast_ran)", optdb.ErrUnknownTag, "query +fast_ran: unknown tag +fast_ran, did you mean fast_run?"},
		{"+fast_run merge1(+merge)", optdb.ErrUnknownEntry, "no database is named merge1"},
	}
	for _, test := range tests {
		q, err := optdb.ParseQuery(test.query)
		must(t, err)
		o, err := db.Build(q)
		if o != nil {
			t.Errorf("%s builds", test.query)
		}
		is(t, err, []error{test.want}, test.text)
		if _, err := db.Build(q.Lenient()); err != nil && !strings.Contains(test.query, "(") {
			t.Errorf("%s: %v", q.Lenient(), err)
		}
	}
	_, err := db.Build(optdb.Include("one_word", "fast_run").Excluding("other_word"))
	is(t, err, []error{optdb.ErrUnknownTag}, "2 faults:", "+one_word", "-other_word")
	// Asking for a tag does not make it known.
	if _, again := db.Build(optdb.Include("one_word")); again == nil {
		t.Error("a tag became known by asking for it")
	}
	must(t, db.Register("one_word", doc(""), 3))
}

func TestExplain(t *testing.T) {
	db := nested(t)
	o := build(t, db, "+fast_run -inplace -useless &merge <50")
	tests := []struct{ name, want string }{
		{"merge1", "merge1: selected by +fast_run"},
		{"merge3", "merge3: not selected: its position 100 is not below the cutoff 50"},
		{"inplace_elemwise", "inplace_elemwise: not selected: excluded by -inplace"},
		{"local_log1p", "stabilize/local_log1p: not selected: it lacks the required tag &merge, its tags are local_log1p stabilize fast_run"},
		{"stabilize", "stabilize: not selected: selected by +fast_run, but nothing in it is selected"},
		{"join", "useless/join: not selected: useless, which contains it, is not selected: excluded by -useless"},
		{"useless/join/local_join_1", "useless/join/local_join_1: not selected: join, which contains it, is not selected: useless, which contains it, is not selected: excluded by -useless"},
		{"constant_folding", "canonicalize/constant_folding: not selected: it lacks the required tag &merge, its tags are constant_folding canonicalize fast_compile fast_run\n" +
			"stabilize/constant_folding: not selected: it lacks the required tag &merge, its tags are constant_folding stabilize fast_compile fast_run"},
		{"merge4", "merge4: unknown: no entry of that name in optdb, did you mean merge?"},
		{"canonicalize/merge", "canonicalize/merge: selected by +fast_run"},
	}
	for _, test := range tests {
		if got := o.Explain(test.name); got != test.want {
			t.Errorf("%s\nwant %s", got, test.want)
		}
		if want := !strings.Contains(test.want, "not selected") && !strings.Contains(test.want, "unknown"); o.Selected(test.name) != want {
			t.Errorf("%s selected: %v", test.name, !want)
		}
	}
	for query, want := range map[string]string{
		"none":           "merge1: not selected: the query includes nothing",
		"+blas":          "merge1: not selected: no tag of +blas, its tags are merge1 optdb fast_compile fast_run merge",
		"+merge1":        "merge1: selected by +merge1",
		"+fast_run +all": "",
	} {
		q, err := optdb.ParseQuery(query)
		must(t, err)
		o, err := db.Build(q.Lenient())
		must(t, err)
		if got := o.Explain("merge1"); want != "" && got != want {
			t.Errorf("%s: %s\nwant %s", query, got, want)
		}
	}
	if got := build(t, db, "+local_log1p").Explain("stabilize"); got != "stabilize: entered for +local_log1p" {
		t.Error(got)
	}
}

// TestAvoiding: what a query avoids is selected only if it is named, by its own name, by the tag or in a
// pipeline. Databases that name nothing in particular name nothing.
func TestAvoiding(t *testing.T) {
	db := nested(t)
	must(t, db.Register("loose", doc(""), 60, "fast_run", "unsafe"))
	inner := optdb.NewEquilibriumDB("inner")
	must(t, db.Add(optdb.Entry{Name: "inner", DB: inner, Position: 1.2, Tags: []string{"fast_run"}, Doc: "More."}),
		inner.Register("safe", node(), "fast_run"), inner.Register("local_zero", node(), "fast_run", "unsafe"), inner.Register("apart", node(), "unsafe"))
	const rest = " -useless -canonicalize -stabilize -blas -merge1 -merge3 -inplace"
	for _, test := range []struct{ query, want string }{
		{"+fast_run" + rest, "inner local_zero safe loose"},
		{"+fast_run ~unsafe" + rest, "inner safe"},
		{"+fast_run ~unsafe +local_zero" + rest, "inner local_zero safe"},
		{"+fast_run ~unsafe +unsafe" + rest, "inner apart local_zero safe loose"},
		{"+fast_run ~unsafe &unsafe", "inner local_zero loose"},
		{"+fast_run ~unsafe -unsafe +local_zero" + rest, "inner safe"},
		{"+apart ~unsafe", "inner apart"},
		{"+inner ~unsafe", "inner safe"},
		{"+inner ~unsafe inner(+fast_run)", "inner safe"},
		{"+inner ~unsafe inner(+fast_run +apart)", "inner apart safe"},
		{"+inner inner(+fast_run ~unsafe)", "inner safe"},
		{"[inner, loose] ~unsafe", "inner apart local_zero safe loose"},
		{"[inner(local_zero)] ~unsafe", "inner local_zero"},
		{"+fast_run ~inner ~loose" + rest, ""},
		{"+fast_run ~inner +safe" + rest, "inner safe loose"},
	} {
		if got := names(build(t, db, test.query)); got != test.want {
			t.Errorf("%s selects %q, want %q", test.query, got, test.want)
		}
	}
	if why := build(t, db, "+fast_run ~unsafe").Explain("local_zero"); why != "inner/local_zero: not selected: left out by ~unsafe, since the query names neither it nor the tag" {
		t.Error(why)
	}
	if _, err := db.Build(optdb.Include("fast_run").Avoiding("unsave")); err == nil || !strings.Contains(err.Error(), "~unsave") {
		t.Error(err)
	}
}
