package array

import (
	"errors"
	"fmt"
)

// ErrIndex is wrapped if an index is out of range.
var ErrIndex = errors.New("index out of range")

// Position returns the position of index i in a dimension of size n. Negative indexes count from
// the end.
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

// dropFrom gives the view the dimensions of src from k on.
func (a *Array) dropFrom(src *Array, k int) {
	a.ndim = src.ndim - uint8(k)
	a.shape, a.strides = [MaxDims]int{}, [MaxDims]int{}
	copy(a.shape[:], src.shape[k:src.ndim])
	copy(a.strides[:], src.strides[k:src.ndim])
}

// Take sets out[i] to a[indexes[0][i], indexes[1][i], …]. The indexes are integer arrays of one
// shape. The shape of out is that of the indexes, followed by the remaining dimensions of a. The
// error wraps ErrIndex.
func Take(out, a *Array, indexes ...*Array) error {
	return eachPlace(out, a, indexes, func(dst, src *Array) { CopyTo(dst, src) })
}

// eachPlace calls f for each index i with the views out[i] and a[indexes[0][i], …].
func eachPlace(out, a *Array, indexes []*Array, f func(dst, src *Array)) error {
	var dst, src Array
	lead := *out
	lead.ndim = indexes[0].ndim
	for i := range indexes[0].Len() {
		dst = *out
		src = *a
		for d, index := range indexes {
			p, err := Position(index.Int(i), a.shape[d])
			if err != nil {
				return err
			}
			src.offset += p * a.strides[d]
		}
		src.dropFrom(a, len(indexes))
		dst.offset = lead.place(i)
		dst.dropFrom(out, int(lead.ndim))
		f(&dst, &src)
	}
	return nil
}

// Put sets a[indexes[0][i], …] to y[i], or adds y[i] to it, in the order of i. The shape of y is
// that of the result of Take. The error wraps ErrIndex.
func (ws *Workspace) Put(a, y *Array, add bool, indexes ...*Array) error {
	return eachPlace(y, a, indexes, func(src, dst *Array) {
		if add {
			ws.Add(dst, src)
		} else {
			CopyTo(dst, src)
		}
	})
}

// Add adds y, which has the type of a and is broadcast to its shape, to a.
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
