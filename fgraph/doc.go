// Package fgraph represents computations as graphs that can be rewritten.
//
// A [Variable] is a value: an input, a constant, or an output of an [Apply], which is an [Op]
// applied to variables. A [FunctionGraph] owns the applies and variables between its inputs and
// its outputs. It knows the clients of every variable, makes replacements as transactions,
// prunes what becomes unused, and tells its features about every change. The terms are
// Theano's.
//
// A [Feature] accompanies a graph. It keeps a record ([NodeFinder], [History], [FullHistory],
// [PrintListener]) or rejects invalid states ([DestroyHandler], [Supervise],
// [NoOutputFromInplace]). [FunctionGraph.ReplaceValidate] undoes a replacement that a feature
// objects to, and a [Guard] is asked before every change. The graph knows which pass is changing
// it, and who brought in each apply.
//
// The package knows no particular op. It asks ops through the optional interfaces [OpEqualer],
// [Viewer], [RegionViewer], [Destroyer] and [AliasTolerator], and types through [DataEqualer]
// and [DataFormatter]. It does not decide what to replace; package rewrite does.
//
// The cost of a replacement is proportional to what it changes, not to the size of the graph:
// variables know their clients, local repairs maintain a topological order, and nothing
// recurses. Applies and variables have dense numbers, so tables beside a graph are slices. These
// numbers, the order of clients and all printed text depend only on the history of the graph.
//
// A graph and everything in it (applies, variables and features) is confined to one goroutine at
// a time. Concurrent use is not safe even for readers. Ops, types and the data of constants are
// shared between graphs and must not change.
package fgraph
