// Package profile records what a run of rewriters did and what it cost, and
// reports it.
//
// A [Recorder] builds a tree of [Record], one per run of a rewriter: its time, the
// size of the graph before and after, the time in validation, callbacks and
// sorting, the rules that it tried and the passes that it made. A nil *Recorder is
// switched off: all methods return at once, so that drivers record without asking.
//
// A [Function] is a profile with what happens around the optimizer. It can be
// written in the layout of Theano's "Optimizer Profile" ([Function.WriteText], and
// [Record.WriteText] for the optimizer alone), as JSON, as a Chrome or Perfetto
// trace, by package profile/pprof for "go tool pprof", and by package tool/internal/view as an HTML
// page. [Merge] adds several runs, and [WriteDiff] compares two.
//
// The package knows nothing about graphs or rewriters, and does not time anything by
// itself. A Recorder belongs to one goroutine. Several goroutines may read a Record
// that is complete.
package profile
