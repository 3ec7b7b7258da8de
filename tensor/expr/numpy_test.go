package expr_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A numpyCase is an expression with the outputs, or the error, that testdata/numpy.txt says it has.
type numpyCase struct {
	line int
	text string
	want []*array.Array
	fail string // part of the message, or several that are possible; "" if it doesn't fail
}

// numpyCases reads a table of cases and the variables that they use.
func numpyCases(t *testing.T, path string) (inputs []*fgraph.Variable, args []*array.Array, cases []numpyCase) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	declared := false
	for i, line := range strings.Split(string(data), "\n") {
		name, rest, ok := strings.Cut(line, ": ")
		last := len(cases) - 1
		switch {
		case strings.HasPrefix(line, "#"):
		case line == "":
			declared = len(args) > 0
		case !declared && ok:
			typ, value, _ := strings.Cut(rest, " = ")
			s := expr.NewScope()
			if err := s.Declare(name + ": " + typ); err != nil {
				t.Fatal(err)
			}
			inputs, args = append(inputs, s.Inputs()...), append(args, parseArray(t, value))
		case line[0] == '=':
			cases[last].want = append(cases[last].want, parseArray(t, line[2:]))
		case line[0] == '!':
			cases[last].fail = strings.TrimLeft(line, "! ")
		default:
			cases = append(cases, numpyCase{line: i + 1, text: line})
		}
	}
	return inputs, args, cases
}

// TestNumPy computes the expressions of testdata/numpy.txt: as they are and optimized, with sizes
// that the types of the inputs know and with others. It also infers the shapes of the outputs.
func TestNumPy(t *testing.T) {
	inputs, args, cases := numpyCases(t, "testdata/numpy.txt")
	static := make([]*fgraph.Variable, len(inputs))
	for i, v := range inputs {
		static[i] = fgraph.NewInput(tensor.NewType(args[i].DType(), args[i].Shape()...), v.Name())
	}
	optimizer := passtest.Optimizer(t, "+fast_run")
	for _, c := range cases {
		if len(c.want) == 0 && c.fail == "" {
			t.Errorf("line %d: %s has no result", c.line, c.text)
		}
		checkNumPy(t, c, inputs, args, nil)
		if longtest.Enabled() || c.line%7 == 0 {
			checkNumPy(t, c, static, args, nil)
			checkNumPy(t, c, inputs, args, optimizer)
			checkNumPy(t, c, static, args, optimizer)
		}
	}
}

func checkNumPy(t *testing.T, c numpyCase, inputs []*fgraph.Variable, args []*array.Array, optimizer *optdb.Optimizer) {
	t.Helper()
	checkPrinted(t, c, inputs)
	outputs, err := expr.NewScope(inputs...).Parse(c.text)
	var got []*array.Array
	n := len(outputs)
	if err == nil {
		got, err = runNumPy(t, inputs, args, withShapes(outputs), optimizer)
	}
	switch {
	case c.fail != "" && err == nil:
		t.Errorf("line %d: %s has no error", c.line, c.text)
	case c.fail != "" && !slices.ContainsFunc(strings.Split(c.fail, " | "), func(s string) bool { return strings.Contains(err.Error(), s) }):
		t.Errorf("line %d: %s: %v, want %s", c.line, c.text, err, c.fail)
	case c.fail != "":
	case err != nil:
		t.Errorf("line %d: %s: %v", c.line, c.text, err)
	case n != len(c.want):
		t.Errorf("line %d: %s has %d outputs, want %d", c.line, c.text, n, len(c.want))
	default:
		sizes := got[n:]
		for i, want := range c.want {
			if d := differs(got[i], want, 1e-13, 0); d != "" {
				t.Errorf("line %d: %s: %s\n%s", c.line, c.text, d, fgraph.Sprint(0, outputs[i]))
			}
			for d := range want.NDim() {
				if k := sizes[0].Int(0); k != int64(want.Dim(d)) {
					t.Errorf("line %d: %s: size %d of dimension %d is inferred", c.line, c.text, k, d)
				}
				sizes = sizes[1:]
			}
		}
	}
}

// checkPrinted prints the graph of a case and reads it again.
func checkPrinted(t *testing.T, c numpyCase, inputs []*fgraph.Variable) {
	outputs, err := expr.NewScope(inputs...).Parse(c.text)
	if err != nil {
		return
	}
	g, err := tensor.NewGraph(inputs, outputs)
	if err != nil {
		t.Fatal(err)
	}
	for v := range g.Variables() {
		a := tensor.ConstantOf(v)
		if a == nil {
			continue
		}
		moved := true
		if c := v.Clients()[0].Apply; c != nil {
			_, moved = c.Op().(tensor.DimShuffleOp)
		}
		if a.DType() == array.Float32 || a.Len() == 1 && a.NDim() > 0 && (moved || a.DType() != array.Int64) {
			return // it prints as a number, which has another type
		}
	}
	printed := fgraph.Sprint(0, outputs...)
	again, err := expr.NewScope(inputs...).Parse(printed)
	if strings.Contains(printed, "…") {
		return // a constant is not printed in full
	}
	if err != nil {
		t.Errorf("line %d: %s prints as %s, which does not read: %v", c.line, c.text, printed, err)
	} else if got := fgraph.Sprint(0, again...); got != printed {
		t.Errorf("line %d: %s prints as\n%s, which reads as\n%s", c.line, c.text, printed, got)
	}
}

// withShapes returns the outputs followed by their sizes.
func withShapes(outputs []*fgraph.Variable) []*fgraph.Variable {
	all := outputs[:len(outputs):len(outputs)]
	for _, v := range outputs {
		for d, n := range tensor.NewShapes().Shape(v) {
			if k := tensor.TypeOf(v).Dim(d); k != tensor.Unknown {
				n = tensor.Int(k)
			}
			all = append(all, n)
		}
	}
	return all
}

func runNumPy(t *testing.T, inputs []*fgraph.Variable, args []*array.Array, outputs []*fgraph.Variable, optimizer *optdb.Optimizer) ([]*array.Array, error) {
	opts := exec.FunctionOptions{Check: true, MaxBytes: 1 << 30}
	if optimizer != nil {
		opts.Optimizer = optimizer
	}
	f, err := exec.NewFunction(t.Context(), inputs, outputs, opts)
	if err != nil {
		return nil, err
	}
	return f.Call(t.Context(), args...)
}
