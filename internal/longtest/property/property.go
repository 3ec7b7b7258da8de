// Package property checks properties with package rapid, and tries fewer cases unless the flag -long
// is set. It is not part of longtest, because rapid holds templates, and with them a linker keeps the
// exported methods of all types: the tests of exec/session alone take a tenth longer to be linked.
package property

import (
	"flag"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/nnopt/nnopt/internal/longtest"
)

// Check is rapid.Check, with a tenth of the cases unless the flag -long or -rapid.checks is set.
func Check(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	fewer.Do(func() {
		given := false
		flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
		if !longtest.Enabled() && !given {
			flag.Set("rapid.checks", "10")
		}
	})
	rapid.Check(t, property)
}

var fewer sync.Once
