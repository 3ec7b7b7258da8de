// Package egraph finds everything that equations say about an expression, and the cheapest form of
// it: equality saturation.
//
// A [Graph] is a set of classes. A [Class] is a set of nodes that are known to be equal, and a
// [Node] is an op applied to classes. Applying a rule adds what it says and removes nothing, so the
// order of rules does not matter:
//
//	l := egraph.NewLanguage()
//	mul, _ := l.Declare(egraph.Signature{Name: "mul", Inputs: [2]int{2, 2}})
//	list, _ := pattern.ParseRules("file", "commute:\n    (mul x y) => (mul y x)\n")
//	rules, _ := egraph.Compile(l, list)
//	g := egraph.New(l)
//	root := g.Add(...)
//	report, err := g.Saturate(ctx, rules, egraph.Options{Limits: egraph.Limits{Nodes: 10000}})
//	choice, err := g.Extract(ctx, cost, root)
//
// A [Language] declares ops, with parameters, any number of inputs and several outputs. An op that
// commutes has a multiset of inputs. Rules match some of the inputs and name the others: "(add (mul a
// b) (mul a c) ...rest)". Rules are written as in package pattern, without alternatives: a case for
// each of them says the same. A pattern that is a name has no guards, and the search for inputs of a
// multiset is bounded. Replacements are made of ops, names, numbers and rests; a [Maker] makes any
// others.
//
// [Graph.Saturate] proceeds in laps. It matches all rules, only where something is new, applies
// them, and finds what has become equal because of that. A [Backoff] bans rules that match too
// often for some laps, and [Limits] end it. The [Report] says what happened in each lap and what
// each rule did.
//
// An [Analysis] keeps facts about classes, such as values, types or signs, which guards of rules
// ask for.
//
// [Graph.Extract] chooses a node for each class by a [Cost], which counts shared nodes once. The
// result never costs more than what was given. [Graph.Explain] and [Graph.ExplainChoice] show how
// rules lead from one term to another, as a chain of rewrites that can be replayed.
//
// Everything is deterministic, except for limits of time. A language and rules may be shared by
// goroutines once they are complete; a graph is for one goroutine.
//
// The layout follows what is known of egg (Willsey and others, "egg: fast and extensible equality
// saturation", 2021): congruence is restored after each lap, not after each union. The package
// knows no op.
package egraph
