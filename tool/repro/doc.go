// Package repro repeats, bisects and reduces failures of optimizers.
//
// A [Case] is a graph, the optimizer that fails on it, and the [Failure]: an error or a panic of a
// pass, rules that don't terminate, a damaged graph, or other values than the graph has by
// itself. [Check] runs a case and says how it fails, [Debug] for one draw of inputs after another. [Bisect] finds the rewrite to blame. [Reduce]
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
// A [World] is a dialect of graphs: see packages tensors and networks. It has to know how graphs are
// written. What more a world knows, such as how to run them ([Evaluator]), it implements as optional
// interfaces. [Interpret] helps those whose ops compute one apply at a time.
//
// All functions are deterministic. A case may be used by one goroutine at a time.
package repro
