package expr_test

import (
	"bytes"
	"flag"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/internal/proctest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

var typedFile = flag.String("typed", "", "a file of expressions that testdata/typed.py wrote, instead of testdata/typed.txt")

// A typedCase is an expression with its value, and how far each element may be off.
type typedCase struct {
	line     int
	text     string
	want     *array.Array
	off      []float64
	asItIs   bool // this is only the value of the expression as it is written
	declared []string
	args     []*array.Array
}

func typedCases(t *testing.T, data []byte) (cases []*typedCase) {
	t.Helper()
	var declared []string
	var args []*array.Array
	fresh := true
	for i, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		mark, rest, _ := strings.Cut(line, " ")
		switch mark {
		case "#":
		case "!":
			if !fresh {
				declared, args, fresh = nil, nil, true
			}
			typ, value, _ := strings.Cut(rest, " = ")
			declared, args = append(declared, typ), append(args, decoded(t, value))
		case "=":
			cases[len(cases)-1].want = decoded(t, rest)
		case "~":
			for _, f := range strings.Fields(rest) {
				off, err := strconv.ParseFloat(f, 64)
				if err != nil {
					t.Fatalf("line %d: %v", i+1, err)
				}
				cases[len(cases)-1].off = append(cases[len(cases)-1].off, off)
			}
		case "none":
			cases[len(cases)-1].asItIs = true
		default:
			fresh = false
			cases = append(cases, &typedCase{line: i + 1, text: line, declared: declared, args: args})
		}
	}
	return cases
}

// decoded reads for example "uint8[2] 1 2".
func decoded(t *testing.T, text string) *array.Array {
	t.Helper()
	name, rest, _ := strings.Cut(text, "[")
	dtype, ok := array.ParseDType(name)
	if !ok {
		t.Fatalf("%.100s is no array", text)
	}
	a, err := array.Decode(dtype, "["+rest)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTyped computes expressions on elements of all types, as they are and optimized, and compares them
// with NumPy.
func TestTyped(t *testing.T) {
	name := "testdata/typed.txt"
	if *typedFile != "" {
		name = *typedFile
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	checkTyped(t, typedCases(t, data))
}

// TestTypedAgain lets NumPy compute other expressions, where it is installed.
func TestTypedAgain(t *testing.T) {
	proctest.NeedsPrograms(t)
	if !longtest.Enabled() {
		t.Skip("without -long")
	}
	var failure bytes.Buffer
	python := exec.CommandContext(t.Context(), "/usr/bin/python3", "testdata/typed.py", "7", "1500")
	python.Stderr = &failure
	data, err := python.Output()
	switch {
	case strings.Contains(failure.String(), "No module named") || err != nil && failure.Len() == 0:
		t.Skip("there is no NumPy")
	case err != nil:
		t.Fatalf("%v: %s", err, &failure)
	}
	checkTyped(t, typedCases(t, data))
}

func checkTyped(t *testing.T, cases []*typedCase) {
	if len(cases) == 0 {
		t.Fatal("no cases")
	}
	// Rules with these tags change values where something is infinite or NaN, or overflows.
	fast := passtest.Optimizer(t, "+fast_run -unsafe_nan -overflow")
	debug := passtest.Optimizer(t, "debug -unsafe_nan -overflow")
	for i, c := range cases {
		c.check(t, nil)
		if !c.asItIs {
			c.check(t, fast)
			if *typedFile != "" || i%5 == 0 {
				c.check(t, debug)
			}
		}
	}
}

func (c *typedCase) check(t *testing.T, opt *optdb.Optimizer) {
	t.Helper()
	query := "none"
	if opt != nil {
		query = opt.Query().String()
	}
	s := expr.NewScope()
	if err := s.Declare(strings.Join(c.declared, "; ")); err != nil {
		t.Fatalf("line %d: %v", c.line, err)
	}
	v, err := s.Parse(c.text)
	if err != nil {
		t.Errorf("line %d: %s: %v", c.line, c.text, err)
		return
	}
	got, err := runNumPy(t, s.Inputs(), c.args, v, opt)
	if err != nil {
		t.Errorf("line %d, %s: %s: %v", c.line, query, c.text, err)
		return
	}
	if d := c.differs(got[0]); d != "" {
		t.Errorf("line %d, %s: %s: %s\n%s", c.line, query, c.text, d, fgraph.Sprint(0, v...))
	}
}

// differs says where a value is off, or "".
func (c *typedCase) differs(got *array.Array) string {
	if got.DType() != c.want.DType() || !array.SameShape(got, c.want) {
		return "a " + got.DType().String() + " " + got.Encode() + ", want a " + c.want.DType().String() + " " + c.want.Encode()
	}
	for i := range c.want.Len() {
		x, y, off := got.Float(i), c.want.Float(i), 0.0
		if c.off != nil {
			off = c.off[i]
		}
		same := x == y || x != x && y != y || math.Abs(x-y) <= off
		if c.want.DType().IsInteger() {
			same = got.Int(i) == c.want.Int(i)
		}
		if !same {
			return "element " + strconv.Itoa(i) + " of " + got.Encode() + ", want " + c.want.Encode()
		}
	}
	return ""
}
