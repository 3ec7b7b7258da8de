package array

import (
	"errors"
	"fmt"
)

// ErrIndex is wrapped where an index is out of range.
var ErrIndex = errors.New("index out of range")

// Position returns the place of index i in a dimension of size n, where negative indexes count from the end.
func Position(i int64, n int) (int, error) {
	k := i
	if k < 0 {
		k += int64(n)
	}
	if k < 0 || k >= int64(n) {
		return 0, fmt.Errorf("%w: %d in a dimension of size %d", ErrIndex, i, n)
	}
	return int(k), nil
}

// row makes v the view of a at the given indexes into its first dimensions, which are dropped.
func (a *Array) row(v *Array, indexes ...*Array) func(i int) error {
	return func(i int) error {
		*v = *a
		k := len(indexes)
		for d, index := range indexes {
			p, err := Position(index.Int(i), a.shape[d])
			if err != nil {
				return err
			}
			v.offset += p * a.strides[d]
		}
		v.ndim = a.ndim - uint8(k)
		v.shape, v.strides = [MaxDims]int{}, [MaxDims]int{}
		copy(v.shape[:], a.shape[k:a.ndim])
		copy(v.strides[:], a.strides[k:a.ndim])
		return nil
	}
}

// Take sets out[i] to a[indexes[0][i], indexes[1][i], …], for integer arrays of one shape that index the first dimensions of a. The
// shape of out is that of the indexes, followed by that of the remaining dimensions of a.
func Take(out, a *Array, indexes ...*Array) error {
	return eachPlace(out, a, indexes, func(dst, src *Array) { CopyTo(dst, src) })
}

// eachPlace calls f for each index, with the part of out that it numbers and the part of a that it selects.
func eachPlace(out, a *Array, indexes []*Array, f func(dst, src *Array)) error {
	var dst, src Array
	at := a.row(&src, indexes...)
	n, k := indexes[0].Len(), int(indexes[0].ndim)
	lead := *out
	lead.ndim = uint8(k)
	for i := range n {
		if err := at(i); err != nil {
			return err
		}
		dst = *out
		dst.offset = lead.place(i)
		dst.ndim = out.ndim - uint8(k)
		dst.shape, dst.strides = [MaxDims]int{}, [MaxDims]int{}
		copy(dst.shape[:], out.shape[k:out.ndim])
		copy(dst.strides[:], out.strides[k:out.ndim])
		f(&dst, &src)
	}
	return nil
}

// Put sets a[indexes[0][i], …] to y[i], or adds y[i] to it, in the order of i. The shape of y is that of the result of Take.
func (ws *Workspace) Put(a, y *Array, add bool, indexes ...*Array) error {
	return eachPlace(y, a, indexes, func(src, dst *Array) {
		if add {
			ws.Add(dst, src)
		} else {
			CopyTo(dst, src)
		}
	})
}

// Add adds y, broadcast to the shape of a and of its type, to a.
func (ws *Workspace) Add(a, y *Array) {
	v, err := y.BroadcastTo(a.Shape()...)
	if err != nil {
		panic(err)
	}
	ws.Map(addPrograms[a.dtype], []*Array{a}, []*Array{a, v})
}

var addPrograms = [numDTypes]*Program{Bool: addProgram(Bool, Or), Int64: addProgram(Int64, Add), Float32: addProgram(Float32, Add), Float64: addProgram(Float64, Add)}

func addProgram(d DType, op Opcode) *Program {
	p := NewProgram(d, d)
	return p.Return(p.Append(op, 0, 1))
}
