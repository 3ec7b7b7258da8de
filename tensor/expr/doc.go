// Package expr reads tensor expressions from text, as a Python user writes them
// and as graphs print:
//
//	s := expr.NewScope()
//	err := s.Declare("x y z: vector; X: matrix")
//	outputs, err := s.Parse("sum((y + z)*x/(y + z)) + mean(X, axis=0)")
//
// A [Scope] holds the variables that expressions may name. Expressions know
// Python's operators and indexes, the functions and methods of Theano and NumPy
// that package tensor has ops for, and every op under the name that it prints. A
// mistake is a [*SyntaxError] with its column.
//
// Types of elements combine as in NumPy 2: an int8 and a uint8 make an int16, an
// int32 and a float32 a float64, and the root of an int8 is a float16. A bfloat16
// stands where a float16 does. A number has the type of what it is combined with,
// if that type has it; otherwise both have the smallest type that has their
// values, where NumPy fails: u + 300, for uint8s, is a uint16. Of bools, + is
// "or" and * is "and".
//
// All of this is a [Language], to which a program can add ops and functions of its
// own, see [Language.With]. Patterns, graphs and files of graphs share it.
//
// Indexes are NumPy's: integers, slices, None, ..., tensors of integers, and
// masks; set_subtensor(x[i, mask], y) and inc_subtensor change what any of them
// selects. A function that returns several tensors, such as split, returns a
// list, of which an integer or a slice selects.
//
// The package computes and optimizes nothing: what Parse returns is a graph made
// of the ops of package tensor.
//
// A Scope belongs to one goroutine. A Language may be used by several.
package expr
