package ir_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest/property"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// readDim reads a size as types have it.
func readDim(text string) (ir.Dim, error) {
	typ, err := ir.ParseType("float[" + text + "]")
	dims, _ := typ.Shape()
	if err != nil || len(dims) != 1 {
		return ir.UnknownDim, fmt.Errorf("%d sizes: %w", len(dims), err)
	}
	return dims[0], nil
}

// combined returns the minimum, maximum or quotient of two sizes.
func combined(t *rapid.T, function string, x, y ir.Dim) ir.Dim {
	text := fmt.Sprintf("%s(%v,%v)", function, x, y)
	d, err := readDim(text)
	if err != nil && len(text) < 1<<12 { // longer ones are unknown
		t.Fatal(err)
	}
	return d
}

// An example is a dim with what it is if symbols are some numbers.
type example struct {
	dim   ir.Dim
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
			return example{ir.Known(n), n, true}
		}
		name := rapid.SampledFrom(names).Draw(t, "name")
		return example{ir.Symbol(name), symbols[name], true}
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
		return example{combined(t, "min", x.dim, y.dim), min(x.value, y.value), ok}
	case 6:
		return example{combined(t, "max", x.dim, y.dim), max(x.value, y.value), ok}
	}
	if kind == 7 { // by a number, as strides are
		n := rapid.Int64Range(-3, 6).Draw(t, "divisor")
		y = example{ir.Known(n), n, true}
	}
	if y.value == 0 {
		return example{combined(t, "div", x.dim, y.dim), 0, false}
	}
	q := x.value / y.value
	if x.value%y.value != 0 && (x.value < 0) != (y.value < 0) {
		q--
	}
	return example{combined(t, "div", x.dim, y.dim), q, ok}
}

// numbers returns the type of lists of these numbers.
func numbers(dims ...ir.Dim) ir.Type {
	return ir.NewType(onnx.Int64, ir.Known(int64(len(dims)))).WithData(dims)
}

// compared returns what an operator makes of two numbers.
func compared(t rapid.TB, operators *ir.Operators, op string, x, y ir.Dim) ir.Dim {
	types, err := operators.Infer(operators.Op(op), []*fgraph.Variable{fgraph.NewInput(numbers(x), ""), fgraph.NewInput(numbers(y), "")})
	if err != nil {
		t.Fatal(err)
	}
	if list, ok := types[0].Data(); ok {
		return list[0]
	}
	return ir.UnknownDim
}

// TestDims: expressions are the numbers that they should be, and what is said of two of them is true.
func TestDims(t *testing.T) {
	operators := ir.Standard()
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
		if x.dim.Same(y.dim) && x.value != y.value || x.dim.Differs(y.dim) && x.value == y.value {
			t.Fatalf("%v and %v are %d and %d", x.dim, y.dim, x.value, y.value)
		}
		if _, ok := numbers(x.dim).Meet(numbers(y.dim)); !ok && x.value == y.value {
			t.Fatalf("%v and %v don't meet", x.dim, y.dim)
		}
		// What is known of their order and of a rest is what operators make of them.
		for op, holds := range map[string]bool{"LessOrEqual": x.value <= y.value, "Mod": y.value != 0 && x.value%y.value != 0} {
			if d := compared(t, operators, op, x.dim, y.dim); d.Is(0) && holds || d.Is(1) && !holds {
				t.Fatalf("%s of %v and %v, which are %d and %d, is %v", op, x.dim, y.dim, x.value, y.value, d)
			}
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
	big, n := ir.Known(math.MaxInt64), ir.Symbol("n")
	dims := []ir.Dim{big.Plus(ir.Known(1)), big.Times(ir.Known(2)), n.Times(big).Plus(n), ir.Known(math.MinInt64).Times(ir.Known(-1))}
	for _, text := range []string{"div(n,-9223372036854775808)", "div(n,0)"} {
		d, err := readDim(text)
		if err != nil {
			t.Fatal(err)
		}
		dims = append(dims, d)
	}
	for _, d := range dims {
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
	start := time.Now()
	d, err := readDim(text)
	if err != nil {
		t.Fatal(err)
	}
	e, err := readDim(fmt.Sprintf("max(%s,%s)", text, strings.ReplaceAll(text, "s", "r")))
	if err != nil {
		t.Fatal(err)
	}
	compared(t, ir.Standard(), "LessOrEqual", e, d.Plus(ir.Known(1)))
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}
