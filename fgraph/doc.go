// Package fgraph holds computations as graphs that can be rewritten.
//
// A [Variable] is a value: an input, a constant, or the output of an [Apply],
// which is an [Op] applied to variables. A [FunctionGraph] owns the applies and
// variables between its inputs and its outputs. It knows who reads what, makes
// replacements as transactions, keeps everything that nobody reads out, and
// tells its features what happens. The words are Theano's.
//
// A [Feature] accompanies a graph: it keeps a record ([NodeFinder], [History],
// [FullHistory], [PrintListener]) or objects to states that must not be
// ([DestroyHandler], [Supervisor], [NoOutputFromInplace]). [ReplaceValidate]
// makes replacements that are undone if any feature objects, and a [Guard] is
// asked before every change. The graph knows which pass changes it, and by whom
// each apply was brought in.
//
// The package knows no op. What it needs to know of one it asks through the
// optional interfaces [OpEqualer], [Viewer], [RegionViewer], [Destroyer] and
// [AliasTolerator]; of a type through [DataEqualer] and [DataFormatter]. It does
// not decide what to replace: that is the business of package rewrite.
//
// A replacement costs in proportion to what it changes, whatever the size of the
// graph: clients are kept in the variables, a topological order is kept up by
// local repairs, and nothing recurses. Numbers of applies and variables are
// dense, so that tables beside a graph are slices. They, the order of clients,
// and everything that is printed follow from the history of the graph alone.
//
// A graph, with all that belongs to it (its applies, variables and features), is
// for one goroutine at a time. To use it from two goroutines at once is forbidden
// even if both only read: nothing promises that reading leaves no traces. Ops,
// types and the data of constants are shared by graphs and must not change.
package fgraph
