package refcase_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/nnopt/nnopt/exec/pipeline"
	"github.com/nnopt/nnopt/exec/refcase"
	"github.com/nnopt/nnopt/internal/kernel"
	"github.com/nnopt/nnopt/nnet3"
	"github.com/nnopt/nnopt/passes/passtest"
)

const recipes = "../../nnet3/testdata/recipes"

// all is a folder with more reference cases, if it is not empty.
var all = os.Getenv("NNOPT_GOLDEN")

// TestCases runs all available cases, compiled and optimized. It skips and counts networks with
// unsupported components.
func TestCases(t *testing.T) {
	roots := []string{recipes}
	if all != "" {
		roots = []string{filepath.Join(all, "recipes"), filepath.Join(all, "random")}
	}
	ran, unsupported := 0, 0
	for _, root := range roots {
		dirs, err := refcase.Find(os.DirFS(root), ".")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			c, err := refcase.LoadDir(filepath.Join(root, dir))
			if errors.Is(err, nnet3.ErrUnsupported) {
				unsupported++
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", dir, err)
				continue
			}
			ran++
			for _, query := range []string{"none", "+fast_run"} {
				if r := c.Run(t.Context(), query, passtest.Optimizer(t, query)); !r.OK {
					t.Errorf("%s, %s: %v", dir, query, r.Err)
				}
			}
		}
	}
	if ran < 4 {
		t.Errorf("only %d cases ran", ran)
	}
	t.Logf("%d cases ran, %d have components that are not supported", ran, unsupported)
}

// TestBytes runs random networks with inputs that are not needed completely: fewer commands must
// not cost more bytes.
func TestBytes(t *testing.T) {
	above := map[string]bool{
		"r90001_2909": true, // a component that reads some rows keeps all of them, beside a matrix that has nothing to do with it
		"r90001_3881": true, // the input, whose derivative is wanted, is read twice before that, and lives beside it
	}
	root := "../../nnet3/testdata/bytes"
	if all != "" {
		root = filepath.Join(all, "bytes")
	}
	dirs, err := refcase.Find(os.DirFS(root), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		c, err := refcase.Load(os.DirFS(filepath.Join(root, dir)), dir)
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		r := c.Run(t.Context(), "+fast_run", passtest.Optimizer(t, "+fast_run"))
		switch {
		case !r.OK:
			t.Errorf("%s: %v", dir, r.Err)
		case r.Commands >= r.KaldiCommands:
			t.Errorf("%s: %d commands, Kaldi has %d", dir, r.Commands, r.KaldiCommands)
		case r.MaxMemoryBytes > r.KaldiMaxMemoryBytes != above[dir]:
			t.Errorf("%s: at most %d bytes, Kaldi has %d; expected more: %t", dir, r.MaxMemoryBytes, r.KaldiMaxMemoryBytes, above[dir])
		}
	}
}

func TestFind(t *testing.T) {
	root := fstest.MapFS{
		"b/case.json": {}, "a/case.json": {}, "c/other.json": {}, ".hidden/case.json": {}, "a/deeper/case.json": {}, "file": {}, "empty/x": {},
	}
	for _, c := range []struct {
		dir  string
		want []string
	}{{".", []string{"a", "b"}}, {"a", []string{"a"}}, {"a/deeper", []string{"a/deeper"}}} {
		if got, err := refcase.Find(root, c.dir); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("Find(%s) = %q, %v, want %q", c.dir, got, err, c.want)
		}
	}
	if _, err := refcase.Find(root, "empty"); !errors.Is(err, refcase.ErrCase) {
		t.Errorf("a folder without cases: %v", err)
	}
	if _, err := refcase.Find(root, "nowhere"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

func TestCompare(t *testing.T) {
	row := func(v ...float32) kernel.Matrix { return kernel.Matrix{Rows: 1, Cols: len(v), Stride: len(v), Data: v} }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range []struct {
		name        string
		ours, kaldi kernel.Matrix
		relative    float64
		agrees      bool
	}{
		{"equal", row(1, -2), row(1, -2), 0, true},
		{"close", row(3.0001, 4), row(3, 4), 2e-5, true},
		{"far", row(3.003, 4), row(3, 4), 6e-4, false},
		{"rounding of zero", row(1e-7, 0), row(0, 0), 7e-6, true},
		{"not zero", row(1e-4, 0), row(0, 0), 7e-3, false},
		{"NaN on both sides", row(nan, 4), row(nan, 4), 0, true},
		{"NaN here", row(nan, 4), row(3, 4), math.NaN(), false},
		{"NaN there", row(3, 4), row(nan, 4), math.NaN(), false},
		{"infinite on both sides", row(inf, 4), row(inf, 4), 0, true},
		{"infinite here", row(inf, 4), row(3, 4), math.Inf(1), false},
		{"nothing", row(), row(), 0, true},
	} {
		d, err := pipeline.Compare(c.ours, c.kaldi)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := d.Relative()
		same := got == c.relative || math.IsNaN(got) && math.IsNaN(c.relative) || math.Abs(got-c.relative) < 0.05*c.relative
		if !same || d.Agrees(1e-4) != c.agrees {
			t.Errorf("%s: relative %g, want %g; agrees %v, want %v", c.name, got, c.relative, d.Agrees(1e-4), c.agrees)
		}
	}
	if _, err := pipeline.Compare(row(1), row(1, 2)); err == nil {
		t.Error("matrices of different sizes are compared")
	}
	// Gaps between rows don't count.
	wide := kernel.Matrix{Rows: 2, Cols: 1, Stride: 2, Data: []float32{1, nan, 2}}
	if d, err := pipeline.Compare(wide, kernel.Matrix{Rows: 2, Cols: 1, Stride: 1, Data: []float32{1, 2}}); err != nil || d.Norm != 0 {
		t.Errorf("with a stride: %v, %v", d, err)
	}
}

// TestLoadFaults: the error lists all files that are missing or don't fit.
func TestLoadFaults(t *testing.T) {
	load := func(change func(fstest.MapFS)) error {
		folder := fstest.MapFS{}
		entries, err := os.ReadDir(filepath.Join(recipes, "tdnnf_infer"))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			data, err := os.ReadFile(filepath.Join(recipes, "tdnnf_infer", e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			folder[e.Name()] = &fstest.MapFile{Data: data}
		}
		change(folder)
		_, err = refcase.Load(folder, "x")
		return err
	}
	if err := load(func(fstest.MapFS) {}); err != nil {
		t.Errorf("nothing changed: %v", err)
	}
	for name, change := range map[string]func(fstest.MapFS){
		"no case":             func(f fstest.MapFS) { delete(f, "case.json") },
		"case is no JSON":     func(f fstest.MapFS) { f["case.json"].Data = []byte("{") },
		"no model":            func(f fstest.MapFS) { delete(f, "model.raw") },
		"no input":            func(f fstest.MapFS) { delete(f, "input_input.mat") },
		"input and output":    func(f fstest.MapFS) { f["input_ivector.mat"] = f["output_output.mat"] },
		"no output, no other": func(f fstest.MapFS) { delete(f, "output_output.mat"); delete(f, "output_output-xent.mat") },
	} {
		if err := load(change); !errors.Is(err, refcase.ErrCase) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
