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

// Add adds y, which has the type of a and is broadcast to its shape, to a.
func (ws *Workspace) Add(a, y *Array) {
	v, err := y.BroadcastTo(a.Shape()...)
	if err != nil {
		panic(err)
	}
	ws.Map(addPrograms[a.dtype], []*Array{a}, []*Array{a, v})
}

var addPrograms = func() (list [numDTypes]*Program) {
	for d := range list {
		op := Add
		if DType(d) == Bool {
			op = Or
		}
		p := NewProgram(DType(d), DType(d))
		list[d] = p.Return(p.Append(op, 0, 1))
	}
	return list
}()
