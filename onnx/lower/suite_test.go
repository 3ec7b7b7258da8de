package lower_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/onnx/lower"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
	"github.com/nnopt/nnopt/tensor/array"
)

// suite is where Debian's libonnx-testdata has ONNX's own tests.
const suite = "/usr/include/onnx/backend/test/data/"

// least is how many tests of each kind have to pass.
var least = map[string]int{"node": 803, "simple": 7, "pytorch-converted": 78, "pytorch-operator": 35}

var cases = flag.String("cases", "", "a folder of further cases, all of which have to agree")

// TestCases runs the cases of a folder.
func TestCases(t *testing.T) {
	if *cases == "" {
		t.Skip("without -cases")
	}
	folders, err := filepath.Glob(*cases + "/*/model.onnx")
	if err != nil || len(folders) == 0 {
		t.Fatal(err)
	}
	for _, query := range []string{"none", "fast_run", "debug"} {
		opt := build(t, query)
		for _, f := range folders {
			if err := runFolder(t.Context(), filepath.Dir(f), opt, false); err != nil {
				t.Errorf("%s under %s: %.500v", filepath.Base(filepath.Dir(f)), query, err)
			}
		}
	}
}

func build(t *testing.T, query string) *optdb.Optimizer {
	t.Helper()
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := passes.Default().Build(q)
	if err != nil {
		t.Fatal(err)
	}
	return opt
}

// TestSuite runs ONNX's own tests, as they are and optimized.
func TestSuite(t *testing.T) {
	if _, err := os.Stat(suite); err != nil {
		t.Skip("there are no tests of ONNX")
	}
	for _, kind := range slices.Sorted(maps.Keys(least)) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			folders, err := filepath.Glob(suite + kind + "/*")
			if err != nil || len(folders) == 0 {
				t.Fatal(err)
			}
			for _, query := range []string{"none", "fast_run"} {
				runFolders(t, kind, folders, query, false)
			}
			runFolders(t, kind, folders, "none", true)
		})
	}
}

// runFolders runs tests of a kind with the passes of a query.
func runFolders(t *testing.T, kind string, folders []string, query string, again bool) {
	opt := build(t, query)
	passed, reasons := 0, make(map[string][]string)
	for i := 0; i < len(folders); i++ {
		if err := runFolder(t.Context(), folders[i], opt, again); err != nil {
			text, _, _ := strings.Cut(err.Error(), "\n")
			reasons[text] = append(reasons[text], filepath.Base(folders[i]))
		} else {
			passed++
		}
	}
	t.Logf("%s: %d of %d", query, passed, len(folders))
	for _, text := range slices.Sorted(maps.Keys(reasons)) {
		t.Logf("%s: %v", text, reasons[text])
	}
	if passed < least[kind] {
		t.Errorf("%s: %d pass, and %d did", query, passed, least[kind])
	}
}

// rewritten returns the model that is written of the graph of nodes of a model.
func rewritten(m *onnx.Model, dir string) (*onnx.Model, error) {
	g, err := ir.Import(m, ir.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	// A change that changes nothing, since without any the model itself would be written.
	n := len(g.Outputs())
	if err := errors.Join(g.AddOutput(g.Outputs()[0], fgraph.Reason{}), g.RemoveOutput(n, fgraph.Reason{})); err != nil {
		return nil, err
	}
	return ir.Export(g)
}

// runFolder runs a test of ONNX. If again is set, the model is first written again.
func runFolder(ctx context.Context, folder string, opt *optdb.Optimizer, again bool) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("PANIC: %v", p)
		}
	}()
	m, err := onnx.ReadFile(filepath.Join(folder, "model.onnx"))
	if err != nil {
		return err
	}
	if again {
		if m, err = rewritten(m, folder); err != nil {
			return fmt.Errorf("written again: %w", err)
		}
	}
	sets, _ := filepath.Glob(folder + "/test_data_set_*")
	for _, set := range sets {
		inputs := make(map[string]*array.Array)
		names := inputNames(m)
		for i := 0; ; i++ {
			a, err := readTensor(fmt.Sprintf("%s/input_%d.pb", set, i))
			if os.IsNotExist(err) {
				break
			}
			if err != nil {
				return err
			}
			if i >= len(names) {
				return fmt.Errorf("there are more values than inputs")
			}
			inputs[names[i]] = a
		}
		f, err := lower.Model(ctx, m, lower.Options{Dir: folder, Optimizer: opt}, inputs)
		if err != nil {
			return err
		}
		got, err := f.Call(ctx, inputs)
		if err != nil {
			return err
		}
		for i, out := range m.Graph.Outputs {
			want, err := readTensor(fmt.Sprintf("%s/output_%d.pb", set, i))
			if err != nil {
				return err
			}
			if d := differ(got[out.Name], want); d != "" {
				return fmt.Errorf("DIFFERS: %s", d)
			}
		}
	}
	return nil
}

// inputNames returns those of the inputs that have values in tests: without initializers.
func inputNames(m *onnx.Model) []string {
	initial := make(map[string]bool)
	for _, t := range m.Graph.Initializers {
		initial[t.Name] = true
	}
	var names []string
	for _, in := range m.Graph.Inputs {
		if !initial[in.Name] {
			names = append(names, in.Name)
		}
	}
	return names
}

func readTensor(name string) (*array.Array, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := onnx.ParseTensor(data)
	if err != nil {
		return nil, err
	}
	return lower.ArrayOf(t, filepath.Dir(name))
}

// differ compares as the runner of ONNX does, or by the norm.
func differ(got, want *array.Array) string {
	if got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()) {
		return fmt.Sprintf("%v %v, not %v %v", got.DType(), got.Shape(), want.DType(), want.Shape())
	}
	// Where a large tensor has tiny elements, an error of 1e-4 of the norm will do as well.
	error2, norm2 := 0.0, 0.0
	for i := range got.Len() {
		d := got.Float(i) - want.Float(i)
		error2, norm2 = error2+float64(d*d), norm2+float64(want.Float(i)*want.Float(i))
	}
	if error2 <= 1e-8*norm2 {
		return ""
	}
	for i := range got.Len() {
		x, y := got.Float(i), want.Float(i)
		if x == y || x != x && y != y {
			continue
		}
		if !(math.Abs(x-y) <= 1e-7+1e-3*math.Abs(y)) {
			return strings.TrimSpace(fmt.Sprintf("element %d is %g, not %g", i, x, y))
		}
	}
	return ""
}
