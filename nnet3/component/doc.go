// Package component holds the component types of nnet3: the layers that networks consist of, a
// family per file.
//
// A [Component] maps a matrix to a matrix; each row belongs to an index (n, t, x). Its methods say
// what a type is; the functions of this package use them. [Registry.New] of [Kaldi] returns an empty
// component of one of Kaldi's types, [Init] makes it from a [ConfigLine], [Registry.Read] reads it
// from a Kaldi model, and [Write], [Info] and [Copy] do what they say. [Propagate] and [Backprop]
// check their arguments and compute. The caller owns the matrices; scratch memory and random numbers are in a [Workspace].
//
// Optional interfaces say what else a component can do. The important ones are [Backpropper], which
// all types of this package implement, [UpdatableComponent] for trainable parameters, [NonSimple]
// and [StatsStorer]. [Properties] says what the compiler and the optimizer have to know.
//
// Components with the property [Simple] map rows to rows. All others implement NonSimple: the
// compiler asks them which input indexes an output index depends on, and once per computation they
// find the rows of these (a [Precomputed]). Unlike Kaldi's, they take rows in any order and without
// padding.
//
// Optimizations make [Derived] components, such as [Product], which share the parameters of a
// component of the network and can't be written to a file.
//
// To add a type, implement Component in a file here, with a method Fields that visits the parts in
// the order of Kaldi's files, and add a line to the registry and a configuration to the tests. A
// program adds a type of its own to a [Registry], by which it reads files and configuration lines.
//
// Natural-gradient types compute the plain gradient. Their settings survive reading and writing.
//
// # Concurrency
//
// Any number of goroutines may call Propagate and Backprop on one component, each with a Workspace
// of its own, and the methods of NonSimple. What changes a component (Init, Read, SetTestMode,
// Prepare, Renew, StoreStats, ZeroStats, SetLearningRate, writing to Params) needs exclusive
// access, and so does the ToUpdate of a [BackwardPass]. ConfigLine, Fields and Workspace belong to
// one goroutine.
//
// The package knows nothing of networks, commands or graphs.
package component
