package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// Tensordot returns the sum of the products of x and y over dimensions that go together: over each
// dimension of x in axesX and the one of y in axesY. The other dimensions of x come first, then those of y.
// Negative dimensions count from the end.
func Tensordot(x, y *fgraph.Variable, axesX, axesY []int) *fgraph.Variable {
	if len(axesX) != len(axesY) {
		fail("tensordot", "%d dimensions for %d others", len(axesX), len(axesY))
	}
	order := func(v *fgraph.Variable, axes []int) (summed, free []int) {
		summed = NormalAxes("tensordot", v, axes)
		for d := range TypeOf(v).NDim() {
			if !slices.Contains(summed, d) {
				free = append(free, d)
			}
		}
		if len(summed)+len(free) != TypeOf(v).NDim() {
			fail("tensordot", "a dimension is named twice")
		}
		return summed, free
	}
	summedX, freeX := order(x, axesX)
	summedY, freeY := order(y, axesY)
	for i, d := range summedX {
		if n, m := TypeOf(x).Dim(d), TypeOf(y).Dim(summedY[i]); n != m && n != Unknown && m != Unknown {
			fail("tensordot", "sizes %d and %d of dimensions %d and %d do not fit", n, m, d, summedY[i])
		}
	}
	x, y = DimShuffle(x, slices.Concat(freeX, summedX)...), DimShuffle(y, slices.Concat(summedY, freeY)...)
	return contract(x, y, 0, len(summedX))
}

// contract multiplies x, whose dimensions are batch, free and summed ones, by y, whose dimensions
// are batch, summed and free ones. The result has the batch ones, and the free ones of x and of y.
func contract(x, y *fgraph.Variable, batch, summed int) *fgraph.Variable {
	freeX, freeY := TypeOf(x).NDim()-batch-summed, TypeOf(y).NDim()-batch-summed
	if summed == 0 {
		return outerProduct(x, y, batch)
	}
	if batch > 0 && freeX == 0 && freeY == 0 {
		// Nothing is left of either factor. As matrices these would be rows and columns, one pair for each
		// item.
		return Sum(Mul(x, y), upTo(batch + summed)[batch:]...)
	}
	sizes := slices.Concat(dimSizes(x)[:batch+freeX], dimSizes(y)[batch+summed:])
	// From behind, so that what is merged first does not move what is merged next.
	x = mergeDims(mergeDims(x, batch+freeX, summed), batch, freeX)
	y = mergeDims(mergeDims(y, batch+summed, freeY), batch, summed)
	var z *fgraph.Variable
	if batch == 0 {
		z = Dot(x, y)
	} else {
		if freeX == 0 {
			// Matmul wants two dimensions behind the batch, so what has only summed ones becomes a row, or a
			// column below.
			x = DimShuffle(x, slices.Insert(upTo(batch+1), batch, array.NewAxis)...)
		}
		if freeY == 0 {
			y = DimShuffle(y, append(upTo(batch+1), array.NewAxis)...)
		}
		z = Matmul(x, y)
		if freeX == 0 {
			z = dropDim(z, batch)
		}
		if freeY == 0 {
			z = dropDim(z, TypeOf(z).NDim()-1)
		}
	}
	if freeX <= 1 && freeY <= 1 {
		return z
	}
	return Reshape(z, sizes...)
}

// outerProduct is contract over nothing.
func outerProduct(x, y *fgraph.Variable, batch int) *fgraph.Variable {
	freeX, freeY := TypeOf(x).NDim()-batch, TypeOf(y).NDim()-batch
	order := upTo(batch + freeX)
	for range freeY {
		order = append(order, array.NewAxis)
	}
	x = DimShuffle(x, order...)
	order = upTo(batch)
	for range freeX {
		order = append(order, array.NewAxis)
	}
	for d := range freeY {
		order = append(order, batch+d)
	}
	return Mul(x, DimShuffle(y, order...))
}

// dimSizes returns the sizes of all dimensions of x, as constants if its type knows them.
func dimSizes(x *fgraph.Variable) []*fgraph.Variable {
	dims := make([]*fgraph.Variable, TypeOf(x).NDim())
	for d := range dims {
		dims[d] = sizeOf(x, d)
	}
	return dims
}

// mergeDims merges n dimensions of x from first on into one. It merges nothing if n is 0.
func mergeDims(x *fgraph.Variable, first, n int) *fgraph.Variable {
	if n <= 1 {
		return x
	}
	dims := dimSizes(x)
	merged := dims[first]
	for _, d := range dims[first+1 : first+n] {
		merged = intMap(array.Mul, merged, d)
	}
	return Reshape(x, slices.Replace(dims, first, first+n, merged)...)
}
