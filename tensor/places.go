package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A Place is where indexes point, in the first dimensions of a tensor.
type Place [array.MaxDims]int

// Places are where vectors of indexes point. In a dimension whose size is not known, all count from the
// first element, or all from the end.
type Places []Place

// maxPlaces bounds the indexes that PlacesOf looks at.
const maxPlaces = 1 << 16

// PlacesOf returns the places of constant vectors of indexes of the first dimensions of x, and whether
// they are known. They are not if an index is out of range.
func PlacesOf(x *fgraph.Variable, indexes []*fgraph.Variable) (Places, bool) {
	var places Places
	for d, v := range indexes {
		a := ConstantOf(v)
		if a == nil || a.NDim() != 1 || a.Len() > maxPlaces || d > 0 && a.Len() != len(places) || d >= TypeOf(x).NDim() {
			return nil, false
		}
		if places == nil {
			places = make(Places, a.Len())
		}
		size := TypeOf(x).Dim(d)
		for k := range places {
			switch i := a.Int(k); {
			case size != Unknown:
				p, err := array.Position(i, size)
				if err != nil {
					return nil, false
				}
				places[k][d] = p
			// Without the size, -1 and 3 may be the same place or not. Smaller than 32 bits, the least size
			// that a place needs doesn't overflow.
			case i != int64(int32(i)) || (i < 0) != (a.Int(0) < 0):
				return nil, false
			default:
				places[k][d] = int(i)
			}
		}
	}
	return places, true
}

// SameSigns reports whether two lists count from the same ends.
func (p Places) SameSigns(q Places) bool {
	if len(p) == 0 || len(q) == 0 {
		return true
	}
	for d := range p[0] {
		if (p[0][d] < 0) != (q[0][d] < 0) {
			return false
		}
	}
	return true
}

// Last returns the last position in the list of each place, and whether there is one position of each.
func (p Places) Last() (at map[Place]int, distinct bool) {
	at = make(map[Place]int, len(p))
	for k, place := range p {
		at[place] = k
	}
	return at, len(at) == len(p)
}

// LeastSize returns how many elements a dimension has to have.
func (p Places) LeastSize(d int) int {
	size := 0
	for _, place := range p {
		size = max(size, place[d]+1, -place[d])
	}
	return size
}

// DistinctIndexes reports whether the indexes of x are known to point to different places.
func DistinctIndexes(x *fgraph.Variable, indexes []*fgraph.Variable) bool {
	if len(indexes) == 0 {
		return false
	}
	if _, ok := OpOf(indexes[0]).(ARangeOp); ok && len(indexes) == 1 {
		in := indexes[0].Owner().Inputs()
		start, ok := constantInt(in[0])
		step, ok2 := constantInt(in[2])
		// From a negative start it would count across 0: -1 and n-1 are the same place.
		return ok && ok2 && start >= 0 && step > 0
	}
	if _, ok := OpOf(indexes[0]).(NonzeroOp); ok { // all positions of a mask
		return slices.Equal(indexes, indexes[0].Owner().Outputs())
	}
	places, ok := PlacesOf(x, indexes)
	_, once := places.Last()
	return ok && once
}
