// Package export writes computations of networks as ONNX models.
//
// A computation is for rows (n, t, x); a model is for any number of sequences. [UnitOf] takes from a
// request what it asks for of one sequence. The computation for that, compiled, lowered and rewritten,
// is a [lower.Program], of which [Model] makes a model: a matrix of rows×columns becomes a tensor of
// sequences×rows×columns, where the number of sequences is a symbol. Nothing of storage is left in it,
// nor of passes that plan it.
//
// What a component computes it says itself ([component.Formula]); this package knows values, not
// components. What can't be said, such as random numbers, is an error of kind [Faults], which names all
// of it.
//
// Everything in the package is safe for concurrent use with different programs.
package export
