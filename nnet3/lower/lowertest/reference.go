package lowertest

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nnopt/nnopt/nnet3/computation"
)

// Reference is a computation that Kaldi compiled.
type Reference struct {
	Name string
	Path string
	Full bool // too large to be interpreted
}

// References finds the reference computations: none where the folder with them is not there.
func References(t testing.TB, root string) []Reference {
	var refs []Reference
	for _, pattern := range []string{"golden/recipes/*/computation.json", "golden/random/*/computation.json", "models/computations/*.compiled.json"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			name := filepath.Base(filepath.Dir(p))
			full := name == "computations"
			if full {
				name = strings.TrimSuffix(filepath.Base(p), ".compiled.json")
			}
			refs = append(refs, Reference{name, p, full})
		}
	}
	return refs
}

// Load reads a reference computation, and stand-ins for its components.
func Load(t testing.TB, path string) (*computation.Computation, Net) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, infos, err := computation.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c.NeedModelDerivative = needsModelDerivative(t, path)
	return c, NewNet(infos)
}

// needsModelDerivative reads from beside the computation what its dump does not say.
func needsModelDerivative(t testing.TB, path string) bool {
	data, err := os.ReadFile(filepath.Join(filepath.Dir(path), "case.json"))
	if err != nil {
		return strings.Contains(path, "train") // a full-size network
	}
	var c struct {
		NeedModelDerivative bool `json:"need_model_derivative"`
	}
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	return c.NeedModelDerivative
}

// Compare runs both computations and reports the largest relative difference of an output.
func Compare(t testing.TB, net Net, want, got *computation.Computation) {
	t.Helper()
	a, err := Interpret(want, net)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Interpret(got, net)
	if err != nil {
		t.Fatal(err)
	}
	if len(a) != len(b) {
		t.Fatalf("%d results, want %d", len(b), len(a))
	}
	for k, x := range a {
		y := b[k]
		if len(x) != len(y) {
			t.Fatalf("%s: %d elements, want %d", k, len(y), len(x))
		}
		var diff, norm float64
		for i := range x {
			diff += (x[i] - y[i]) * (x[i] - y[i])
			norm += x[i] * x[i]
		}
		if !(math.Sqrt(diff) <= 1e-8*math.Sqrt(norm)) {
			t.Fatalf("%s differs by %g of its norm %g", k, math.Sqrt(diff/norm), math.Sqrt(norm))
		}
	}
}
