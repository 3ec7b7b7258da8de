// Package compile turns a network and a request into commands: it is nnet3's compiler. It plans, and computes nothing; nor
// does it optimize, which is left to the passes.
//
// The plan is made in these steps, a file each:
//
//   - network.go, terms.go: the network, with its descriptors laid flat;
//   - builder.go, prune.go: the computation graph, whose vertices are Cindexes (a row of a node), from the outputs backward.
//     What can't be computed from the inputs is found out on the way, which ends the recurrence of recurrent networks;
//     explain.go says what is missing where an output is among it;
//   - epochs.go, phases.go: the order of computation. Nodes that depend on each other make an epoch, the strongly connected
//     components of the network; inside a recurrent epoch, rows that can be computed together make a phase;
//   - steps.go: a phase of a node becomes a step, with a matrix for its values and perhaps one for derivatives;
//   - emit.go, forward.go, backward.go, locations.go: steps become commands.
//
// A minibatch whose sequences all ask for the same is compiled as one sequence (lanes, in rows.go), and comes out the same as
// if each had been compiled. A Compiler keeps what it compiled. CompileLooped makes a computation for endless input, and
// Context finds out how much input an output needs.
//
// The computations are those that Kaldi compiles, command for command, but for their order where it doesn't matter and for
// padding, which our components don't want. Where Kaldi's results are questionable, ours differ:
//
//   - Any requests whose sequences are alike take the shortcut, however their rows are ordered and their sequences numbered.
//   - CompileLooped considers how long rows stay in use, and what time has to do with matrices that look alike. Kaldi may
//     close a loop too early where a recurrence spans many chunks.
//   - WithIvectorPeriod changes every ReplaceIndex(…, t, 0) of a descriptor, not the first.
//   - Context is right for networks that treat times differently (Switch, Round).
//   - There is no limit of 10000 hops. What can't be computed at any time before or after some is not followed there, so that
//     Failover(Offset(a, -1), input) begins with the first input; and what really has no end ends at a limit that grows with
//     the request and the network.
//   - A constant inside Failover or IfDefined is set row by row. Kaldi refuses it.
//
// Everything that this package returns is new and belongs to the caller, but for the computations of a Compiler, which are
// shared. The functions may be called by several goroutines at once, as long as nobody changes the network.
package compile
