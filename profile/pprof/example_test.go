package pprof_test

import (
	"fmt"
	"time"

	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/profile/pprof"
)

// The time of a rewriter is divided among its rules, and the rest is its own.
func ExampleNew() {
	p := pprof.New(&profile.Record{
		Name: "canonicalize", Class: profile.ClassEquilibrium, Time: 5 * time.Second,
		Rules: []profile.RuleRecord{{Name: "local_mul_canonizer", Attempts: 9, Applied: 2, Time: 3 * time.Second}},
	})
	for _, s := range p.Sample {
		fmt.Println(s.Location[0].Line[0].Function.Name, time.Duration(s.Value[0]))
	}
	// Output:
	// local_mul_canonizer 3s
	// canonicalize 2s
}
