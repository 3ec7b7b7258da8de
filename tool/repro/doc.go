// Package repro repeats, bisects and reduces failures of optimizers.
//
// A [Case] is a graph, the optimizer that fails on it, and the [Failure]: an error or a panic of a
// pass, rules that don't terminate, a damaged graph, or other values than the graph has by
// itself. [Check] runs a case and says how it fails. [Bisect] finds the rewrite to blame. [Reduce]
// makes the graph and the query as small as they get while the case fails in the same way: the same
// kind of failure, in the same pass and rule.
//
//	c := &repro.Case{World: tensors.World(expr.Default().Dialect()), Build: passes.Default().Build, Graph: g, Query: q}
//	c.Failure, err = repro.Check(ctx, c)
//	small, err := repro.Reduce(ctx, c, repro.ReduceOptions{})
//	text, err := graphfile.Format(small.File(), small.World.Dialect())
//
// Cases are files, see [Case.File] and [FromFile]: graphs with the query and the failure in their
// head.
//
// A [World] knows how graphs of a dialect are run: see packages tensors and networks. All
// functions are deterministic. A case may be used by one goroutine at a time.
package repro
