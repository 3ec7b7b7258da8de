// Package passtest builds optimizers for tests.
package passtest

import (
	"testing"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes"
)

// Optimizer returns what a query selects from the standard database, or ends the test.
func Optimizer(t testing.TB, query string) *optdb.Optimizer {
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
