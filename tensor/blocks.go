package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The functions below make matrices, and tensors with more dimensions, from others. They have the
// meaning that NumPy and SciPy give their names.

// Tri returns a matrix with ones on and below diagonal k, and zeros above. Rows, columns and k are
// integer scalars.
func Tri(dtype array.DType, rows, columns, k *fgraph.Variable) *fgraph.Variable {
	return Cast(below("tri", rows, columns, k), dtype)
}

// below returns the mask of the elements on and below diagonal k.
func below(op string, rows, columns, k *fgraph.Variable) *fgraph.Variable {
	rows, columns, k = AsSize(op, rows), AsSize(op, columns), AsSize(op, k)
	i := ARange(Int(0), rows, Int(1))
	// The range of the columns is moved by k, and not each element.
	j := ARange(intMap(array.Sub, Int(0), k), intMap(array.Sub, columns, k), Int(1))
	return Map(array.Ge, DimShuffle(i, 0, array.NewAxis), DimShuffle(j, array.NewAxis, 0))
}

// Tril returns the matrices in the last two dimensions of x with zeros above diagonal k, an integer
// scalar.
func Tril(x, k *fgraph.Variable) *fgraph.Variable {
	return Switch(triangle("tril", x, k), x, Number(0, x))
}

// Triu returns the matrices in the last two dimensions of x with zeros below diagonal k, an integer
// scalar.
func Triu(x, k *fgraph.Variable) *fgraph.Variable {
	// What is not on or below diagonal k-1 is on or above diagonal k.
	k = intMap(array.Sub, AsSize("triu", k), Int(1))
	return Switch(triangle("triu", x, k), Number(0, x), x)
}

// triangle is below for the matrices in x. A vector is each row of a square matrix, as in NumPy.
func triangle(op string, x, k *fgraph.Variable) *fgraph.Variable {
	n := TypeOf(x).NDim()
	if n == 0 {
		fail(op, "a %v has no diagonal", x.Type())
	}
	return below(op, ShapeI(x, max(n-2, 0)), ShapeI(x, n-1), k)
}

// Kron returns the Kronecker product: copies of y, each multiplied by an element of x, in the places
// of these elements.
func Kron(x, y *fgraph.Variable) *fgraph.Variable {
	n := max(TypeOf(x).NDim(), TypeOf(y).NDim())
	if 2*n > array.MaxDims {
		fail("kron", "%d dimensions, there can be %d", n, array.MaxDims/2)
	}
	x, y = PadLeft(x, n), PadLeft(y, n)
	left, right, sizes := make([]int, 2*n), make([]int, 2*n), make([]*fgraph.Variable, n)
	for d := range n {
		// The dimensions of x and y take turns and are merged in pairs: row i·m+k of the result is row i of x
		// times row k of y.
		left[2*d], left[2*d+1] = d, array.NewAxis
		right[2*d], right[2*d+1] = array.NewAxis, d
		sizes[d] = intMap(array.Mul, sizeOf(x, d), sizeOf(y, d))
	}
	return Reshape(Map(productOf(x, y), DimShuffle(x, left...), DimShuffle(y, right...)), sizes...)
}

// productOf returns the operation that multiplies elements: of bools And, as in NumPy.
func productOf(x, y *fgraph.Variable) array.Opcode {
	if TypeOf(x).DType() == array.Bool && TypeOf(y).DType() == array.Bool {
		return array.And
	}
	return array.Mul
}

// BlockDiag returns a matrix of zeros with matrices along its diagonal. Vectors are rows.
func BlockDiag(blocks ...*fgraph.Variable) *fgraph.Variable {
	const name = "block_diag"
	if len(blocks) == 0 {
		fail(name, "no blocks")
	}
	types := dtypesOf(blocks)
	dtype := array.Upcast(types[0], types[1:]...)
	blocks = slices.Clone(blocks)
	ends := make([][2]*fgraph.Variable, len(blocks)+1)
	ends[0] = [2]*fgraph.Variable{Int(0), Int(0)}
	for i, b := range blocks {
		if TypeOf(b).NDim() > 2 {
			fail(name, "argument %d is a %v, not a matrix", i+1, b.Type())
		}
		blocks[i] = Cast(AtLeast(b, 2), dtype)
		for d := range 2 {
			ends[i+1][d] = intMap(array.Add, ends[i][d], sizeOf(blocks[i], d))
		}
	}
	last := ends[len(blocks)]
	x := Zeros(dtype, last[0], last[1])
	for i, b := range blocks {
		x = SetSubtensor(x, b, SliceOf(ends[i][0], ends[i+1][0], 1), SliceOf(ends[i][1], ends[i+1][1], 1))
	}
	return x
}

// Meshgrid returns a tensor for each vector, which has its elements along one dimension: the first
// vector along the second dimension and the second one along the first, unless matrix is set, and
// any other along the dimension of its place. If sparse is set, the other dimensions have size 1.
func Meshgrid(matrix, sparse bool, vectors ...*fgraph.Variable) []*fgraph.Variable {
	const name = "meshgrid"
	n := len(vectors)
	if n == 0 || n > array.MaxDims {
		fail(name, "%d vectors, there can be 1 to %d", n, array.MaxDims)
	}
	grids, sizes := make([]*fgraph.Variable, n), make([]*fgraph.Variable, n)
	for i, v := range vectors {
		if TypeOf(v).NDim() > 1 {
			v = Flatten(v, 1)
		}
		v = PadLeft(v, 1)
		at := i
		if i < 2 && n > 1 && !matrix {
			at = 1 - i
		}
		grids[i], sizes[at] = asDim(v, at, n), sizeOf(v, 0)
	}
	if !sparse {
		for i, g := range grids {
			grids[i] = Alloc(g, sizes...)
		}
	}
	return grids
}
