package ir_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/longtest"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
)

// onnxTests is where Debian's libonnx-testdata has ONNX's own tests.
const onnxTests = "/usr/include/onnx/backend/test/data"

var suite = flag.String("suite", onnxTests, "a folder of folders of tests like ONNX's own")

// leastExact is the share of the results of ONNX's tests that have to be known to the last size. The
// sizes of the others depend on data.
var leastExact = map[string]float64{"constants": 0.94, "symbols": 0.92, "own symbols": 0.88, "declared": 0.85, "ranks": 0.28, "elements": 0.08}

// TestSuite: what is inferred for ONNX's own tests is true of their results, whatever is known of the
// inputs: their types as declared, also with the elements of those that have few integers, and then with
// symbols in place of sizes, one for each number or one for each size, with the number of dimensions
// alone, or without even that.
func TestSuite(t *testing.T) {
	folders, _ := filepath.Glob(*suite + "/*/*/model.onnx")
	if len(folders) == 0 {
		t.Skip("there are no tests of ONNX")
	}
	for _, how := range slices.Sorted(maps.Keys(leastExact)) {
		t.Run(how, func(t *testing.T) {
			s := &score{how: how, vague: make(map[string]int)}
			for i, f := range folders {
				if i%longtest.Of(5, 1) != 0 {
					continue
				}
				m, err := onnx.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				sets, _ := filepath.Glob(filepath.Dir(f) + "/test_data_set_*")
				for _, set := range sets {
					if err := s.check(m, set); err != nil {
						t.Errorf("%s: %v", filepath.Base(filepath.Dir(f)), err)
					}
				}
			}
			t.Logf("%d of %d results have all sizes, %d of %d tests", s.exact, s.results, s.tests-s.vagueTests, s.tests)
			if least := leastExact[how]; *suite == onnxTests && longtest.Enabled() && float64(s.exact) < least*float64(s.results) {
				t.Errorf("fewer than %g, of nodes %v", least, s.vague)
			}
		})
	}
}

// A score counts results.
type score struct {
	how               string
	exact, results    int
	tests, vagueTests int
	vague             map[string]int
	symbols           map[string]int64
}

// check compares the types of a model's results with what they are in a set of data.
func (s *score) check(m *onnx.Model, set string) error {
	s.symbols = make(map[string]int64)
	w := &walk{operators: ir.Standard(), inputs: make(map[string]*fgraph.Variable)}
	k := 0
	for _, in := range m.Graph.Inputs {
		if slices.ContainsFunc(m.Graph.Initializers, func(t *onnx.Tensor) bool { return t.Name == in.Name }) {
			continue
		}
		x, err := readTensor(fmt.Sprintf("%s/input_%d.pb", set, k))
		if k++; err == nil {
			w.inputs[in.Name] = s.input(in, x)
		}
	}
	scope, err := w.types(m)
	if err != nil {
		return err
	}
	s.tests++
	vague := false
	for k, out := range m.Graph.Outputs {
		v := scope[out.Name]
		if v == nil {
			return fmt.Errorf("there is no %s", out.Name)
		}
		s.results++
		inferred := ir.TypeOf(v)
		if declared := ir.FromProto(out.Type); !inferred.Accepts(declared) && !strings.Contains(s.how, "symbols") {
			return fmt.Errorf("%s is %v, not %v as it is declared", out.Name, inferred, declared)
		}
		x, err := readTensor(fmt.Sprintf("%s/output_%d.pb", set, k))
		if err != nil || !inferred.IsTensor() && !inferred.IsUnknown() {
			continue // a sequence, or optional
		}
		exact, err := s.holds(inferred, x)
		if err != nil {
			return fmt.Errorf("%s is %v, and was inferred as %v: %w", out.Name, ir.TypeOf(ir.Constant(x, "")), inferred, err)
		}
		if exact {
			s.exact++
		} else {
			vague = true
			s.vague[m.Graph.Nodes[len(m.Graph.Nodes)-1].Op]++
		}
	}
	if vague {
		s.vagueTests++
	}
	return nil
}

// input returns an input as much as is to be known of it.
func (s *score) input(in *onnx.ValueInfo, x *ir.Value) *fgraph.Variable {
	t := ir.FromProto(in.Type)
	dims, ranked := t.Shape()
	if !ranked || len(dims) != len(x.Tensor.Dims) {
		return fgraph.NewInput(t, in.Name)
	}
	if _, ok := x.Ints(); s.how != "declared" && s.how != "elements" && (ok || x.Len() <= 4) && x.Len() <= 64 && len(dims) <= 1 {
		return ir.Constant(x, in.Name)
	}
	for i, n := range x.Tensor.Dims {
		if name, ok := dims[i].Symbolic(); ok && !dims[i].IsUnknown() {
			s.symbols[name] = n
		}
		name := fmt.Sprintf("s%d", n)
		switch s.how {
		case "own symbols":
			name = fmt.Sprintf("%s.%d", in.Name, i)
			fallthrough
		case "symbols":
			dims[i] = ir.Symbol(name)
			s.symbols[name] = n
		case "ranks":
			dims[i] = ir.UnknownDim
		}
	}
	if s.how == "elements" {
		return fgraph.NewInput(ir.AnyShape(t.Elem()), in.Name)
	}
	return fgraph.NewInput(ir.NewType(t.Elem(), dims...), in.Name)
}

// holds reports whether a value is of a type, whose symbols are numbers, and whether that says all sizes.
func (s *score) holds(t ir.Type, x *ir.Value) (exact bool, err error) {
	if t.IsUnknown() {
		return false, nil
	}
	// The tests have bfloat16 as uint16.
	if t.Elem() != x.Tensor.DataType && !(t.Elem() == onnx.BFloat16 && x.Tensor.DataType == onnx.Uint16) {
		return false, errors.New("other elements")
	}
	dims, ranked := t.Shape()
	if !ranked {
		return false, nil
	}
	if len(dims) != len(x.Tensor.Dims) {
		return false, errors.New("another number of dimensions")
	}
	exact = true
	for i, d := range dims {
		n, ok := d.Eval(s.symbols)
		if ok && n != x.Tensor.Dims[i] {
			return false, fmt.Errorf("size %v is %d", d, n)
		}
		exact = exact && ok
	}
	if list, ok := t.Data(); ok {
		elements, ok := x.Ints()
		if !ok || len(list) != len(elements) {
			return false, fmt.Errorf("it has %d elements", len(elements))
		}
		for i, d := range list {
			if n, ok := d.Eval(s.symbols); ok && n != elements[i] {
				return false, fmt.Errorf("element %v is %d", d, n)
			}
		}
	}
	return exact, nil
}

func readTensor(name string) (*ir.Value, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := onnx.ParseTensor(data)
	if err != nil {
		return nil, err
	}
	if _, err := t.Data(filepath.Dir(name)); err != nil && t.DataType != onnx.String {
		return nil, err // a sequence
	}
	if t.DataType == onnx.String && len(t.Strings) == 0 {
		return nil, fs.ErrInvalid
	}
	return ir.NewValue(t, filepath.Dir(name)), nil
}
