// Package passes is the standard database of optimizations. It gives the rewriters of the packages
// below it names, positions and tags, for queries to select from. It has no rewriters of its own.
//
//	db := passes.Default()
//	db.Register("simplify", simplify, 0.5, "fast_run")
//	optimizer, err := db.Build(optdb.Include("fast_run").Excluding("inplace"))
//
// Default makes a new database with each call, so the caller may register into it. To add a rule to a
// group:
//
//	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
//	err = canonicalize.Register("local_simplify", rule, "fast_run")
//
// Optimize optimizes computations of nnet3. Graphs of tensors are optimized by exec.Function.
// OptimizeOptions are Kaldi's switches for the same passes.
//
// All functions may be called by several goroutines at once.
package passes
