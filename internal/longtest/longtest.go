// Package longtest gives the tests that import it the flag -long. Without it, go test ./... is done
// in a minute: random tests try a fixed few seeds, and searches look at a part. With it, they do
// all that they can. A package whose tests don't import longtest has no such flag:
//
//	go test ./passes/tensorpass -long
package longtest

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"
)

var long = flag.Bool("long", false, "run the whole of searches and random tests")

// Tests allocate much and keep little: the collector took a quarter of their processor time in the small heap to which
// Go keeps them, and a tenth with a percentage alone. So it counts something that is never touched, takes no memory
// therefore, and lets the heap grow to 128 MB before it first looks. A limit of memory without a percentage would do
// so, too, but tests that keep more than the limit would do nothing but collect.
var untouched []byte

func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
		untouched = make([]byte, 32<<20)
	}
}

// Enabled reports whether the flag -long is set.
func Enabled() bool { return *long }

// Only skips a test unless the flag -long is set.
func Only(t testing.TB) {
	t.Helper()
	if !*long {
		t.Skip("takes long; runs with -long")
	}
}

// Of returns all with the flag -long, and otherwise few, as the number of seeds or cases to try.
func Of(few, all int) int {
	if *long {
		return all
	}
	return few
}
