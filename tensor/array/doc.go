// Package array holds dense arrays of up to eight dimensions, and the numerics on them: element-wise operations with
// broadcasting, reductions, products, indexing. It knows nothing of graphs; package tensor has an op for what is here.
//
// An Array is a view: a type of elements, a shape, strides, and memory that other arrays may share. Transposing, slicing and
// broadcasting make further views and copy nothing.
//
//	a := array.Of([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
//	b := a.Transpose(1, 0)               // shares the memory of a
//	fmt.Println(b, b.Shape())            // [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]] [3 2]
//
// Element-wise operations are rows of a table (Opcode). A Program is a small straight-line program of them; it runs over arrays
// in blocks that stay in the cache, so that a chain of operations reads and writes memory once. Memory for results comes from a
// Workspace, and goes back there.
//
// NaN and infinities go through, as in NumPy. Division of integers by zero gives zero. Arrays may be read by several goroutines; a
// Workspace belongs to one.
package array
