package optdb_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/optdb"
)

func TestParseQueryPrintsBack(t *testing.T) {
	for _, text := range []string{
		"+fast_run -inplace &nnet3 <49",
		"+fast_run ~unsafe_nan -a",
		"debug ~a b(+c ~d)",
		"+fast_run",
		"&s",
		"-a +b &c -d +e",
		"+merge1.1 -propagate-in-place +a:b +0_dot_x",
		"+fast_run canonicalize(+fast_run -local_add_canonizer) specialize(-y none_of_it(+x <2.5)) <1.5000001",
		"+a canonicalize()",
		"+a <-0.01 ?",
		"[useless, canonicalize{max-use=8, order=out-to-in}(a, b{x=}), c()] -inplace &a sub(+b) <49 ?",
		"[]",
		"debug [a] -b",
		"+fast_run canonicalize{max-use=8} a{b=c:d}",
		"+a(b",
		"none",
	} {
		q, err := optdb.ParseQuery(text)
		if strings.Contains(text, "+a(b") {
			if err == nil {
				t.Errorf("%s: no error", text)
			}
			continue
		}
		if err != nil {
			t.Error(err)
		} else if q.String() != text {
			t.Errorf("%s printed back as %s", text, q)
		}
	}
}

func TestParseQueryNormalizes(t *testing.T) {
	tests := []struct{ text, want string }{
		{"", "none"},
		{"  \t\n", "none"},
		{"none", "none"},
		{" +a   -b\n&c ", "+a -b &c"},
		{"+a +a -a", "+a -a"},
		{"<49.0 +a", "+a <49"},
		{"? +a", "+a ?"},
		{"fast_run -inplace", "+fast_run -inplace"},
		{"fast_compile", "+fast_compile"},
		{"none +a", "+a"},
		{"+x canonicalize( fast_run  )", "+x canonicalize(+fast_run)"},
	}
	for _, test := range tests {
		q, err := optdb.ParseQuery(test.text)
		if err != nil {
			t.Error(err)
		} else if q.String() != test.want {
			t.Errorf("%q: %s, want %s", test.text, q, test.want)
		}
	}
}

// Case 55: a bare tag is an error.
func TestParseQueryFaults(t *testing.T) {
	tests := []struct{ text, want string }{
		{"t", `column 1: the tag t needs one of + - & ~ before it`},
		{"+a fast_run", "column 4: the tag fast_run needs"},
		{"+", "column 2: a tag is missing"},
		{"+a -", "column 5: a tag is missing"},
		{"+ a", "column 2: a tag is missing"},
		{"+a+b", "column 3: unexpected '+'"},
		{"+a,b", "column 3: unexpected ','"},
		{"++a", "column 2: a tag is missing"},
		{"=a", "column 1: unexpected '='"},
		{"+é", "column 2: a tag is missing"},
		{"+a <", `column 4: a position after "<"`},
		{"+a <x", `column 4: a position after "<"`},
		{"+a <nan", `column 4: a position after "<"`},
		{"+a <inf", `column 4: a position after "<"`},
		{"<1 <2", "column 4: a second position"},
		{"+a)", "column 3: unexpected ')'"},
		{"d(+a", `column 5: no ")" after d(`},
		{"d(a)", "column 3: the tag a needs"},
		{"d(+a) d(+b)", "column 7: a second subquery for d"},
		{"d(+a)+b", "column 6: unexpected '+'"},
		{strings.Repeat("d(", 17), "column 33: more than 16 subqueries inside each other"},
		{strings.Repeat("d(", 1e5), "more than 16 subqueries"},
		{"[x@1]", "column 3: unexpected '@'"},
		{"[a", `column 3: no "]"`},
		{"[a] [b]", "column 5: a second pipeline"},
		{"[a b]", "column 4: unexpected 'b', passes are separated by commas"},
		{"[a(b]", `column 5: no ")" after a(`},
		{"[a, , b]", "column 5: unexpected ','"},
		{"[a]+b", "column 4: unexpected '+'"},
		{"[a{x}]", "column 4: a setting is name=value"},
		{"[a{x=1 x=2}]", `column 8: no "}" after the settings`},
		{"a{x=1, x=2}", "column 8: a second value of x"},
		{"a{x=1} a{y=2}", "column 8: settings of a again"},
		{"a{x=1}(+b)", "column 7: settings of a are a term of their own"},
		{"a{x=1", `column 6: no "}"`},
		{"[" + strings.Repeat("d(", 1e5), "more than 16 databases"},
		{"?+a", "column 2: unexpected '+'"},
	}
	for _, test := range tests {
		q, err := optdb.ParseQuery(test.text)
		if !errors.Is(err, optdb.ErrSyntax) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.40q: %v, %v; want %s", test.text, q, err, test.want)
		}
	}
}

func TestQueryIsAValue(t *testing.T) {
	base := optdb.Include("fast_run").Excluding("inplace")
	base = base.Including("a") // capacity to spare
	one := base.Requiring("nnet3").Subquery("d", optdb.Include("x")).Cutoff(49)
	two := base.Requiring("tensor").Subquery("d", optdb.Query{}).Cutoff(3).Lenient()
	three := one.Subquery("d", optdb.Include("y")).With("mine", nil, 7).With("yours", nil, 8)
	four := one.With("other", nil, 9)
	for _, test := range []struct {
		q    optdb.Query
		want string
	}{
		{base, "+fast_run -inplace +a"},
		{one, "+fast_run -inplace +a &nnet3 d(+x) <49"},
		{two, "+fast_run -inplace +a &tensor d() <3 ?"},
		{three, "+fast_run -inplace +a &nnet3 d(+y) [mine@7] [yours@8] <49"},
		{four, "+fast_run -inplace +a &nnet3 d(+x) [other@9] <49"},
		{optdb.Query{}, "none"},
	} {
		if test.q.String() != test.want {
			t.Errorf("%s, want %s", test.q, test.want)
		}
	}
	if one.Equal(two) || !one.Equal(base.Requiring("nnet3").Cutoff(49).Subquery("d", optdb.Include("x"))) {
		t.Error("Equal")
	}
}

