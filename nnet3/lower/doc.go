// Package lower turns the commands of a computation into a graph of values, and a graph of values
// into commands.
//
// Commands work on matrices: they allocate them, write into parts of them, add to what is there and
// free them, and their order matters. An optimizer that edits commands has to prove for each change
// that nobody else reads or writes in between. [LowerChain] does that once: a command that writes
// gives the cells a new value, a command that reads takes the value that was written last. What is
// left is an [fgraph.FunctionGraph] without memory, order or effects, which package nnet3pass
// rewrites. [Chain.Emit] goes back: it decides on an order, on the matrices that hold the values,
// and on the commands that fill them.
//
// The graph of a segment of a computation is a [Program]; a [Chain] is all of them. A computation
// for training or for one chunk has one segment, a looped one has several.
//
// # Values and ops
//
// A value is a matrix ([MatrixType]), the state of a component ([StateType]: what it learns, its
// statistics), or a memo ([MemoType]: what a forward pass hands to its backward pass). Effects are
// values too: an update takes a state and gives the next one.
//
//   - [Propagate] and [Backprop] run a component.
//   - [Assemble] moves rows and columns: every [Term] takes a part of an input to a part of the
//     result, scaled, and what meets adds up. Append, Sum, Offset, selection and scattering of rows
//     are all of them Assembles.
//   - [RowRanges] sums ranges of rows. [Fill] is a constant. [Block] is a rectangle of a value, as
//     a view.
//
// # Storage
//
// Where a value lives is decided at the end, in a [Storage], a feature of the graph that the passes
// from position 60 on fill: an order of all that has to be done, a slot (a matrix to be) for what
// lives together, and a place in it for each value. From then on the feature refuses rewrites that
// would move a value which has a place. Emission reads what was decided. Without a Storage every
// value gets a matrix of its own.
//
// The package knows components by their properties only, runs nothing and imports no pass. Ops are
// immutable, and may be shared by goroutines; a Program and its graph belong to one goroutine at a
// time.
package lower
