// Package passtest builds optimizers for tests.
package passtest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// Optimizer returns what a query selects from the standard database without some tags, or ends the test. Tests of
// a program that ask for the same get the same, which makes its rules once.
func Optimizer(t testing.TB, query string, excluded ...string) *optdb.Optimizer {
	t.Helper()
	return built(t, fmt.Sprintf("%q", append(excluded, query)), query, func(q optdb.Query) optdb.Query { return q.Excluding(excluded...) })
}

// ForModels is Optimizer for models of ONNX, see passes.ForModels.
func ForModels(t testing.TB, query string) *optdb.Optimizer {
	t.Helper()
	return built(t, query, query, passes.ModelQuery)
}

func built(t testing.TB, key, query string, change func(optdb.Query) optdb.Query) *optdb.Optimizer {
	t.Helper()
	mu.Lock()
	defer mu.Unlock()
	if opt, ok := optimizers[key]; ok {
		return opt
	}
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := database().Build(change(q))
	if err != nil {
		t.Fatal(err)
	}
	optimizers[key] = opt
	return opt
}

var (
	database   = sync.OnceValue(passes.Default)
	mu         sync.Mutex
	optimizers = map[string]*optdb.Optimizer{} // by query
)
