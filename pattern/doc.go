// Package pattern makes node rewriters from text:
//
//	(true_div (mul x y) y) => x
//
// The left side is a [Pattern]. It is matched against an apply and its operands, never against
// clients. It consists of:
//
//	x              any variable; if the name occurs again, it matches only the same
//	               variable or an equal constant
//	_              any variable
//	2, -0.5, nan   what the vocabulary considers equal to the number
//	2:float32      the same, and of that type
//	(mul x y)      the first output of an apply of the op; if the op commutes, the
//	               inputs match in any order
//	(split x).1    another output
//	(sum{axis=0} x)  an op with parameters, if the vocabulary has such ops
//	(sum{a} x)     any op of the family, and binds its parameters to a; if the name
//	               occurs again, the parameters must be equal
//	(add x ...ys)  binds the remaining inputs, possibly none, to ys; also written
//	               …ys, and without a name: ...
//	y@(exp x)      like (exp x), and binds the result to y
//	(or a b)       what a matches, or else what b does; both bind the same names, and no
//	               op is called "or" in rules
//	p && f(x, ys)  p, if the function f holds for x and all of ys; && !f(x, ys) if it
//	               does not. All guards are checked for every way to match p.
//
// The root of a pattern is an op, or alternatives that begin with ops, and matches an apply with
// a single output. The applies between the root and the variables bound to names must have no
// other clients, because they would still be computed. The option [Shared] lifts this
// restriction. So does binding an apply ("y@...") to a name that the replacement uses.
//
// The right side, the replacement, is one of:
//
//	x              the variable bound to x
//	2, 2:float32   a constant, of the type of what is replaced or of the type given
//	2:x            a constant of the type of x
//	{a*b - 1}      a constant that is computed from known numbers with + - * / and **
//	(mul x 2)      an op applied to replacements
//	(add z ...ys)  with remaining inputs among its arguments
//	(mul ...(abs ys))  with an expression of each of them
//	(sum{a} x)     with captured parameters
//	(sum{f(a)} x)  with parameters that a function computes
//	(f x)          a variable that a function makes
//
// A vocabulary that is a [Conformer] gives the replacement the type of what it replaces.
//
// If an op commutes, its arguments choose inputs in the order of their strictness: ops and
// numbers, alternatives, names, then "_". Each argument takes the first input that leads to a
// match. The search is bounded; if it gives up, there is no match.
//
// A [Rule] is a list of rewrites with a name, a sentence, groups and tags; [ParseRules] reads them
// from a file. The first rewrite that matches is used.
//
// Drivers of package rewrite do not try rules one after another. They ask none whose root has an
// argument that no input can be ([Substitution.Needs]). If many are left, the patterns of all rules
// of a driver form one tree, which excludes most rules that can't match ([Substitution.Sieve]). It
// tests ops, numbers of inputs, literals and neighbouring arguments with one name, each once for
// all rules that share it. So the cost of a rule lies in the matches that it comes close to.
// Conditions that can't be shared, such as guards, are left to the rule.
//
// An equation is a rewrite in both directions, and its right side a pattern as well, which may have
// guards of its own:
//
//	(log (mul x y)) && positive(x) <=> (add (log x) (log y)) && positive(x)
//
// Both sides bind the same names, as far as the other one uses them; "n@(exp x)" is "(exp x)" where
// it is the replacement. Equality saturation (package egraph) uses both directions, a Substitution
// the one from left to right: the other way would undo it.
//
// A [Vocabulary] defines the names of ops and the meaning of numbers. Unknown ops, wrong numbers
// of arguments, unbound names and other mistakes are errors when a rule is compiled, which are
// reported together. A rule that does not match reports the reason to rewrite.Options.WhyNot; of
// several rewrites, the one that came furthest does.
//
// Rules, matchers and vocabularies are immutable. They are safe for concurrent use if the Go
// functions passed to them are. The graph that they inspect is confined to one goroutine at a
// time.
//
// The package does not drive rules (package rewrite does) and knows no op. [Parse], [ParseExpr],
// [ParseRewrite] and [ParseRules] return syntax trees, which can also be built in Go. Every tree
// prints as the text that parses to it.
package pattern
