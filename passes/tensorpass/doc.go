// Package tensorpass holds the optimizations of tensor graphs, one family of local rewrites or one pass a file. Rules has the local
// ones as a table with the groups that they belong to, Passes the others.
//
// Names are Theano's, and so is what the rules do, except where Theano is known to be wrong or slow. They come in groups:
//
//   - canonicalize brings expressions into a normal form: sums and products are flat, what cancels is gone, constants stand first,
//     subtraction and negation are additions and products where that is simpler, shapes are computed from the inputs.
//   - stabilize replaces expressions by others that neither overflow nor lose digits.
//   - specialize replaces what is common by cheaper ops, and undoes what canonicalize did to have one form.
//   - uncanonicalize undoes what is dearer than what the user wrote.
//
// Rules propose, they never change the graph. A rule that may change results where an argument is NaN, infinite or zero says so
// in its documentation and has the tag unsafe_nan.
//
// Every rule keeps the type of what it replaces: the type of elements, and in which dimensions it broadcasts. The function conform
// brings a replacement into that form.
package tensorpass
