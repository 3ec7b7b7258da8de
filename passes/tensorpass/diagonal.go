package tensorpass

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/rewrite"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// diagonalRules are the rules of diagonals.
var diagonalRules = goRules{
	"local_extract_diag_of_alloc_diag": {onExtractDiag, of(onType[tensor.AllocDiagOp]()), 2, through[tensor.AllocDiagOp](false, diagOfAllocDiag)},
	"local_extract_diag_of_eye":        {onExtractDiag, of(onType[tensor.EyeOp]()), 2, through[tensor.EyeOp](false, diagOfEye)},
	"local_extract_diag_of_transpose":  {onExtractDiag, of(onDimShuffle), 2, through[tensor.DimShuffleOp](false, diagOfDimShuffle)},
	"local_extract_diag_of_alloc":      {onExtractDiag, of(onAlloc), 0, through[tensor.AllocOp](false, diagOfAlloc)},
	"local_extract_diag_lift":          {onExtractDiag, of(onElemwise), 2, through[tensor.Elemwise](true, diagOfElemwise)},
	"local_extract_diag_of_dot":        {onExtractDiag, of(onType[tensor.DotOp](), onType[tensor.MatmulOp]()), 0, diagOfProduct},
	"local_extract_diag_of_write":      {onExtractDiag, of(onAdvancedInc), 2, through[tensor.AdvancedIncSubtensorOp](false, diagOfWrite)},
	"local_adv_idx_to_diagonal":        {onAdvanced, ofConstant, 1, indexesToDiagonal},
}

var onExtractDiag = onType[tensor.ExtractDiagOp]()

// A diag is a diagonal: number k of the matrices that dimensions rows and columns of a tensor make up.
// It becomes the last dimension.
type diag struct{ k, rows, columns int }

func diagOf(n *apply) diag {
	op := opOf[tensor.ExtractDiagOp](n)
	return diag{op.Offset, int(op.Dim1), int(op.Dim2)}
}

// of returns the diagonal of x.
func (d diag) of(x *variable) *variable { return tensor.Diagonal(x, d.k, d.rows, d.columns) }

// first returns the row and the column at which the diagonal begins.
func (d diag) first() (row, column int) { return max(-d.k, 0), max(d.k, 0) }

// others returns the dimensions that the diagonal leaves, of ndim.
func (d diag) others(ndim int) (dims []int) {
	for k := range ndim {
		if k != d.rows && k != d.columns {
			dims = append(dims, k)
		}
	}
	return dims
}

func diagOfAllocDiag(c *rewrite.Context, n, a *apply) *variable {
	d, x := diagOf(n), a.Inputs()[0]
	if d.rows > d.columns {
		d.k = -d.k
	}
	if d.k == opOf[tensor.AllocDiagOp](a).Offset {
		return x
	}
	return tensor.Alloc(full(dtypeOf(x), 0), tensor.ShapesOf(c.Graph()).Shape(n.Out())...)
}

func diagOfEye(c *rewrite.Context, n, a *apply) *variable {
	d := diagOf(n)
	if d.rows > d.columns {
		d.k = -d.k
	}
	k, ok := intOf(a.Inputs()[2])
	if !ok {
		return nil
	}
	value := 0.0
	if k == d.k {
		value = 1
	}
	return tensor.Alloc(full(dtypeOf(n.Out()), value), tensor.ShapesOf(c.Graph()).Shape(n.Out())...)
}

// diagOfDimShuffle takes the diagonal first, and moves the dimensions that are left.
func diagOfDimShuffle(_ *rewrite.Context, n, a *apply) *variable {
	d, x, order := diagOf(n), a.Inputs()[0], opOf[tensor.DimShuffleOp](a).NewOrder()
	from := diag{d.k, order[d.rows], order[d.columns]}
	if from.rows < 0 || from.columns < 0 {
		return nil // it is the diagonal of a single row or column
	}
	if from.rows > from.columns {
		from = diag{-from.k, from.columns, from.rows}
	}
	left := from.others(typeOf(x).NDim())
	var moved []int
	for _, k := range d.others(len(order)) {
		moved = append(moved, slices.Index(left, order[k])) // a new dimension is not found: -1
	}
	return tensor.DimShuffle(from.of(x), append(moved, len(left))...)
}

