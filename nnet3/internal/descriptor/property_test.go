package descriptor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/alloctest"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/nnet3/index"
	"github.com/nnopt/nnopt/nnet3/internal/descriptor"
)

// drawText draws a descriptor of all functions, correct or nearly so.
func drawText(t *rapid.T, depth int) string {
	arg := func() string { return drawText(t, depth-1) }
	node := rapid.SampledFrom([]string{"a", "b", "c", "d"})
	if depth <= 0 {
		return node.Draw(t, "node")
	}
	number := rapid.SampledFrom([]string{"-2", "-1", "0", "1", "3"})
	switch rapid.IntRange(0, 10).Draw(t, "function") {
	case 0:
		return "Append(" + arg() + ", " + arg() + ")"
	case 1:
		return "Sum(" + arg() + ", " + arg() + ", " + arg() + ")"
	case 2:
		return "Sum(" + arg() + ")"
	case 3:
		return "Failover(" + arg() + "," + arg() + ")"
	case 4:
		return "IfDefined(" + arg() + ")"
	case 5:
		return "Const(" + rapid.SampledFrom([]string{"0.1", "-1e-9", "7"}).Draw(t, "value") + ", 10)"
	case 6:
		return "Scale(" + rapid.SampledFrom([]string{"0.1", "-1", "1e10", "0.3333333"}).Draw(t, "scale") + ", " + arg() + ")"
	case 7:
		return "Offset(" + arg() + ", " + number.Draw(t, "t") + ", " + number.Draw(t, "x") + ")"
	case 8:
		return "Switch(" + arg() + ", " + arg() + ")"
	case 9:
		return "Round(" + arg() + ", " + rapid.SampledFrom([]string{"1", "2", "5"}).Draw(t, "modulus") + ")"
	}
	return "ReplaceIndex(" + arg() + ", " + rapid.SampledFrom([]string{"t", "x"}).Draw(t, "variable") + ", " + number.Draw(t, "value") + ")"
}

// TestPrintParse prints a parsed descriptor and parses it again. The value must be the same. It
// also compares the ways to ask for rows.
func TestPrintParse(t *testing.T) {
	parsed, drawn := 0, 0
	property.Check(t, func(t *rapid.T) {
		drawn++
		text := drawText(t, rapid.IntRange(0, 4).Draw(t, "depth"))
		d, err := descriptor.Parse(text, lookup)
		if err != nil {
			if !errors.Is(err, descriptor.ErrSyntax) {
				t.Fatal(err)
			}
			return // arguments of unequal numbers of parts, or a Sum inside Switch
		}
		parsed++
		printed := d.Format(nodeName)
		again, err := descriptor.Parse(printed, lookup)
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("%s: %s", printed, diff)
		}
		checkRows(t, &d)
	})
	if parsed < drawn/5 {
		t.Errorf("only %d of %d texts could be parsed", parsed, drawn)
	}
}

// checkRows compares Eval, IsComputable and Dependencies at some row with some rows there.
func checkRows(t *rapid.T, d *descriptor.Descriptor) {
	row := index.Index{N: 1, T: rapid.Int32Range(-20, 20).Draw(t, "row")}
	there := make(map[index.Cindex]bool)
	deps := d.Dependencies(row, nil)
	for _, c := range deps {
		there[c] = rapid.Bool().Draw(t, "there")
	}
	known := func(c index.Cindex) bool {
		is, ok := there[c]
		if !ok {
			t.Fatalf("%v is no dependency", c)
		}
		return is
	}
	var used []index.Cindex
	ok := d.IsComputable(row, known, &used)
	var taken []index.Cindex
	all := true
	for i := range d.Parts {
		terms, _, computable := d.Parts[i].Eval(row, known, nil)
		all = all && computable
		for _, term := range terms {
			taken = append(taken, term.Cindex)
		}
	}
	if ok != all {
		t.Fatalf("IsComputable is %v, Eval says %v", ok, all)
	}
	if !ok {
		taken = nil
	}
	if diff := cmp.Diff(taken, used); diff != "" && len(taken)+len(used) > 0 {
		t.Fatalf("used by Eval, by IsComputable: %s", diff)
	}
	fixed := false
	d.Map(func(f descriptor.Forward) descriptor.Forward {
		fixed = fixed || f.Kind == descriptor.ReplaceT
		return f
	})
	m := int32(d.Modulus())
	shifted := row
	shifted.T += m
	for i, c := range d.Dependencies(shifted, nil) {
		moved := deps[i]
		moved.Index.T += m
		if c != moved && !(fixed && c == deps[i]) {
			t.Fatalf("modulus %d: at %v %v, at %v %v", m, row, deps[i], shifted, c)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"Append(Offset(a, -1), a, ReplaceIndex(b, t, 0))", "Sum(Scale(0.66, a), IfDefined(Offset(b, -3)))",
		"Failover(Offset(a, -1), b)", "Switch(a, b, Round(c, 3))", "Sum(Const(1.0, 10), Scale(-1.0, a))", "Offset(a 1)", "Append((",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var d descriptor.Descriptor
		var err error
		if used := alloctest.Bytes(func() { d, err = descriptor.Parse(text, lookup) }); used > alloctest.Bound(len(text)) {
			t.Fatalf("%d bytes were allocated for %d", used, len(text))
		}
		if err != nil {
			var e *descriptor.Error
			if !errors.As(err, &e) || e.Pos < 0 || e.Pos > len(text) || e.Error() == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		printed := d.Format(nodeName)
		again, err := descriptor.Parse(printed, lookup)
		if err != nil {
			t.Fatalf("%s: %v", printed, err)
		}
		if !cmp.Equal(d, again) {
			t.Fatalf("%s: %s", printed, cmp.Diff(d, again))
		}
	})
}

// TestParseAllocation checks that for any text memory stays within 16 times its size plus 64 MiB.
func TestParseAllocation(t *testing.T) {
	n := longtest.Of(1, 4) << 20
	for name, text := range map[string]string{
		"Append":   "Append(a" + strings.Repeat(",a", n) + ")",
		"Sum":      "Sum(a" + strings.Repeat(",a", n) + ")",
		"Switch":   "Switch(a" + strings.Repeat(",a", n) + ")",
		"nested":   strings.Repeat("Sum(a,", n/6),
		"unclosed": strings.Repeat("(", n),
		"product":  strings.Repeat("Round(", 3000) + "Append(a" + strings.Repeat(",a", n) + ")",
		"sums":     "Append(" + strings.Repeat("Sum(a,b),", n) + "a)",
		"pushed":   strings.Repeat("Offset(", 60) + "Append(a" + strings.Repeat(",a", 2000) + ")" + strings.Repeat(", 1)", 60),
		"name":     strings.Repeat("a", n),
		"number":   "Scale(" + strings.Repeat("1", n) + ", a)",
	} {
		used := alloctest.Bytes(func() { descriptor.Parse(text, lookup) })
		if used > alloctest.Bound(len(text)) {
			t.Errorf("%s: %d bytes were allocated for %d", name, used, len(text))
		}
	}
}
