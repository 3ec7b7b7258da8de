// Package tensorpass has the optimizations of tensor graphs. Package passes puts them in order and in a
// database.
//
//   - [Rules] lists the local rewrites as [Local] values: a rule with its groups and its tags.
//   - [Pass] returns the passes on whole graphs by name: products of matrices, fusion, working in place.
//   - [Vocabulary] gives the ops of tensors their names in patterns, for rules that are written as text.
//
// Every rule is in the file of its family in the folder rules, with a sentence, its groups and its
// tags. A rule that is an equation has its rewrites there. Any other one says why it is not, and a
// Go file of the family has its function, and the ops that it is shown.
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
// results where something is NaN or infinite, perhaps because an argument is zero, says so in its
// documentation, and has the tag [UnsafeNaN].
//
// Rules, passes and the vocabulary are immutable and safe for concurrent use; a graph is for one
// goroutine at a time.
package tensorpass
