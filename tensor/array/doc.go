// Package array holds dense arrays of up to eight dimensions and the numerics on
// them: element-wise operations with broadcasting, reductions, products and
// indexing. It knows nothing of graphs; package tensor makes ops of it.
//
// An [Array] is a view: an element type, a shape, strides, and memory that other
// arrays may share. Transposing, slicing and broadcasting make further views and
// copy nothing.
//
//	a := array.Of([]float64{1, 2, 3, 4, 5, 6}, 2, 3)
//	b := a.Transpose(1, 0)               // shares the memory of a
//	fmt.Println(b, b.Shape())            // [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]] [3 2]
//
// An element-wise operation is an [Opcode]. A [Program] is a straight-line
// program of them, which runs in blocks that stay in the cache, so that a chain
// of operations reads and writes memory once. A [Workspace] provides memory for
// results and takes it back.
//
// NaN and infinities propagate as in NumPy. An integer divided by zero is zero.
// Several goroutines may read an Array or run a Program; a Workspace belongs to
// one goroutine.
package array
