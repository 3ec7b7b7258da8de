// Package rewrite contains rewriters of function graphs and the drivers that run them.
//
// A [GraphRewriter] works on a whole graph. A [NodeRewriter], usually a [Rule], is shown one apply
// and proposes a replacement; it never changes the graph. A driver ([Walk], [Equilibrium]) is a
// graph rewriter that shows applies to node rewriters. It makes the replacements that they propose,
// lets the features of the graph validate them, undoes them if a feature objects, counts and times,
// and turns errors and panics into an [Error] that names the pass, the rule and the apply. [Merge]
// eliminates common subexpressions, [Sequence] runs graph rewriters one after another, and a
// [Global] is a function that changes the graph through a [Handle].
//
// While a rewriter runs, every change of its graph is attributed to it, traced, and charged to the
// budget. A rule that tries to change the graph itself fails, and so does a pass that inserts an op
// which overwrites its input before a [fgraph.DestroyHandler] is attached.
//
// Rules need not be asked one by one. A driver finds those that track the op of an apply, and
// leaves out those that need other inputs ([Need]). If many are left of one kind, such as patterns,
// a [Sifter] tells which are worth asking; it is made when it pays. That changes neither results nor
// counts: a rule that is left out counts as asked. If somebody wants the reasons why rules do not
// fire, or sets AskAll in the options, all are asked.
//
// The package does not select rewriters (package optdb does) and knows no op.
//
// [Options] travel in the context and concern a whole run: tracing, the budget, the treatment of
// failures. [WhyNot] asks a rule about one apply. [Options.Reproduce] receives every failed pass
// together with the text of the graph before it, from which the failure can be repeated.
//
// A graph is confined to one goroutine at a time: it may not be used while another goroutine
// rewrites it, and nothing checks that. Rewriters are immutable descriptions of work. Any number of
// goroutines may use them at the same time, each on a graph of its own, provided that the functions
// of rules keep no state. The functions in Options are called on the goroutine of the run. If
// several runs share Options, these functions must be safe for concurrent use, which [Budget] is
// not.
package rewrite