func TestQueryEmpty(t *testing.T) {
	for text, want := range map[string]bool{"none": true, "&s": true, "-a <3": true, "+a": false} {
		q, err := optdb.ParseQuery(text)
		if err != nil || q.Empty() != want {
			t.Errorf("%s: %v %v", text, q.Empty(), err)
		}
	}
	if (optdb.Query{}).With("x", nil, 1).Empty() {
		t.Error("a query that brings a rewriter along is not empty")
	}
}

func TestModes(t *testing.T) {
	for _, name := range []string{"fast_run", "fast_compile", "debug", "none"} {
		q, ok := optdb.Mode(name)
		parsed, err := optdb.ParseQuery(name)
		if !ok || err != nil || !parsed.Equal(q) {
			t.Errorf("%s: %s, %s, %v", name, q, parsed, err)
		}
	}
	if _, ok := optdb.Mode("fast"); ok {
		t.Error("a mode too many")
	}
	for text, debugging := range map[string]bool{"debug": true, "debug -inplace": true, "fast_run": false, "+fast_run ?": false} {
		q, err := optdb.ParseQuery(text)
		if err != nil || q.Debugging() != debugging {
			t.Errorf("%s: debugging %t, %v", text, q.Debugging(), err)
		}
		again, err := optdb.ParseQuery(q.String())
		if err != nil || again.Debugging() != debugging || !again.Equal(q) {
			t.Errorf("%s prints as %s", text, q)
		}
	}
	if q, _ := optdb.Mode(optdb.ModeNone); !q.Empty() {
		t.Errorf("none is %s", q)
	}
}

func TestQueryPrintsWhatParses(t *testing.T) {
	tag := rapid.StringMatching(`[a-zA-Z0-9_][a-zA-Z0-9_.:-]{0,6}`)
	value := rapid.StringMatching(`[^ \t\r\n,}]{0,5}`)
	var query func(depth int) *rapid.Generator[optdb.Query]
	query = func(depth int) *rapid.Generator[optdb.Query] {
		return rapid.Custom(func(t *rapid.T) optdb.Query {
			var q optdb.Query
			for range rapid.IntRange(0, 5).Draw(t, "terms") {
				switch rapid.IntRange(0, 7).Draw(t, "kind") {
				case 0:
					q = q.Including(tag.Draw(t, "tag"))
				case 1:
					q = q.Excluding(tag.Draw(t, "tag"))
				case 2:
					q = q.Requiring(tag.Draw(t, "tag"))
				case 3:
					q = q.Cutoff(rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(t, "cutoff"))
				case 4:
					q = q.Lenient()
				case 5:
					if depth < 3 {
						q = q.Subquery(tag.Draw(t, "db"), query(depth+1).Draw(t, "sub"))
					}
				case 6:
					q = q.Set(tag.Draw(t, "entry"), tag.Draw(t, "setting"), value.Draw(t, "value"))
				case 7:
					q = q.Excluding(tag.Draw(t, "tag"))
				}
			}
			return q
		})
	}
	property.Check(t, func(t *rapid.T) {
		q := query(0).Draw(t, "query")
		got, err := optdb.ParseQuery(q.String())
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != q.String() {
			t.Fatalf("%s printed back as %s", q, got)
		}
	})
}

// FuzzParseQuery: a query takes memory in proportion to its text, prints as text
// that reads as the same query, and builds an optimizer that can account for every entry, unless a
// tag is unknown.
func FuzzParseQuery(f *testing.F) {
	for _, text := range []string{"+fast_run -inplace &nnet3 <49", "fast_compile &merge", "+useless canonicalize(+fast_run -local_add) <1.5 ?",
		"[useless, canonicalize{max-use=8}(constant_folding), merge1] -inplace", "fast_run canonicalize{order=out-to-in}"} {
		f.Add(text)
	}
	db := nested(f)
	var paths []string
	for _, e := range db.Entries() {
		paths = append(paths, e.Path)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := optdb.ParseQuery(text)
		most := uint64(256<<10 + 1000*len(text))
		if got := alloctest.Least(most, func() { optdb.ParseQuery(text) }); got > most {
			t.Errorf("%d bytes of text take %d bytes to read, more than %d", len(text), got, most)
		}
		if err != nil {
			if !errors.Is(err, optdb.ErrSyntax) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		again, err := optdb.ParseQuery(q.String())
		if err != nil || again.String() != q.String() || !again.Equal(q) {
			t.Errorf("%q printed as %q, read as %q, %v", text, q, again, err)
		}
		o, err := db.Build(q)
		if err != nil {
			for _, known := range []error{optdb.ErrUnknownTag, optdb.ErrUnknownEntry, optdb.ErrSetting, optdb.ErrKind, optdb.ErrSyntax} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Errorf("%q: %v", text, err)
			return
		}
		for _, path := range paths {
			if selected := strings.Count(o.Explain(path), "\n")+1 > strings.Count(o.Explain(path), ": not selected: "); selected != o.Selected(path) {
				t.Errorf("%q: %s is selected: %v, but %s", text, path, !selected, o.Explain(path))
			}
		}
	})
}
