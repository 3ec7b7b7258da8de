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
//	canonicalize, err := optdb.DatabaseOf[*optdb.EquilibriumDB](db, "canonicalize")
//	err = canonicalize.Register("local_simplify", rule, "fast_run")
//
// The order of registering means nothing, except that a database must be in its
// place before it gets in-place rewriters. Entries run by position, those at one
// position by the orders that they declare and by name.
//
// An entry may be for graphs of one dialect, such as those of tensors, see
// fgraph.DialectType. On other graphs an optimizer skips it: it takes no time and
// leaves no trace in the profile.
//
// A database enters another one that is registered in it if that is selected by
// its own tags, as in Theano, and then applies the same query to what is inside:
// +tag does not reach entries in a database that lacks the tag. A mode such as
// fast_compile leaves out whole databases that way, whatever their entries are
// tagged with. The name of an entry, as opposed to a tag, opens all databases
// around it; a subquery says by itself what to select in a database.
//
// The call that registers returns all faults of what it is given, and then
// leaves the database as it was. Only what it can't know, a declared order
// against an entry that is still to come, is left to [SequenceDB.Check] and
// [SequenceDB.Build].
//
// Databases are made by functions; the package has none of its own. Registering
// is for one goroutine at a time. A database that is no longer registered into
// may be queried by several goroutines at once, a [Query] is a value that does
// not change, and an [Optimizer] may run in several goroutines at once, on a
// graph each. A graph may not be shared, see package fgraph.
package optdb
