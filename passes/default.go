package passes

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/passes/nnet3pass"
	"github.com/nnopt/nnopt/passes/tensorpass"
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

// assemble makes a database of the rows of a table.
func assemble(rows []row) (*optdb.SequenceDB, error) {
	db := optdb.NewSequenceDB("default")
	type database interface{ Add(...optdb.Entry) error }
	databases, order := map[string]database{"": db}, []string{""}
	entries, known := make(map[string][]optdb.Entry), rewriters()
	var faults []error
	for _, r := range rows {
		if in, ok := r.rewriter.(database); ok {
			databases[r.name], order = in, append(order, r.name)
		}
		switch {
		case r.rewriter != nil:
		case r.dialect == tensors:
			r.rewriter = tensorpass.Pass(r.name)
		default:
			r.rewriter = known[r.name]
		}
		if databases[r.in] == nil {
			faults = append(faults, fmt.Errorf("%s: no row before it is a database %s", r.name, r.in))
		}
		entries[r.in] = append(entries[r.in], optdb.Entry{
			Name: r.name, Doc: r.doc, Rewriter: r.rewriter, Position: r.position, Tags: strings.Fields(r.tags + " " + r.dialect),
			Cleanup: r.cleanup, Dialect: r.dialect, Before: r.before.constraints(), After: r.after.constraints(),
		})
	}
	for _, name := range order {
		faults = append(faults, databases[name].Add(entries[name]...))
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
		known[rewrite.Outline(p).Name] = p
	}
	return known
}
