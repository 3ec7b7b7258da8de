package optdb_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

func nothing(name string, position float64, tags ...string) optdb.Entry {
	rewriter := rewrite.FromFunc(name, "Does "+name+".", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })
	return optdb.Entry{Name: name, Rewriter: rewriter, Position: position, Tags: tags}
}

// A subquery has the last word in a nested database.
func ExampleQuery() {
	blas := optdb.NewSequenceDB("blas")
	blas.Add(nothing("gemm", 0, "fast_run"), nothing("ger", 1, "fast_run", "rare"))
	db := optdb.NewSequenceDB("db")
	db.Add(nothing("merge1", 0, "fast_run"), nothing("fold", 2, "fast_run", "rare"))
	db.Add(optdb.Entry{Name: "blas", Doc: "Makes calls of the BLAS.", DB: blas, Position: 1, Tags: []string{"fast_run"}})
	for _, text := range []string{"+fast_run", "+fast_run -rare", "+fast_run blas(+fast_run -rare)", "+fast_run <1"} {
		q, err := optdb.ParseQuery(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		o, err := db.Build(q)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Print(text, " ->")
		for _, e := range o.Entries() {
			fmt.Print(" ", e.Path)
		}
		fmt.Println()
	}
	// Output:
	// +fast_run -> merge1 blas blas/gemm blas/ger fold
	// +fast_run -rare -> merge1 blas blas/gemm
	// +fast_run blas(+fast_run -rare) -> merge1 blas blas/gemm fold
	// +fast_run <1 -> merge1
}

// An order that has a reason is declared, and holds for any positions.
func ExampleConstraint() {
	db := optdb.NewSequenceDB("db")
	fuse := nothing("fuse", 1, "fast_run")
	fuse.After = []optdb.Constraint{{Name: "fold", Reason: "a constant in the middle keeps two ops apart"}}
	db.Add(fuse, nothing("fold", 1, "fast_run"))
	o, _ := db.Build(optdb.Include("fast_run"))
	fmt.Println(o.Passes(""))

	late := optdb.NewSequenceDB("late")
	fmt.Println(late.Add(fuse, nothing("fold", 2, "fast_run")))
	// Output:
	// [fold fuse]
	// optdb: late/fuse: wrong order: it is at 1 and must run after fold, which is at 2, because a constant in the middle keeps two ops apart
}

// Explain says why an entry is part of an optimizer, or is not.
func ExampleOptimizer_Explain() {
	db := optdb.NewSequenceDB("db")
	db.Add(nothing("merge1", 0, "fast_run"), nothing("elemwise_inplace", 75, "fast_run", "inplace"), nothing("slow", 3, "expensive"))
	o, _ := db.Build(optdb.Include("fast_run").Excluding("inplace"))
	for _, name := range []string{"merge1", "elemwise_inplace", "slow", "merg1"} {
		fmt.Println(o.Explain(name))
	}
	// Output:
	// merge1: selected by +fast_run
	// elemwise_inplace: not selected: excluded by -inplace
	// slow: not selected: no tag of +fast_run, its tags are slow db expensive
	// merg1: unknown: no entry of that name in db, did you mean merge1?
}
