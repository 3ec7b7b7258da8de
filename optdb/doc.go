// Package optdb holds databases of optimizations, from which queries select.
//
// A [SequenceDB] has entries at positions: graph rewriters and other databases. An
// [EquilibriumDB] has node rewriters, which are applied until none of them fires,
// and graph rewriters that take part in each of its passes. A [TopoDB] has
// node rewriters for one walk over the graph. A [GroupDB] has node rewriters that join
// those of the database it is registered in. The set of kinds is open: a [Driver] makes
// a [DB] one of another kind, such as the databases of package passes/saturate, whose
// rules collect what they say about a graph instead of replacing.
//
// An [Entry] has a name and any number of tags. The name belongs to the entry, not
// to the rewriter. It acts as a tag, too, and so does the name of the database. A
// [Query] selects by tags, and [SequenceDB.Build] makes an [Optimizer] of what it
// selects, which can be printed and explains why an entry is not in it.
//
// To add to an existing database, such as the standard one,
// register into it, or into a database inside it:
//
//	db.Register("simplify", walk, 0.5, "fast_run")
//	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
//	err = canonicalize.Register("local_simplify", rule, "fast_run")
//
// The order of registration means nothing, except that a database must be in its
// place before it gets in-place rewriters. Entries run by position. A [Constraint]
// declares an order that has a reason: it is checked against the positions, and
// orders entries at the same position. Names order the rest.
//
// An entry may be for graphs of one dialect, such as those of tensors, see
// fgraph.DialectType. On other graphs an optimizer skips it: it takes no time and
// does not appear in the profile.
//
// A query enters a nested database if it selects the database by its tags, as in
// Theano, and then applies to the entries in it: +tag does not reach entries in a
// database that lacks the tag. That way a mode such as fast_compile leaves out
// whole databases, regardless of the tags of their entries. The name of an entry, as
// opposed to a tag, opens all databases around it, and a subquery decides by itself
// what to select in a database.
//
// Instead of selecting, a query may list what runs as a pipeline, see [ParsePipeline], and
// it may change settings of rewriters that are rewrite.Configurable. What any query
// selects prints as a pipeline, see [Optimizer.Pipeline].
//
// A registration returns all its faults, and then leaves the database unchanged.
// Only a constraint against an entry that is not registered yet is left to
// [SequenceDB.Check] and [SequenceDB.Build].
//
// The package is no collection of optimizations: databases are made by functions,
// and the standard one by package passes. Registration is for one goroutine at a
// time. A database that does not change any more may be queried by several
// goroutines at once. A [Query] is an immutable value. An [Optimizer] may run in
// several goroutines at once, on a graph each; a graph may not be shared, see
// package fgraph.
package optdb
