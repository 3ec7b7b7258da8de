package tensor

import (
	"errors"
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// The ops that index the first dimensions of a tensor with integer tensors, whose number is the
// field K.
type (
	// AdvancedSubtensorOp selects elements or subtensors: inputs x, i0, i1, ….
	AdvancedSubtensorOp = advancedSubtensorOp
	// AdvancedIncSubtensorOp adds to what the indexes select, or sets it with the field Set: inputs
	// x, y, i0, i1, …. Dimensions of y whose type says size 1 are broadcast. Of values with the same index all are added, and the last one is set. With
	// the field Inplace it overwrites x.
	AdvancedIncSubtensorOp = advancedIncSubtensorOp
)

type (
	advancedSubtensorOp    struct{ K int8 }
	advancedIncSubtensorOp struct {
		likeFirst
		K            int8
		Set, Inplace bool
	}
)

// Take returns x[i0, i1, …], where the indexes are integer tensors of one shape.
func Take(x *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return MustApply(AdvancedSubtensorOp{K: int8(len(indexes))}, append([]*fgraph.Variable{x}, indexes...)...)
}

// IncTake returns x with y, which has the shape of Take(x, indexes...), added to what the
// indexes select.
func IncTake(x, y *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return MustApply(AdvancedIncSubtensorOp{K: int8(len(indexes))}, append([]*fgraph.Variable{x, y}, indexes...)...)
}

// SetTake returns x with what the indexes select replaced by y.
func SetTake(x, y *fgraph.Variable, indexes ...*fgraph.Variable) *fgraph.Variable {
	return MustApply(AdvancedIncSubtensorOp{K: int8(len(indexes)), Set: true}, append([]*fgraph.Variable{x, y}, indexes...)...)
}

func (op advancedSubtensorOp) String() string {
	if op.K == 1 {
		return "AdvancedSubtensor1"
	}
	return fmt.Sprintf("AdvancedSubtensor{%d}", op.K)
}

func (op advancedIncSubtensorOp) String() string {
	name := "Advanced" + changeName(op.Set) + "Subtensor"
	if op.K == 1 {
		return inplaceName(name+"1", op.Inplace)
	}
	return inplaceName(fmt.Sprintf("%s{%d}", name, op.K), op.Inplace)
}

func (op advancedIncSubtensorOp) DestroyMap() []fgraph.Alias { return destroys(op.Inplace, 0) }

func (op advancedIncSubtensorOp) Overwriting() Op { op.Inplace = true; return op }

// taken returns the type of what indexes, which are inputs from first on, select of x.
func taken(op fgraph.Op, x *fgraph.Variable, first int, indexes []*fgraph.Variable, k int) (spec, error) {
	t := TypeOf(x).h.Value()
	if len(indexes) != k || k == 0 || k > int(t.ndim) || t.csr {
		return t, opError(op, "%d indexes for a %v", len(indexes), x.Type())
	}
	s := TypeOf(indexes[0]).h.Value()
	// Nothing broadcasts here: NewPart has given the indexes one shape.
	for i, v := range indexes {
		u := TypeOf(v)
		if u.DType() != array.Int64 || u.NDim() != int(s.ndim) || u.NDim() == 0 {
			return t, argError(op, first+i, "is a %v, not an integer tensor like the other indexes", u)
		}
		for d := range u.NDim() {
			n, err := agree(op, first+i, int(s.shape[d]), u.Dim(d))
			if err != nil {
				return t, err
			}
			s.shape[d] = n
		}
	}
	if int(s.ndim)+int(t.ndim)-k > array.MaxDims {
		return t, opError(op, "too many dimensions")
	}
	s.dtype = t.dtype
	for _, n := range t.shape[k:t.ndim] {
		s.shape[s.ndim] = n
		s.ndim++
	}
	return s, nil
}

func (op advancedSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 2 {
		return nil, opError(op, "needs %d arguments, not %d", 2, len(in))
	}
	return inferred(taken(op, in[0], 1, in[1:], int(op.K)))
}

func (op advancedIncSubtensorOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) < 3 {
		return nil, opError(op, "needs %d arguments, not %d", 3, len(in))
	}
	s, err := taken(op, in[0], 2, in[2:], int(op.K))
	if err != nil {
		return nil, err
	}
	y := TypeOf(in[1])
	if y.DType() != s.dtype || y.NDim() != int(s.ndim) {
		return nil, argError(op, 1, "is a %v, not a %v", y, s.intern())
	}
	for d := range y.NDim() {
		if _, err := agree(op, 1, int(s.shape[d]), y.Dim(d)); err != nil && y.Dim(d) != 1 {
			return nil, err
		}
	}
	return []fgraph.Type{in[0].Type()}, nil
}

// sameShapes returns an error unless indexes have one shape.
func sameShapes(op fgraph.Op, indexes []*array.Array) error {
	for _, i := range indexes[1:] {
		if !array.SameShape(i, indexes[0]) {
			return fmt.Errorf("%w: %v: indexes of shapes %v and %v", ErrShape, op, indexes[0].Shape(), i.Shape())
		}
	}
	return nil
}

func (op advancedSubtensorOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := sameShapes(op, in[1:]); err != nil {
			return err
		}
		err := ws.Take(out[0], in[0], in[1:]...)
		if errors.Is(err, array.ErrIndex) {
			err = shapeFault(err)
		}
		return err
	}, nil
}

func (op advancedIncSubtensorOp) Compile(a *fgraph.Apply) (Kernel, error) {
	value := TypeOf(a.Inputs()[1]).h.Value()
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if err := sameShapes(op, in[2:]); err != nil {
			return err
		}
		shape := slices.Concat(in[2].Shape(), in[0].Shape()[len(in)-2:]) // of what is replaced
		for d, n := range in[1].Shape() {
			if value.shape[d] != 1 && n != shape[d] {
				return fmt.Errorf("%w: %v: a value of shape %v for %v", ErrShape, op, in[1].Shape(), shape)
			}
		}
		y := in[1]
		if !slices.Equal(shape, y.Shape()) {
			var err error
			if y, err = y.BroadcastTo(shape...); err != nil {
				return shapeFault(err)
			}
		}
		if err := target(ws, op.Inplace, out[0], in[0], 1); err != nil {
			return err
		}
		return shapeFault(ws.Put(out[0], y, !op.Set, in[2:]...))
	}, nil
}

func (op advancedSubtensorOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	x, i := a.Inputs()[0], a.Inputs()[1]
	dims := []*fgraph.Variable{}
	for d := range TypeOf(i).NDim() {
		dims = append(dims, s.Dim(i, d))
	}
	for d := int(op.K); d < TypeOf(x).NDim(); d++ {
		dims = append(dims, s.Dim(x, d))
	}
	return [][]*fgraph.Variable{dims}
}

func (op advancedSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	// Added, not set, because an element may have been taken several times.
	return gradients(a, IncTake(ZerosLike(a.Inputs()[0]), out[0], a.Inputs()[1:]...))
}

// Grad passes the gradient on. Of values that are set with the same index, all get the gradient of
// the last one.
func (op advancedIncSubtensorOp) Grad(a *fgraph.Apply, out []*fgraph.Variable) []*fgraph.Variable {
	x, indexes := out[0], a.Inputs()[2:]
	if op.Set {
		// What was replaced has no influence on the result.
		x = SetTake(x, ZerosLike(a.Inputs()[1]), indexes...)
	}
	return gradients(a, x, unbroadcast(Take(out[0], indexes...), a.Inputs()[1]))
}

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
