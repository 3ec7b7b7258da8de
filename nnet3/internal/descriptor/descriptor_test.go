package descriptor_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// The nodes of the tests are a to e. They have ten columns each, e has five.
const nodeNames = "abcde"

// maxDepth is how far functions may be inside each other.
const maxDepth = 4000

func lookup(name string) (int, bool) {
	i := strings.Index(nodeNames, name)
	return i, i >= 0 && len(name) == 1
}

func nodeName(i int) string { return nodeNames[i : i+1] }

func nodeDim(i int) int {
	if i == 4 {
		return 5
	}
	return 10
}

func mustParse(t testing.TB, text string) descriptor.Descriptor {
	t.Helper()
	d, err := descriptor.Parse(text, lookup)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestNormalForm compares descriptors with their normal form in print.
func TestNormalForm(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a", "a"},
		{" Append ( a ,b ) ", "Append(a, b)"},
		{"Append(a)", "a"},
		{"Append(Append(a, b), Append(c), d)", "Append(a, b, c, d)"},
		{"Sum(a)", "a"},
		{"Sum(a, b, c)", "Sum(a, Sum(b, c))"},
		{"Sum(Sum(a, b), c)", "Sum(Sum(a, b), c)"},
		{"Sum(Append(a, b), Append(c, d))", "Append(Sum(a, c), Sum(b, d))"},
		{"Failover(Append(a, b), Append(c, d))", "Append(Failover(a, c), Failover(b, d))"},
		{"IfDefined(Append(a, b))", "Append(IfDefined(a), IfDefined(b))"},
		{"Switch(Append(a, b), Append(c, d))", "Append(Switch(a, c), Switch(b, d))"},
		{"Offset(a, 0)", "a"},
		{"Offset(a, +1)", "Offset(a, 1)"},
		{"Offset(Offset(a, 1), -1)", "a"},
		{"Offset(Offset(a, 1, 2), 3)", "Offset(a, 4, 2)"},
		{"Offset(a, 0, 1)", "Offset(a, 0, 1)"},
		{"Offset(Sum(a, IfDefined(b)), 3)", "Sum(Offset(a, 3), IfDefined(Offset(b, 3)))"},
		{"Offset(Append(a, Failover(b, Const(1, 10))), -2)", "Append(Offset(a, -2), Failover(Offset(b, -2), Const(1, 10)))"},
		{"Round(Sum(a, b), 3)", "Sum(Round(a, 3), Round(b, 3))"},
		{"Round(Offset(a, 1), 3)", "Round(Offset(a, 1), 3)"},
		{"ReplaceIndex(Sum(a, b), x, 4)", "Sum(ReplaceIndex(a, x, 4), ReplaceIndex(b, x, 4))"},
		{"ReplaceIndex(a, t, -4)", "ReplaceIndex(a, t, -4)"},
		{"Scale(2.0, Sum(a, Scale(-3, Offset(b, 1))))", "Sum(Scale(2, a), Offset(Scale(-6, b), 1))"},
		{"Scale(0.5, Append(a, Const(3, 10)))", "Append(Scale(0.5, a), Const(1.5, 10))"},
		{"Scale(-1, Switch(a, Scale(2, b)))", "Switch(Scale(-1, a), Scale(-2, b))"},
		{"Scale(1e-10, a)", "Scale(1e-10, a)"},
		{"Scale(0.66, a)", "Scale(0.66, a)"},
		{"Sum(Const(1.0, 10), Scale(-1.0, b))", "Sum(Const(1, 10), Scale(-1, b))"},
	} {
		d := mustParse(t, c.text)
		if got := d.Format(nodeName); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
}

// TestParseErrors checks the positions and messages of errors.
func TestParseErrors(t *testing.T) {
	for _, c := range []struct {
		text string
		pos  int
		what string
	}{
		{"", 0, "expected a node or a function, got the end"},
		{"f", 0, `called "f"`},
		{"Ofset(a, 1)", 0, "did you mean Offset?"},
		{"append(a, b)", 0, "did you mean Append?"},
		{"Foo(a)", 0, "there is no function Foo"},
		{"Append(a, f)", 10, `called "f"`},
		{"Append(a, b", 11, "a parenthesis is not closed"},
		{"Append(a, b))", 12, "too many"},
		{"Append()", 7, `expected a node or a function, got ")"`},
		{"a, b", 1, "Append(…)"},
		{"a b", 2, "expected the end"},
		{"Offset(a)", 8, "too few arguments; usage: Offset(d, t)"},
		{"Offset(a 1)", 9, "is a comma missing?"},
		{"Offset(a, 1.5)", 10, `the offset in t, a whole number, got "1.5"`},
		{"Offset(a, 1, 2, 3)", 14, "too many arguments"},
		{"Offset(a, b)", 10, "a whole number"},
		{"Offset(a, 99999999999)", 10, "a whole number"},
		{"Offset(Offset(a, 2147483647), 1)", 0, "out of range"},
		{"Round(a, 0)", 9, "must be at least 1"},
		{"ReplaceIndex(a, n, 1)", 16, "expected t or x"},
		{"ReplaceIndex(a, t)", 17, "too few arguments"},
		{"Scale(a, 2)", 6, "usage: Scale(number, d)"},
		{"Scale(inf, a)", 6, "a number"},
		{"Scale(0x10, a)", 6, "a number"},
		{"Scale(1e30, Scale(1e30, a))", 6, "not finite"},
		{"Const(1)", 7, "too few arguments"},
		{"Const(1, 0)", 9, "at least 1"},
		{"Sum(Append(a, b), c)", 0, "argument 1 of Sum is made of 2 appended parts and argument 2 of 1"},
		{"Failover(a)", 10, "too few"},
		{"Failover(a, b, c)", 13, "too many"},
		{"Switch(Sum(a, b), c)", 0, "can't be inside Switch"},
		{"Append", 0, "expected an opening parenthesis after Append"},
		{"3", 0, "got the number 3"},
		{"a[1]", 1, "expected the end"},
		{"Sum(a; b)", 5, `expected ')'`},
		{strings.Repeat("Sum(", 5000), 4 * (maxDepth + 1), "inside each other"},
	} {
		_, err := descriptor.Parse(c.text, lookup)
		var e *descriptor.Error
		if !errors.As(err, &e) {
			t.Errorf("%.60s: %v is no *Error", c.text, err)
			continue
		}
		if e.Pos != c.pos || !strings.Contains(e.What, c.what) {
			t.Errorf("%.60s: at %d: %s; want at %d: …%s…", c.text, e.Pos, e.What, c.pos, c.what)
		}
		if e.Err != descriptor.ErrSyntax && e.Err != descriptor.ErrUnknownNode || (e.Err == descriptor.ErrUnknownNode) != (e.Unknown != "") {
			t.Errorf("%.60s: Err %v, Unknown %q", c.text, e.Err, e.Unknown)
		}
	}
	for _, word := range []string{"z", "1", "z("} {
		if _, err := descriptor.Parse(strings.Repeat(word[:1], 1<<20)+word[1:], lookup); err == nil || len(err.Error()) > 1000 {
			t.Errorf("the error about a long %q has %d letters", word, len(err.Error()))
		}
	}
	_, err := descriptor.Parse("Append(a, Offset(b 1))", lookup)
	const want = `descriptor, column 20: expected ',' in Offset, got "1": is a comma missing?; usage: Offset(d, t) or Offset(d, t, x): Append(a, Offset(b  -> 1))`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// TestLargeForms checks that normal forms can't grow without bound.
func TestLargeForms(t *testing.T) {
	wide := "Append(" + strings.Repeat("a, ", 2000) + "a)"
	nested := strings.Repeat("Round(", 1000) + wide + strings.Repeat(", 2)", 1000)
	if _, err := descriptor.Parse(nested, lookup); !errors.Is(err, descriptor.ErrSyntax) || !strings.Contains(err.Error(), "too large") {
		t.Errorf("1000 functions around 2001 terms: %v", err)
	}
	sum := "Sum(" + strings.Repeat("a, ", maxDepth) + "a)"
	if _, err := descriptor.Parse(sum, lookup); !errors.Is(err, descriptor.ErrSyntax) {
		t.Errorf("a sum that can't be written out: %v", err)
	}
	d := mustParse(t, "Sum("+strings.Repeat("a, ", maxDepth-10)+"a)")
	if again := mustParse(t, d.Format(nodeName)); !cmp.Equal(d, again) {
		t.Error("a long sum changes when it is printed and parsed")
	}
}

// has returns a set of Cindexes as a function.
func has(set ...index.Cindex) func(index.Cindex) bool {
	return func(c index.Cindex) bool {
		for _, s := range set {
			if s == c {
				return true
			}
		}
		return false
	}
}

func at(node int32, t int32) index.Cindex {
	return index.Cindex{Node: node, Index: index.Index{N: 1, T: t}}
}

// TestOutOfRange checks that a row out of range has no time and is not taken for another row.
func TestOutOfRange(t *testing.T) {
	const last = math.MaxInt32
	for _, c := range []struct {
		text string
		t    int32
	}{
		{"Offset(a, 1)", last},
		{"Offset(a, 2147483647)", 5},
		{"Offset(a, -2147483648)", -1},
		{"Offset(a, 0, 1)", 3},
		{"Round(a, 1000)", -last},
		{"Offset(Round(a, 2147483647), 7)", last - 3},
		{"Offset(Round(Offset(a, -2000000000), 3), 2000000000)", 2000000000},
		{"Offset(ReplaceIndex(a, t, 0), 1)", last},
		{"Offset(Switch(ReplaceIndex(a, t, 0), ReplaceIndex(b, t, 0)), 1)", last},
	} {
		d := mustParse(t, c.text)
		if got := d.Parts[0].Forward.At(index.Index{N: 1, T: c.t, X: last}); got.Cindex.Index.T != index.NoTime {
			t.Errorf("%s at %d takes %v", c.text, c.t, got.Cindex)
		}
	}
}

// TestRows checks which rows each function takes for the row (1, 7).
func TestRows(t *testing.T) {
	row := index.Index{N: 1, T: 7}
	a7, b7 := at(0, 7), at(1, 7)
	for _, c := range []struct {
		text     string
		has      []index.Cindex
		ok       bool
		terms    []descriptor.Term
		constant float32
	}{
		{"a", nil, false, nil, 0},
		{"a", []index.Cindex{a7}, true, []descriptor.Term{{a7, 1}}, 0},
		{"Scale(0.5, a)", []index.Cindex{a7}, true, []descriptor.Term{{a7, 0.5}}, 0},
		{"Offset(a, -3)", []index.Cindex{at(0, 4)}, true, []descriptor.Term{{at(0, 4), 1}}, 0},
		{"Offset(a, 1, 2)", []index.Cindex{{Node: 0, Index: index.Index{N: 1, T: 8, X: 2}}}, true,
			[]descriptor.Term{{index.Cindex{Node: 0, Index: index.Index{N: 1, T: 8, X: 2}}, 1}}, 0},
		{"Round(a, 3)", []index.Cindex{at(0, 6)}, true, []descriptor.Term{{at(0, 6), 1}}, 0},
		{"Round(Offset(a, -1), 3)", []index.Cindex{at(0, 5)}, true, []descriptor.Term{{at(0, 5), 1}}, 0},
		{"Offset(Round(a, 3), -8)", []index.Cindex{at(0, -3)}, true, []descriptor.Term{{at(0, -3), 1}}, 0},
		{"ReplaceIndex(a, t, 0)", []index.Cindex{at(0, 0)}, true, []descriptor.Term{{at(0, 0), 1}}, 0},
		{"ReplaceIndex(a, x, 3)", []index.Cindex{{Node: 0, Index: index.Index{N: 1, T: 7, X: 3}}}, true,
			[]descriptor.Term{{index.Cindex{Node: 0, Index: index.Index{N: 1, T: 7, X: 3}}, 1}}, 0},
		{"Switch(a, Scale(2, b), c)", []index.Cindex{b7}, true, []descriptor.Term{{b7, 2}}, 0},
		{"Offset(Switch(a, b, c), -8)", []index.Cindex{at(2, -1)}, true, []descriptor.Term{{at(2, -1), 1}}, 0},
		{"Sum(a, b)", []index.Cindex{a7}, false, nil, 0},
		{"Sum(a, Sum(b, Const(3, 10)), Const(-1, 10))", []index.Cindex{a7, b7}, true, []descriptor.Term{{a7, 1}, {b7, 1}}, 2},
		{"Sum(a, a)", []index.Cindex{a7}, true, []descriptor.Term{{a7, 1}, {a7, 1}}, 0},
		{"IfDefined(a)", nil, true, nil, 0},
		{"IfDefined(a)", []index.Cindex{a7}, true, []descriptor.Term{{a7, 1}}, 0},
		{"Sum(b, IfDefined(Sum(a, c)))", []index.Cindex{a7, b7}, true, []descriptor.Term{{b7, 1}}, 0},
		{"Failover(a, b)", []index.Cindex{a7, b7}, true, []descriptor.Term{{a7, 1}}, 0},
		{"Failover(a, b)", []index.Cindex{b7}, true, []descriptor.Term{{b7, 1}}, 0},
		{"Failover(a, b)", nil, false, nil, 0},
		{"Failover(a, Const(4, 10))", nil, true, nil, 4},
		{"Const(4, 10)", nil, true, nil, 4},
	} {
		d := mustParse(t, c.text)
		terms, constant, ok := d.Parts[0].Eval(row, has(c.has...), nil)
		if diff := cmp.Diff(c.terms, terms, cmpopts.EquateEmpty()); ok != c.ok || constant != c.constant || diff != "" {
			t.Errorf("%s with %v: %v, constant %v, computable %v; want %v, %v, %v", c.text, c.has, terms, constant, ok, c.terms, c.constant, c.ok)
		}
		used := []index.Cindex{at(4, 0)} // what was there before must stay
		if got := d.IsComputable(row, has(c.has...), &used); got != c.ok {
			t.Errorf("%s with %v: IsComputable is %v", c.text, c.has, got)
		}
		want := []index.Cindex{at(4, 0)}
		for _, term := range c.terms {
			want = append(want, term.Cindex)
		}
		if diff := cmp.Diff(want, used); diff != "" {
			t.Errorf("%s with %v: used %v, want %v", c.text, c.has, used, want)
		}
		if d.IsComputable(row, has(c.has...), nil) != c.ok {
			t.Errorf("%s with %v: IsComputable without a list differs", c.text, c.has)
		}
	}
}

func TestDependencies(t *testing.T) {
	d := mustParse(t, "Append(Sum(a, Scale(2, IfDefined(Offset(b, 1)))), Failover(Round(c, 5), d), Switch(a, b), Const(1, 10), ReplaceIndex(e, t, 0))")
	got := d.Dependencies(index.Index{N: 1, T: 7}, nil)
	want := []index.Cindex{at(0, 7), at(1, 8), at(2, 5), at(3, 7), at(1, 7), at(4, 0)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{9, 0, 1, 2, 3, 4}, d.Nodes([]int{9})); diff != "" {
		t.Error(diff)
	}
	dim, err := d.Dim(nodeDim)
	if err != nil || dim != 45 {
		t.Errorf("dimension %d, %v; want 45", dim, err)
	}
	for _, text := range []string{"Sum(a, e)", "Append(a, Sum(a, Const(1, 5)))", "Switch(a, e)", "Append(Const(1, 2147483647), a)"} {
		d := mustParse(t, text)
		if dim, err := d.Dim(nodeDim); err == nil {
			t.Errorf("%s has dimension %d", text, dim)
		}
	}
}

func TestModulus(t *testing.T) {
	for _, c := range []struct {
		text string
		want int
	}{
		{"a", 1}, {"Offset(a, 3)", 1}, {"Round(a, 6)", 6}, {"Round(Round(a, 5), 6)", 30}, {"Switch(a, b, c)", 3}, {"Switch(a, Round(b, 4))", 4},
		{"Append(Round(a, 4), Round(b, 6))", 12}, {"Sum(Round(a, 4), IfDefined(Round(b, 6)))", 12}, {"ReplaceIndex(Round(a, 4), t, 0)", 1}, {"ReplaceIndex(Round(a, 4), x, 0)", 4},
		{"Offset(Round(a, 4), 1)", 4}, {"Append(Round(a, 2147483647), Round(a, 2147483646))", math.MaxInt32},
	} {
		d := mustParse(t, c.text)
		if got := d.Modulus(); got != c.want {
			t.Errorf("%s: %d, want %d", c.text, got, c.want)
		}
	}
}

func TestConstant(t *testing.T) {
	for _, c := range []struct {
		text  string
		want  float32
		fixed bool
	}{
		{"a", 0, true}, {"Const(2, 10)", 2, true}, {"Sum(a, Const(2, 10), Const(3, 10))", 5, true}, {"IfDefined(a)", 0, true},
		{"Failover(a, Const(1, 10))", 0, false}, {"IfDefined(Const(1, 10))", 0, false}, {"Sum(Const(1, 10), Failover(a, b))", 1, true},
	} {
		d := mustParse(t, c.text)
		if got, fixed := d.Parts[0].Constant(); got != c.want || fixed != c.fixed {
			t.Errorf("%s: %v, %v; want %v, %v", c.text, got, fixed, c.want, c.fixed)
		}
	}
}

func TestMap(t *testing.T) {
	d := mustParse(t, "Append(Sum(a, Offset(b, 1)), ReplaceIndex(c, t, 0))")
	before := d.Format(nodeName)
	moved := d.Map(func(f descriptor.Forward) descriptor.Forward {
		if f.Kind == descriptor.Node {
			f.Node++
		}
		return f
	})
	if got, want := moved.Format(nodeName), "Append(Sum(b, Offset(c, 1)), ReplaceIndex(d, t, 0))"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	rounded := d.Map(func(f descriptor.Forward) descriptor.Forward {
		if f.Kind == descriptor.ReplaceT && f.Value == 0 {
			return descriptor.Forward{Kind: descriptor.Round, Modulus: 10, Src: f.Src}
		}
		return f
	})
	if got, want := rounded.Format(nodeName), "Append(Sum(a, Offset(b, 1)), Round(c, 10))"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if after := d.Format(nodeName); after != before {
		t.Errorf("the original became %s", after)
	}
}
