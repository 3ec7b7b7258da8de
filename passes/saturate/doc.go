// Package saturate optimizes function graphs by equality saturation: it collects
// what rules say about a graph, and replaces the graph by the cheapest form found.
//
// A [Pass] is a graph rewriter whose rules are those of package pattern, as an
// equilibrium has them. Where an equilibrium replaces, a pass adds: the variables
// of the graph become classes of a graph of package egraph, its applies the nodes.
// All cases of a rule are tried, not just the first that matches.
//
// What a rule may rely on:
//   - All variables of a class have one type. A replacement of another type is
//     dropped.
//   - Guards and functions see a variable of each class, its witness: one that is known
//     to be a number if there is any, or one of which the vocabulary knows most (see
//     [Ranker]), and otherwise the first. What computes it is what the graph or a rule
//     had there.
//   - Classes have no clients. A vocabulary that is [ClassFunctions] redefines guards
//     that ask for them.
//   - A match that binds a name to the class of its own root is left out, because it
//     would only make longer terms for the same value: x = 1*x = 1*1*x.
//
// Applies that destroy an input, and views in a graph with such applies, are not
// admitted: they stay, and the graph between them is optimized. An op that no rule
// names is a node like any other.
//
// The graph is changed only if the result costs less than what went in, each apply
// counted once. The vocabulary says what an apply costs if it is a [Coster].
//
// A pass may be used by several goroutines at once. It is deterministic unless
// Seconds is set.
package saturate
