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
// Go keeps them. Programs that they start have heaps of their own.
func init() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(300)
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
