package computationtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
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

// References finds the reference computations below root, none if there is no such folder.
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

// Load reads a reference computation, and makes stand-ins for its components.
func Load(t testing.TB, path string) (*computation.Computation, Net) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, infos, err := ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c.NeedModelDerivative = needsModelDerivative(t, path)
	return c, NewNet(infos)
}

// needsModelDerivative reads what the dump of a computation does not tell from the file beside it.
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

// Compare is Same for tests.
func Compare(t testing.TB, net Net, want, got *computation.Computation) {
	t.Helper()
	if err := Same(net, want, got); err != nil {
		t.Fatal(err)
	}
}

// ErrDiffers is the error for computations with different results.
var ErrDiffers = errors.New("computationtest: the computations differ")

// Same runs both computations and compares their results, up to the rounding of float64s.
func Same(net Net, want, got *computation.Computation) error {
	a, b := Interpret(want, net), Interpret(got, net)
	if len(a) != len(b) {
		return fmt.Errorf("%w: %d results, want %d", ErrDiffers, len(b), len(a))
	}
	for _, k := range slices.Sorted(maps.Keys(a)) {
		x, y := a[k], b[k]
		if len(x) != len(y) {
			return fmt.Errorf("%w: %s: %d elements, want %d", ErrDiffers, k, len(y), len(x))
		}
		// As norms: a single element may be near zero by cancellation, and then its relative error
		// says nothing.
		var diff, norm float64
		for i := range x {
			diff += float64((x[i] - y[i]) * (x[i] - y[i]))
			norm += float64(x[i] * x[i])
		}
		if !(math.Sqrt(diff) <= 1e-8*math.Sqrt(norm)) {
			return fmt.Errorf("%w: %s by %g of its norm %g", ErrDiffers, k, math.Sqrt(diff/norm), math.Sqrt(norm))
		}
	}
	return nil
}
