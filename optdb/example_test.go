package optdb_test

import (
	"context"
	"fmt"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/profile"
	"github.com/nnopt/nnopt/rewrite"
)

func Example() {
	nothing := rewrite.FromFunc("nothing", "", nil, func(context.Context, *fgraph.FunctionGraph, *profile.Recorder) error { return nil })
	db := optdb.NewSequenceDB("optdb")
	db.Add(
		optdb.Entry{Name: "elemwise_inplace", Doc: "Overwrites what is not read again.", Rewriter: nothing, Position: 75, Tags: []string{"fast_run", "inplace"}},
		optdb.Entry{Name: "merge1", Doc: "Unites what is computed twice.", Rewriter: nothing, Position: 0, Tags: []string{"fast_run", "merge"}},
	)
	q, _ := optdb.ParseQuery("+fast_run -inplace")
	optimizer, err := db.Build(q)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range optimizer.Entries() {
		fmt.Println(e.Position, e.Name, e.Doc)
	}
	fmt.Println(optimizer.Explain("elemwise_inplace"))
	_, err = db.Build(q.Excluding("marge"))
	fmt.Println(err)
	// Output:
	// 0 merge1 Unites what is computed twice.
	// elemwise_inplace: not selected: excluded by -inplace
	// optdb: query +fast_run -inplace -marge: unknown tag -marge, did you mean merge?
}
