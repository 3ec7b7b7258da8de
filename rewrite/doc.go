// Package rewrite holds the rewriters of function graphs and the drivers that
// run them.
//
// A [GraphRewriter] works on a whole graph. A [NodeRewriter], most often a
// [Rule], is shown one apply and proposes what to put in its place; it never
// changes the graph. A driver ([Walk], [OpKeyWalk], [Equilibrium]) is a graph
// rewriter that shows applies to node rewriters: it makes the replacements that
// they propose, has the features of the graph validate them, undoes them when
// one objects, counts, measures, and turns errors and panics into an [Error]
// that names the pass, the rule and the apply. [Merge] unites what is computed
// twice, [Sequence] runs graph rewriters one after the other, and a [Global] is
// made of a function that changes the graph through a [Handle].
//
// Whatever changes a graph while a rewriter runs is attributed to it, told to
// those who trace, and asked of the budget. A rule that tries to change the graph
// itself is at fault. So is a pass that brings in an op which overwrites its
// input before a [fgraph.DestroyHandler] is attached.
//
// What concerns a whole run, such as tracing, a budget, or what to do about
// failures, is in [Options] and travels in the context. [WhyNot] asks a rule
// about one apply, and [Options.Reproduce] gets, when a pass fails, the graph as
// it was before the pass, in a text from which the failure can be repeated.
//
// A graph is for one goroutine at a time: to rewrite it, or to read it while
// another goroutine rewrites it, is forbidden, and nothing checks for it.
// Rewriters are descriptions of work: once it is made a driver, a rule or a
// sequence does not change, and may be used by any number of goroutines, on a
// graph each. That holds for rules written by others as long as their functions
// keep nothing between calls. The functions in Options are called by the
// goroutine that runs; those of one Options that several runs share must stand
// that, [Budget] does not.
package rewrite
