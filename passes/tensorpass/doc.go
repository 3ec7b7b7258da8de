// Package tensorpass has the optimizations of tensor graphs. It has no order and no database:
// package passes puts them together.
//
//   - [Rules] lists the local rewrites as [Local] values: a rule with its groups and its tags.
//   - [Pass] returns the passes on whole graphs by name: products of matrices, fusion, working in place.
//   - [Vocabulary] gives the ops of tensors their names in patterns, for rules that are written as text.
//
// Rules that are equations are text, a file for each family in the folder rules. Every other family
// of rules has a Go file, and the table at its head gives the name of each rule, the ops that it is
// shown, what it does, in a sentence, and why it is not text.
//
// Names are Theano's. The rules do what Theano's do, except where those are wrong or slow. They
// come in groups:
//
//   - canonicalize brings expressions into a normal form: sums and products are flat, terms cancel,
//     constants come first, subtractions and negations are sums and products where that is simpler,
//     and shapes are computed from the inputs.
//   - stabilize makes expressions that neither overflow nor lose digits.
//   - specialize makes cheaper ops of common expressions, and of forms that canonicalize has made.
//   - uncanonicalize undoes what costs more than what the user wrote.
//   - useless removes ops that do nothing, once, before everything else.
//
// A rule proposes a replacement and never changes the graph. The replacement has the type of what
// it replaces: the type of the elements, and the dimensions that broadcast. A rule that may change
// results where an argument is NaN, infinite or zero says so in its documentation, and has the tag
// [UnsafeNaN].
//
// Rules, passes and the vocabulary are immutable and safe for concurrent use; a graph is for one
// goroutine at a time.
package tensorpass
