// Package tensor is a language of expressions on N-dimensional arrays: what a Theano user would type. Expressions are graphs (package
// fgraph), which passes optimize and exec.Function computes.
//
//	x, y := tensor.Vector("x"), tensor.Vector("y")
//	z := tensor.Sum(tensor.Mul(tensor.Exp(x), y))      // or: scope.Parse("sum(exp(x)*y)")
//	grads, err := tensor.Grad(z, x, y)
//
// A variable has a Type: the type of its elements, the number of dimensions, and their sizes as far as they are known. Dimensions that
// are known to have size 1 broadcast. An Op is a value; applied to variables it checks their types and says which types come out.
// Element-wise operations are one op, Elemwise, over a table of scalar operations; the others are moves of dimensions (DimShuffleOp),
// reductions (Reduce), products (DotOp and the BLAS family), parts of tensors (SubtensorOp and its like), shapes, softmax and
// cross-entropies, and products with sparse matrices.
//
// Functions that make expressions panic with an *Error where the arguments do not fit, as that is a mistake in the program; Try turns it into
// an error. A Scope reads expressions from text, and returns errors.
//
// What an op computes, its shape and its gradient are methods of the op; Shapes infers the shapes of a whole graph without computing it.
// The package optimizes nothing: passes/tensorpass does.
//
// Expressions may be built by several goroutines, as long as they share no variables.
package tensor
