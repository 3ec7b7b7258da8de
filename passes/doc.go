// Package passes is the standard database of optimizations: it puts those of the packages below it, and the merges between them,
// under names, at positions and with tags, for queries to select from.
//
//	db := passes.Default()
//	db.Register("simplify", simplify, 0.5, "fast_run")
//	optimizer, err := db.Build(optdb.Include("fast_run").Excluding("inplace"))
//
// Default makes a new database with each call, which is the caller's to register into. A rule joins a group by way of
//
//	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
//	err = canonicalize.Register("local_simplify", rule, "fast_run")
//
// Optimize sends a computation of nnet3 through the graph and back; graphs of tensors are optimized by exec.Function.
package passes
