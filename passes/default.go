package passes

import (
	"fmt"

	"github.com/nnopt/nnopt/optdb"
	"github.com/nnopt/nnopt/rewrite"
)

// Tags that queries use most.
const (
	fastRun     = "fast_run"     // part of the mode for results that are computed often
	fastCompile = "fast_compile" // part of the mode for results that are computed once
	inplace     = "inplace"      // makes ops that destroy an input
	reassoc     = "reassoc"      // changes the order of sums, and so the last bits of a result
)

// standard is the database in the making.
type standard struct {
	db                       *optdb.SequenceDB
	canonicalize, specialize *optdb.EquilibriumDB
	errs                     []error
}

// entry adds an entry to the sequence. doc may be empty where the rewriter documents itself.
func (s *standard) entry(position float64, name, doc string, r rewrite.GraphRewriter, tags ...string) {
	s.errs = append(s.errs, s.db.Add(optdb.Entry{Name: name, Doc: doc, Rewriter: r, Position: position, Tags: tags}))
}

// group adds a database to the sequence.
func (s *standard) group(position float64, doc string, db *optdb.EquilibriumDB, tags ...string) {
	s.errs = append(s.errs, s.db.Add(optdb.Entry{Name: db.Name(), Doc: doc, DB: db, Position: position, Tags: tags}))
}

// rule adds a rule to a group, under its own name.
func (s *standard) rule(group *optdb.EquilibriumDB, r rewrite.Rule, tags ...string) {
	s.errs = append(s.errs, group.Register(r.Name, r, tags...))
}

// Default assembles the standard database. It panics if its tables contradict themselves, which the tests rule out.
func Default() *optdb.SequenceDB {
	s := &standard{
		db:           optdb.NewSequenceDB("default"),
		canonicalize: optdb.NewEquilibriumDB("canonicalize"),
		specialize:   optdb.NewEquilibriumDB("specialize"),
	}
	merge := new(rewrite.Merge)
	s.entry(0, "merge1", "the same computation twice becomes one, at first", merge, fastRun, fastCompile, "merge")
	s.group(1, "brings the graph into a simple normal form", s.canonicalize, fastRun, fastCompile)
	s.group(2, "replaces computations by cheaper special ones", s.specialize, fastRun)
	s.entry(49, "merge2", "the same computation twice becomes one, after the simplifications", merge, fastRun, "merge")
	s.entry(49.5, "add_destroy_handler", "", rewrite.AddDestroyHandler(), fastRun, fastCompile)
	s.entry(100, "merge3", "the same computation twice becomes one, at last", merge, fastRun, "merge")
	s.nnet3()
	s.tensor()
	for _, err := range s.errs {
		if err != nil {
			panic(fmt.Sprintf("passes: the standard database: %v", err))
		}
	}
	return s.db
}
