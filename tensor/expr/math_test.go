package expr_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/exec"
	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/passes/passtest"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
	"github.com/nnopt/nnopt/tensor/expr"
)

// A mathFile holds the variables and the cases of testdata/math.txt.
type mathFile struct {
	vars  map[string]*array.Array
	cases [][2]string // an expression, and its value or "error" and a text
}

func readMath(t *testing.T) mathFile {
	t.Helper()
	file, err := os.Open("testdata/math.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	m := mathFile{vars: make(map[string]*array.Array)}
	s := bufio.NewScanner(file)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		line := s.Text()
		if text, value, ok := strings.Cut(line, "\t"); ok {
			m.cases = append(m.cases, [2]string{text, value})
		} else if name, value, ok := strings.Cut(line, " = "); ok {
			m.vars[name] = parseArray(t, value)
		} else if line != "" && line[0] != '#' {
			t.Fatalf("%s is neither a variable nor a case", line)
		}
	}
	return m
}

// typeFor returns the type of an array with all sizes, or only those of size 1.
func typeFor(a *array.Array, sizes bool) tensor.Type {
	shape := append([]int{}, a.Shape()...)
	for d, n := range shape {
		if n != 1 && !sizes {
			shape[d] = tensor.Unknown
		}
	}
	return tensor.NewType(a.DType(), shape...)
}

// TestMath compares with values of NumPy and SciPy, as written and optimized.
func TestMath(t *testing.T) {
	m := readMath(t)
	if len(m.cases) < 200 {
		t.Errorf("only %d cases", len(m.cases))
	}
	optimizers := map[string]exec.Optimizer{"as written": nil, "optimized": passtest.Optimizer(t, "+fast_run")}
	for _, sizes := range []bool{true, false} {
		for i, c := range m.cases {
			for how, optimizer := range optimizers {
				if !longtest.Enabled() && (optimizer == nil) != (sizes == (i%2 == 0)) {
					continue
				}
				want, wrong := strings.CutPrefix(c[1], "error ")
				got, err := m.compute(t, c[0], sizes, optimizer)
				switch {
				case wrong && (err == nil || sizes && !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %v, want an error: %s", c[0], err, want)
				case !wrong && err != nil:
					t.Errorf("%s (sizes %v, %s): %v", c[0], sizes, how, err)
				case !wrong:
					if text := differs(got, parseArray(t, want), 2e-13, 1e-2); text != "" {
						t.Errorf("%s (sizes %v, %s): %s", c[0], sizes, how, text)
					}
				}
			}
		}
	}
}

func (m mathFile) compute(t *testing.T, text string, sizes bool, optimizer exec.Optimizer) (*array.Array, error) {
	t.Helper()
	named := make(map[string]*fgraph.Variable)
	for name, a := range m.vars {
		named[name] = fgraph.NewInput(typeFor(a, sizes), name)
	}
	y, err := expr.Default().NewScopeOf(named).ParseOne(text)
	if err != nil {
		return nil, err
	}
	if printed := fgraph.Sprint(0, y); optimizer == nil && !strings.Contains(printed, "...") {
		again, err := expr.Default().NewScopeOf(named).ParseOne(printed[1 : len(printed)-1])
		if err != nil || fgraph.Sprint(0, again) != printed {
			t.Errorf("%s prints as %s, which reads as %v, %v", text, printed, fgraph.Sprint(0, again), err)
		}
	}
	in := tensor.InputsOf(y)
	args := make([]*array.Array, len(in))
	for i, v := range in {
		args[i] = m.vars[v.Name()]
	}
	f, err := exec.NewFunction(t.Context(), in, []*fgraph.Variable{y}, exec.FunctionOptions{Optimizer: optimizer, Check: true})
	if err != nil {
		return nil, err
	}
	out, err := f.Call(t.Context(), args...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}
