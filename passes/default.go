package passes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/rewrite"
)

// Default assembles the standard database. It panics if its table contradicts itself, which the
// tests rule out.
func Default() *optdb.SequenceDB {
	db, err := assemble(table())
	if err != nil {
		panic(fmt.Sprintf("passes: the standard database: %v", err))
	}
	return db
}

// An adder is a database.
type adder interface{ Add(...optdb.Entry) error }

// assemble makes a database of the rows of a table.
func assemble(rows []row) (*optdb.SequenceDB, error) {
	db := optdb.NewSequenceDB("default")
	databases := map[string]adder{"": db}
	known := rewriters()
	var faults []error
	for _, r := range rows {
		if in, ok := r.rewriter.(adder); ok {
			databases[r.name] = in
		}
		if r.rewriter == nil {
			r.rewriter = known[r.name]
		}
		faults = append(faults, databases[r.in].Add(optdb.Entry{
			Name: r.name, Doc: r.doc, Rewriter: r.rewriter, Position: r.position, Tags: strings.Fields(r.tags + " " + r.dialect),
			Cleanup: r.cleanup, Dialect: r.dialect, Before: r.before.constraints(), After: r.after.constraints(),
		}))
	}
	return db, errors.Join(append(faults, db.Check())...)
}

// rewriters returns the rules and passes of package nnet3pass by name.
func rewriters() map[string]any {
	known := make(map[string]any)
	for _, r := range nnet3pass.Rules() {
		known[r.Name] = r
	}
	for _, p := range nnet3pass.Passes() {
		known[rewrite.NameOf(p)] = p
	}
	return known
}
