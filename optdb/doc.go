// Package optdb holds databases of optimizations, which queries select from.
//
// A [SequenceDB] has entries at positions: graph rewriters, and other databases.
// An [EquilibriumDB] has node rewriters, which are applied until none of them
// fires, and graph rewriters that take part in each of its passes. A [TopoDB]
// has node rewriters for one walk over the graph, and a [GroupDB] node rewriters
// that join those of the database it is registered in.
//
// An entry has a name and any number of tags. The name belongs to the entry, not
// to the rewriter; it acts as a tag too, and so does the name of its database.
// A [Query] selects by tags, and what it selects is built into an [Optimizer]:
// frozen, printable, and able to explain why an entry is not in it.
//
// A program that adds to a database which somebody else has made, such as the
// standard one, registers into it directly, or into one of those inside of it:
//
//	db.Register("simplify", walk, 0.5, "fast_run")
//	db.Database("canonicalize").(*optdb.EquilibriumDB).Register("local_simplify", rule, "fast_run")
//
// The order of registering means nothing. Entries run by position, those at one
// position by the orders that they declare and by name.
//
// Faults of registering are returned by the call that registers and remembered
// by the database, so that [SequenceDB.Check] and [SequenceDB.Build] report all
// of them together; a database with faults builds nothing.
//
// Databases are made by functions; the package has none of its own. Registering
// is for one goroutine at a time. A database that is no longer registered into
// may be queried by several goroutines at once, a [Query] is a value that does
// not change, and an [Optimizer] may run in several goroutines at once, on a
// graph each. A graph may not be shared, see package fgraph.
package optdb
