// Package profile records what a run of rewriters did and what it cost, and
// reports it.
//
// A [Recorder] builds a tree of [Record], one per rewriter run: its time, the
// size of the graph before, after and at most, the time in validation,
// callbacks and sorting, the rules it tried and the passes it made. A nil
// *Recorder is a recorder that is off: every method returns at once, so that
// drivers record without asking.
//
// What is recorded can be printed in the layout of Theano's "Optimizer
// Profile" ([Record.WriteText], and [Function.WriteText] for the lines that
// stand above it), and written as JSON, as a self-contained HTML page, as a
// Chrome or Perfetto trace and, by the package profile/pprof, for
// "go tool pprof". [Merge] adds several runs, [Diff] compares two, and
// [Record.Check] holds a record against its own arithmetic.
//
// The package knows nothing about graphs or rewriters. A Recorder belongs to
// one goroutine; a finished Record may be shared between readers.
package profile
