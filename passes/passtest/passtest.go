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
	key := fmt.Sprintf("%q", append(excluded, query))
	if opt, ok := optimizers.Load(key); ok {
		return opt.(*optdb.Optimizer)
	}
	q, err := optdb.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	opt, err := database().Build(q.Excluding(excluded...))
	if err != nil {
		t.Fatal(err)
	}
	optimizers.Store(key, opt)
	return opt
}

var (
	database   = sync.OnceValue(passes.Default)
	optimizers sync.Map // *optdb.Optimizer by query
)
