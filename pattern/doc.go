// Package pattern makes node rewriters of rules that are written as text:
//
//	(true_div (mul x y) y) => x
//
// A pattern is matched with an apply and what it is computed from; it never looks
// towards clients. What it is made of:
//
//	x              any variable; a name that is repeated is the same variable,
//	               or an equal constant
//	_              any variable
//	2, -0.5        a constant, equal in value and type by what the vocabulary says
//	(mul x y)      the first output of an apply of that op; if the op commutes, the
//	               inputs may come in any order
//	(split x).1    another output
//	(sum{0} x)     an op with parameters, for vocabularies that have such ops
//	(add x ...ys)  ys are the inputs that are left, of which there may be none;
//	               also written …ys, and nameless: ...
//	y@(exp x)      as (exp x), and y is what it computes
//	(or a b)       what matches a, or else what matches b; both bind the same names
//	p && f(x)      only if the Go function f, given x, says yes; && !f(x) if it says
//	               no. There may be several; all are tried for each way to match.
//
// A pattern begins with an op, or with alternatives that do, and the apply at its
// root has one output. The applies between the root and what the names stand for
// must not be read by anything else, since they would have to be computed still;
// the option [Shared] lifts that, and so does naming them ("y@...") where the
// replacement uses the name.
//
// A replacement is a name, a number, or an op applied to replacements, in whose
// arguments a rest may be spliced: (add z ...ys). With [WithBuilder] a Go function
// stands where an op does.
//
// Where an op commutes, arguments look for their inputs in the order of their
// strictness: ops and numbers, alternatives, names, then "_"; each takes the first
// input that leads to a match. The search is bounded; when it gives up, there is
// no match.
//
// What the names of ops and numbers mean is up to a [Vocabulary]. Unknown ops,
// wrong numbers of arguments, names that the pattern does not bind and other
// mistakes are errors when the rule is made, all reported together. Why a rule did
// not match where it was tried is told to rewrite.Options.WhyNot.
//
// Rules, matchers and vocabularies do not change, and are safe for concurrent use
// if the Go functions that were handed in are; the graph that they look at is for
// one goroutine at a time.
//
// [Parse] and its siblings give the syntax tree, which can be built in Go as well;
// every tree prints as the text that parses to it.
package pattern
