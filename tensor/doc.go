// Package tensor is a language of expressions on N-dimensional arrays, in the
// manner of Theano. Expressions are graphs of package fgraph, which passes
// optimize and exec.Function computes.
//
//	x, y := tensor.Vector("x"), tensor.Vector("y")
//	z := tensor.Sum(tensor.Mul(tensor.Exp(x), y))
//	grads, err := tensor.Grad(z, x, y)
//
// A variable has a [Type]: its element type, the number of dimensions, and their
// sizes as far as they are known. A dimension whose type says size 1 broadcasts.
//
// An op is a value that implements [Op]: it infers the types of its outputs and
// compiles to a [Kernel]. It may implement [ShapeInferer], [Differentiable] and
// [Foldable], and the interfaces of package fgraph for views and for ops that
// work in place. Element-wise operations are one op, [Elemwise], over the table
// array.Opcode, and reductions are another one, [Reduce]. The other ops have
// names that end in Op: a pass recognises them by their type, reads their fields
// and applies others.
//
// Functions such as [Add] build expressions. They panic with an [*Error] if the
// arguments do not fit, since that is a mistake in the program; [Try] turns the
// panic into an error. A [Part] is what NumPy's indexes select of a tensor, to
// be read or changed. Package tensor/expr reads expressions from text.
//
// [Shapes] infers the shapes of a graph without computing it. The package
// optimizes nothing: passes/tensorpass does.
//
// Several goroutines may build expressions that share no variables. Types, ops
// and kernels may be shared.
package tensor