// partner returns what of x, which broadcasts to v, belongs to a diagonal of v: the last dimension is
// that of the diagonal. It returns nil if computing where that begins and ends costs more than the
// diagonal. Size returns the size of a dimension of v.
func (d diag) partner(x, v *variable, size func(d int) *variable) *variable {
	if a := tensor.ConstantOf(x); a != nil && a.Len() == 1 {
		return tensor.Constant(a.Reshape(slices.Repeat([]int{1}, typeOf(v).NDim()-1)...))
	}
	x = tensor.PadLeft(x, typeOf(v).NDim())
	broadcast := func(k int) bool { return typeOf(x).Dim(k) == 1 && typeOf(v).Dim(k) != 1 }
	row, column := d.first()
	of := everything(typeOf(x).NDim())
	order := d.others(len(of))
	switch {
	case broadcast(d.rows) && broadcast(d.columns), isScalar(x) && !isScalar(v):
		return tensor.DimShuffle(x, append(order, array.NewAxis)...)
	case broadcast(d.rows): // the same row everywhere
		return tensor.DimShuffle(part(x, d.stretch(of, d.columns, column, size(d.rows), row, size(d.columns))...), append(order, d.columns)...)
	case broadcast(d.columns):
		return tensor.DimShuffle(part(x, d.stretch(of, d.rows, row, size(d.columns), column, size(d.rows))...), append(order, d.rows)...)
	}
	return d.of(x)
}

// stretch returns indexes of which one selects in dimension k what begins at first and is as long as the
// other dimension, of that size, is from its own first element on; no more than there is.
func (d diag) stretch(of []tensor.Index, k, first int, other *variable, skip int, size *variable) []tensor.Index {
	var stop *variable
	switch n, ok := intOf(other); {
	case first == 0 && skip == 0 && sameSize(other, size):
		return of
	case ok:
		stop = tensor.Int(first + max(n-skip, 0))
	case skip == 0 && first == 0:
		stop = other
	default:
		stop = tensor.Add(tensor.Maximum(tensor.Sub(other, tensor.Int(skip)), tensor.Int(0)), tensor.Int(first))
	}
	of[k] = tensor.SliceOf(nil, stop, 1)
	if first > 0 {
		of[k].Start = tensor.Int(first)
	}
	if n, ok := intOf(size); ok {
		if m, ok := intOf(stop); ok && m >= n {
			of[k].Stop = nil
		}
	}
	return of
}

func diagOfElemwise(c *rewrite.Context, n, a *apply) *variable {
	d, v, s := diagOf(n), a.Out(), tensor.ShapesOf(c.Graph())
	size := func(k int) *variable { return s.Dim(v, k) }
	in := mapped(a.Inputs(), func(x *variable) *variable { return d.partner(x, v, size) })
	return again(a, in...)
}

func diagOfAlloc(c *rewrite.Context, n, a *apply) *variable {
	d, v, s := diagOf(n), a.Out(), tensor.ShapesOf(c.Graph())
	x := d.partner(a.Inputs()[0], v, func(k int) *variable { return s.Dim(v, k) })
	return refit(x, n.Out(), s)
}

// diagOfProduct computes only what is on the diagonal of a product of matrices: the sums of the products
// of rows of the first one and columns of the second one.
func diagOfProduct(c *rewrite.Context, n *apply) (result, error) {
	p := n.Inputs()[0]
	a, d, last := p.Owner(), diagOf(n), typeOf(p).NDim()-1
	if a == nil || !multiplies(a.Op()) {
		return c.Miss("it is not a product of matrices"), nil
	}
	x, y := a.Inputs()[0], a.Inputs()[1]
	if d.rows > d.columns {
		d = diag{-d.k, d.columns, d.rows}
	}
	if !usedOnce(p) || d.rows != last-1 || d.columns != last || typeOf(x).NDim() < 2 || typeOf(y).NDim() < 2 {
		return c.Miss("the product has other uses, or is no product of matrices with this diagonal"), nil
	}
	return attempt(c, n, func() *variable {
		y := tensor.SwapAxes(y, -1, -2)
		row, column := d.first()
		x, y := fromRow(x, row), fromRow(y, column)
		s := tensor.ShapesOf(c.Graph())
		m, k := s.Dim(x, typeOf(x).NDim()-2), s.Dim(y, typeOf(y).NDim()-2)
		if !sameSize(m, k) {
			x, y = rowsUpTo(x, k, m), rowsUpTo(y, m, k)
		}
		return reduceOver(array.Sum, tensor.Mul(x, y), 1<<last)
	})
}

