package ir

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest/property"
)

// An example is a dim with what it is if symbols are some numbers.
type example struct {
	dim   Dim
	value int64
	ok    bool // false if there is no such number, because of a quotient by 0
}

var names = []string{"n", "t", "h", "a b", "div", "p.0"}

func drawSymbols(t *rapid.T) map[string]int64 {
	symbols := make(map[string]int64)
	for _, name := range names {
		symbols[name] = rapid.Int64Range(0, 40).Draw(t, name)
	}
	return symbols
}

// drawExample returns a random expression.
func drawExample(t *rapid.T, symbols map[string]int64, depth int) example {
	kind := rapid.IntRange(0, 8).Draw(t, "kind")
	if depth == 0 || kind == 0 {
		if rapid.Bool().Draw(t, "number") {
			n := rapid.Int64Range(-9, 33).Draw(t, "n")
			return example{Known(n), n, true}
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		return example{Symbol(name), symbols[name], true}
	}
	x, y := drawExample(t, symbols, depth-1), drawExample(t, symbols, depth-1)
	ok := x.ok && y.ok
	switch kind {
	case 1, 2:
		return example{x.dim.Plus(y.dim), x.value + y.value, ok}
	case 3:
		return example{x.dim.Minus(y.dim), x.value - y.value, ok}
	case 4:
		return example{x.dim.Times(y.dim), x.value * y.value, ok}
	case 5:
		return example{x.dim.min(y.dim), min(x.value, y.value), ok}
	case 6:
		return example{x.dim.max(y.dim), max(x.value, y.value), ok}
	}
	if kind == 7 { // by a number, as strides are
		n := rapid.Int64Range(-3, 6).Draw(t, "divisor")
		y = example{Known(n), n, true}
	}
	if y.value == 0 {
		return example{x.dim.over(y.dim), 0, false}
	}
	q := x.value / y.value
	if x.value%y.value != 0 && (x.value < 0) != (y.value < 0) {
		q--
	}
	return example{x.dim.over(y.dim), q, ok}
}

// TestDims: expressions are the numbers that they should be, and what is said of two of them is true.
func TestDims(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		symbols := drawSymbols(t)
		x, y := drawExample(t, symbols, 4), drawExample(t, symbols, 4)
		if !x.ok || !y.ok || max(x.value, -x.value, y.value, -y.value) > 1<<40 {
			t.Skip("a quotient by 0, or a large number")
		}
		for _, e := range []example{x, y} {
			if n, ok := e.dim.Eval(symbols); ok && n != e.value {
				t.Fatalf("%v is %d, not %d", e.dim, n, e.value)
			}
			again, err := readDim(e.dim.String())
			if err != nil || again != e.dim {
				t.Fatalf("%v is read as %v: %v", e.dim, again, err)
			}
		}
		if x.dim.IsUnknown() || y.dim.IsUnknown() {
			return
		}
		if x.dim.Same(y.dim) && x.value != y.value || x.dim.Differs(y.dim) && x.value == y.value || x.dim.atMost(y.dim) && x.value > y.value {
			t.Fatalf("%v and %v are %d and %d", x.dim, y.dim, x.value, y.value)
		}
		if q, ok := x.dim.exactly(y.dim); ok && y.value != 0 {
			if n, ok := q.Eval(symbols); ok && n*y.value != x.value {
				t.Fatalf("%v / %v is %v, which is %d", x.dim, y.dim, q, n)
			}
		}
		if _, ok := x.dim.meet(y.dim); !ok && x.value == y.value {
			t.Fatalf("%v and %v don't meet", x.dim, y.dim)
		}
	})
}

func TestNormalForm(t *testing.T) {
	for text, want := range map[string]string{
		"n+n":                     "2*n",
		"t*n+n*t":                 "2*n*t",
		"3-n+n":                   "3",
		"div(h-1,2)+1":            "div(h+1,2)",
		"div(2*h+6,4)":            "div(h+1,2)+1",
		"div(5*h+7,3)":            "div(2*h+1,3)+h+2",
		"div(div(h+1,2)+1,2)":     "div(h+3,4)",
		"div(6*n,n)":              "6",
		"div(n,-2)":               "div(n,2)-n",
		"max(0,max(0,n-1)-1)":     "max(0,n-2)",
		"min(n,n+1,5)":            "min(5,n)",
		"max(n,0)":                "n",
		"n*9223372036854775807+n": "?",
		`"a b"*2`:                 `2*"a b"`,
		"-9223372036854775808":    "-9223372036854775808",
		"?":                       "?",
	} {
		d, err := readDim(text)
		if err != nil || d.String() != want {
			t.Errorf("%s is %v, not %s: %v", text, d, want, err)
		}
	}
	for _, text := range []string{"", "n+", "*", "div(n)", "div(n,1,2)", "f(n,2)", "n 2", "1.5", `"`, "min", "max(n)", "((n))", "div(n,2", "+-n"} {
		if d, err := readDim(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestOverflow(t *testing.T) {
	big, n := Known(math.MaxInt64), Symbol("n")
	for _, d := range []Dim{big.Plus(Known(1)), big.Times(Known(2)), n.Times(big).Plus(n), Known(math.MinInt64).Times(Known(-1)), n.over(Known(math.MinInt64)), n.over(Known(0))} {
		if !d.IsUnknown() {
			t.Errorf("%v is known", d)
		}
	}
}

// TestHostileDims: expressions of many minima and maxima are compared in little time.
func TestHostileDims(t *testing.T) {
	text := "n"
	for i := range 7 {
		args := []string{text}
		for k := range 7 {
			args = append(args, fmt.Sprintf("s%d_%d", i, k))
		}
		text = []string{"min(", "max("}[i%2] + strings.Join(args, ",") + ")"
	}
	d, err := readDim(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := readDim(strings.ReplaceAll(text, "s", "r"))
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	d.max(e).min(d.Plus(Known(1)))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
