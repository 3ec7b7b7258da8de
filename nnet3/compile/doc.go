// Package compile is the compiler of nnet3: it turns a network and a request into commands. It
// neither optimizes nor runs them; see packages passes and exec.
//
// [Compile] is the way in for one request, [Segments] for several in a row, [Looped] for endless
// input. [Context] finds out how much input an output needs.
//
// Compilation takes these steps, a file or two each:
//
//   - network.go, terms.go: the network, with flattened descriptors;
//   - builder.go, prune.go: the computation graph, from the outputs backward. Its vertices are
//     Cindexes (rows of nodes). The builder finds out which of them can be computed from the
//     inputs; this ends the recurrence of recurrent networks. explain.go says what is missing for
//     an output;
//   - phases.go: the order of computation. Nodes that depend on each other, the strongly
//     connected components of the network, form an epoch. In a recurrent epoch, rows that can be
//     computed together form a phase;
//   - steps.go: each phase of a node becomes a step, with a matrix for its values and perhaps one
//     for its derivatives;
//   - emit.go, forward.go, backward.go, locations.go: steps become commands.
//
// A minibatch of sequences that are alike is compiled as one sequence (lanes, in steps.go), with the
// same result as without this shortcut.
//
// The computations are those that Kaldi compiles, command for command, except for the order where
// it does not matter and for padding, which our components do not need. Where Kaldi's results are
// questionable, ours differ:
//
//   - All requests with sequences that are alike take the shortcut, whatever the order of their
//     rows and the numbers of their sequences.
//   - Looped considers how long rows stay in use, and the times of matrices that look alike. Kaldi
//     may close a loop too early if a recurrence spans many chunks.
//   - WithIvectorPeriod changes every ReplaceIndex(…, t, 0) of a descriptor, not just the first.
//   - Context is right for networks that treat times differently (Switch, Round).
//   - There is no limit of 10000 hops. Rows that can't be computed before or after some time are
//     not followed beyond it, so that Failover(Offset(a, -1), input) begins with the first input.
//     Endless dependencies end at a limit that grows with the request and the network.
//   - A constant inside Failover or IfDefined is set row by row. Kaldi refuses it.
//
// Results are new and belong to the caller. All functions are safe for concurrent use as long as the network does not change.
package compile
