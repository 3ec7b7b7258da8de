// Package lower turns the commands of a computation into a graph of values, and back.
//
// Commands allocate matrices, write parts of them, add to them and free them, in an order that
// matters. An optimizer that edits commands has to prove for each change that nothing reads or
// writes in between. [LowerChain] removes memory and order once: a command that writes defines a
// value, a command that reads uses the value written last. The result is an
// [fgraph.FunctionGraph], which package nnet3pass rewrites. [Chain.Emit] goes back: it chooses an
// order, the matrices that hold the values, and the commands that fill them.
//
// A [Program] is the graph of one segment of a computation, a [Chain] those of all. A computation
// for training or for a single chunk has one segment, a looped one has several.
//
// # Values and ops
//
// A value is a matrix ([MatrixType]), the state of a component ([StateType]: what it learns, its
// statistics), or a memo ([MemoType]: what a forward pass keeps for its backward pass). Effects are
// values, too: an update takes a state and returns the next one.
//
//   - [Propagate] and [Backprop] run a component.
//   - [Assemble] moves rows and columns: every [Term] adds a scaled part of an input to a part of
//     the result. Append, Sum, Offset, selection and scattering of rows are Assembles.
//   - [RowRanges] sums ranges of rows, [Fill] is a constant, [Block] is a view of a rectangle.
//
// # Storage
//
// The passes from position 60 on decide in a [Storage] where values live: the schedule, the slots
// (matrices to be) that values share, and the position of each value in its slot. From then on the
// graph can't change. Emission only reads these decisions.
//
// # Files
//
// [Dialect] is how graphs of computations are written to graph files, with their programs and
// storages. What is read emits the same commands as what was written.
//
// The package knows only properties of components, runs nothing and imports no pass. Ops are
// immutable and safe for concurrent use; a Program, its graph and its Storage are not.
package lower