func multiplies(op fgraph.Op) bool {
	switch op.(type) {
	case tensor.DotOp, tensor.MatmulOp:
		return true
	}
	return false
}

// fromRow returns the rows of the matrices x from one on.
func fromRow(x *variable, row int) *variable {
	if row == 0 {
		return x
	}
	of := everything(typeOf(x).NDim() - 1)
	of[len(of)-1].Start = tensor.Int(row)
	return tensor.Subtensor(x, of...)
}

// rowsUpTo returns at most most of the m rows of the matrices x.
func rowsUpTo(x, most, m *variable) *variable {
	n, ok := intOf(most)
	if k, ok2 := intOf(m); ok && ok2 && k <= n {
		return x
	}
	of := everything(typeOf(x).NDim() - 1)
	of[len(of)-1].Stop = most
	return tensor.Subtensor(x, of...)
}

// diagOfWrite reads the value where the diagonal is what was written, and the tensor behind the write
// where it was not touched.
func diagOfWrite(c *rewrite.Context, n, a *apply) *variable {
	d, op := diagOf(n), opOf[tensor.AdvancedIncSubtensorOp](a)
	x, y, indexes := a.Inputs()[0], a.Inputs()[1], a.Inputs()[2:]
	if d.rows > d.columns {
		d = diag{-d.k, d.columns, d.rows}
	}
	rows, columns := typeOf(x).Dim(0), typeOf(x).Dim(1)
	places, ok := tensor.PlacesOf(x, indexes)
	if op.K != 2 || op.Inplace || d.rows != 0 || d.columns != 1 || rows == tensor.Unknown || columns == tensor.Unknown || !ok {
		return nil
	}
	row, column := d.first()
	at, distinct := places.Last()
	length, touched := array.DiagonalLen(rows, columns, d.k), 0
	inOrder := len(places) == length
	for i := range length {
		k, found := at[tensor.Place{row + i, column + i}]
		if found {
			touched++
		}
		inOrder = inOrder && found && k == i
	}
	switch {
	case touched == 0:
		return d.of(x)
	case !inOrder || !distinct:
		return nil
	}
	order := make([]int, typeOf(y).NDim())
	for i := range order {
		order[i] = (i + 1) % len(order)
	}
	y = tensor.DimShuffle(y, order...)
	if !op.Set {
		return tensor.Add(d.of(x), y)
	}
	return refilled(stripPadding(y), tensor.ShapesOf(c.Graph()).Shape(n.Out()))
}

// indexesToDiagonal finds the elements of a diagonal among elements that are picked. A diagonal is a
// view, nothing is copied.
func indexesToDiagonal(c *rewrite.Context, n *apply) (result, error) {
	x, indexes := n.Inputs()[0], n.Inputs()[1:]
	places, ok := tensor.PlacesOf(x, indexes)
	rows, columns := typeOf(x).Dim(0), tensor.Unknown
	if len(indexes) == 2 {
		columns = typeOf(x).Dim(1)
	}
	if !ok || rows == tensor.Unknown || columns == tensor.Unknown || len(places) < 2 {
		return c.Miss("it is not known which elements it picks of two dimensions"), nil
	}
	d := diag{places[0][1] - places[0][0], 0, 1}
	row, column := d.first()
	for i, p := range places {
		if p[0] != row+i || p[1] != column+i {
			return c.Miss("it does not pick elements along a diagonal"), nil
		}
	}
	if len(places) != array.DiagonalLen(rows, columns, d.k) {
		return c.Miss("it picks a part of a diagonal"), nil
	}
	last := typeOf(x).NDim() - 2
	return replace(c, n, tensor.MoveAxes(d.of(x), []int{last}, []int{0}))
}
