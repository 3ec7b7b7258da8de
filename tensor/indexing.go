package tensor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A bound is a bound of an Index, as an op holds it: a number, or the next input.
type bound struct {
	kind boundKind
	n    int
}

type boundKind uint8

const (
	missing boundKind = iota
	fixed
	fromInput
)

// An entry is an Index, as an op holds it.
type entry struct {
	slice       bool
	start, stop bound
	step        int
	by          bool // the step is an input, after the bounds
}

// indexing holds the indexes of an op into the first dimensions of a tensor.
type indexing struct {
	entries []entry
	inputs  int // bounds that are inputs
}

// newIndexing splits indexes into those that an op holds and its inputs.
func newIndexing(name string, indexes []Index) (ix indexing, in []*fgraph.Variable) {
	add := func(v *fgraph.Variable) bound {
		if v == nil {
			return bound{}
		}
		v = AsSize(name, v)
		if n, ok := constantInt(v); ok {
			return bound{fixed, n}
		}
		in = append(in, v)
		return bound{fromInput, 0}
	}
	for _, i := range indexes {
		if i.Slice && i.Step == 0 && i.By == nil {
			fail(name, "a slice with step 0")
		}
		e := entry{slice: i.Slice, start: add(i.Start), stop: add(i.Stop), step: i.Step}
		if !i.Slice {
			e.step = 0
		} else if i.By != nil {
			if by := add(i.By); by.kind == fixed {
				e.step = by.n
			} else {
				e.step, e.by = 0, true
			}
			if e.step == 0 && !e.by {
				fail(name, "a slice with step 0")
			}
		}
		ix.entries = append(ix.entries, e)
	}
	ix.inputs = len(in)
	return ix, in
}

// indexes is the inverse of newIndexing.
func (ix indexing) indexes(in []*fgraph.Variable) []Index {
	next := 0
	get := func(b bound) *fgraph.Variable {
		switch b.kind {
		case fixed:
			return Int(b.n)
		case fromInput:
			next++
			return in[next-1]
		}
		return nil
	}
	list := make([]Index, len(ix.entries))
	for i, e := range ix.entries {
		list[i] = Index{Slice: e.slice, Start: get(e.start), Step: e.step}
		list[i].Stop = get(e.stop)
		if e.by {
			list[i].By = get(bound{fromInput, 0})
		}
	}
	return list
}

// NumIndexes returns the number of indexed dimensions.
func (ix indexing) NumIndexes() int { return len(ix.entries) }

// IsSlice reports whether index d is a slice, as opposed to one element. Unlike Indexes it
// allocates nothing.
func (ix indexing) IsSlice(d int) bool { return ix.entries[d].slice }

// dropped returns the number of dimensions that are indexed by one element.
func (ix indexing) dropped() int {
	n := 0
	for _, e := range ix.entries {
		if !e.slice {
			n++
		}
	}
	return n
}

// text returns for example "1:3,_", where an underscore is an input.
func (ix indexing) text() string {
	show := func(b bound) string { return [...]string{"", strconv.Itoa(b.n), "_"}[b.kind] }
	parts := make([]string, len(ix.entries))
	for i, e := range ix.entries {
		parts[i] = show(e.start)
		if e.slice {
			parts[i] += ":" + show(e.stop)
			switch {
			case e.by:
				parts[i] += ":_"
			case e.step != 1:
				parts[i] += ":" + strconv.Itoa(e.step)
			}
		}
	}
	return strings.Join(parts, ",")
}

func (ix indexing) equal(o indexing) bool { return slices.Equal(ix.entries, o.entries) }

func (ix indexing) hash(seed uint64) uint64 {
	h := seed
	for _, e := range ix.entries {
		for _, n := range []int{int(e.start.kind), e.start.n, int(e.stop.kind), e.stop.n, e.step} {
			h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
			h ^= h >> 31
		}
	}
	return h
}

// infer returns the type of what is selected of the first input. The inputs from first on are
// bounds.
func (ix indexing) infer(op fgraph.Op, in []*fgraph.Variable, first int) (spec, error) {
	x, rest := TypeOf(in[0]).h.Value(), in[first:]
	if len(ix.entries) > int(x.ndim) || x.csr {
		return x, argError(op, 0, "is a %v, which does not have %d dimensions to index", in[0].Type(), len(ix.entries))
	}
	if len(rest) != ix.inputs {
		return x, opError(op, "%d indexes, it takes %d", len(rest), ix.inputs)
	}
	for i, v := range rest {
		if !isSize(v) {
			return x, argError(op, first+i, "is a %v, not an integer", v.Type())
		}
	}
	s := spec{dtype: x.dtype}
	for d := range int(x.ndim) {
		n := int(x.shape[d])
		switch {
		case d >= len(ix.entries):
		case !ix.entries[d].slice:
			if k := ix.entries[d].start; k.kind == fixed && n != Unknown {
				if _, err := array.Position(int64(k.n), n); err != nil {
					return x, argError(op, 0, "is a %v: %v", in[0].Type(), err)
				}
			}
			continue
		case n != Unknown && ix.entries[d].known():
			start, stop := ix.entries[d].numbers(nil, new([2]int))
			n = array.SliceRange(n, start, stop, ix.entries[d].step).Count
		// All elements, up or down: the size stays what it is, even if it is not known.
		case ix.entries[d] == (entry{slice: true, step: 1}), ix.entries[d] == (entry{slice: true, step: -1}):
		default:
			n = Unknown
		}
		s.shape[s.ndim] = int32(n)
		s.ndim++
	}
	return s, nil
}

// known reports whether no bound is an input, nor the step.
func (e entry) known() bool {
	return e.start.kind != fromInput && e.stop.kind != fromInput && !e.by
}

// numbers returns the bounds at run time, of which next returns those that are inputs. They are in buf.
func (e entry) numbers(next func() int, buf *[2]int) (start, stop *int) {
	get := func(b bound, n *int) *int {
		switch b.kind {
		case fixed:
			*n = b.n
		case fromInput:
			*n = next()
		default:
			return nil
		}
		return n
	}
	start = get(e.start, &buf[0])
	return start, get(e.stop, &buf[1])
}

// view makes v the part of x that is selected. The arrays in hold the bounds that are inputs.
func (ix indexing) view(op fgraph.Op, v, x *array.Array, in []*array.Array) error {
	var buf [array.MaxDims]array.Range
	var bounds [2]int
	k := 0
	next := func() int { k++; return int(in[k-1].Int(0)) }
	for d, e := range ix.entries {
		start, stop := e.numbers(next, &bounds)
		if e.slice {
			step := e.step
			if e.by {
				// Beyond all sizes, a step selects the first element only, however large it is.
				if step = max(-far, min(next(), far)); step == 0 {
					return fmt.Errorf("%w: %v: a slice with step 0", ErrShape, op)
				}
			}
			buf[d] = array.SliceRange(x.Dim(d), start, stop, step)
			continue
		}
		p, err := array.Position(int64(*start), x.Dim(d))
		if err != nil {
			return fmt.Errorf("%w: %v: %w", ErrShape, op, err)
		}
		buf[d] = array.Range{Start: p, Drop: true}
	}
	x.RangeTo(v, buf[:len(ix.entries)]...)
	return nil
}

// NonzeroOp finds the true elements of a mask: an output for each dimension has their positions along
// it, in row-major order. Inputs are the mask and, if they are to be checked, the sizes that it must
// have.
type NonzeroOp = nonzeroOp

// RepeatIndexOp makes the vector of the integers 0, 1, …, each as often as its first input, a vector
// of counts, says. Its second input is the number of counts that there must be.
type RepeatIndexOp = repeatIndexOp

type (
	nonzeroOp     struct{ noGradient }
	repeatIndexOp struct{ noGradient }
)

// Nonzero returns, for each dimension of x, the positions of the elements that are not zero.
func Nonzero(x *fgraph.Variable) []*fgraph.Variable {
	if TypeOf(x).DType() != array.Bool {
		x = Map(array.Neq, x, Number(0, x))
	}
	a, err := Make(NonzeroOp{}, x)
	if err != nil {
		panic(err)
	}
	return a.Outputs()
}

func (nonzeroOp) String() string     { return "Nonzero" }
func (repeatIndexOp) String() string { return "RepeatIndex" }

func (op nonzeroOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) == 0 {
		return nil, opError(op, "needs a mask")
	}
	t := TypeOf(in[0])
	if t.DType() != array.Bool || t.NDim() == 0 {
		return nil, argError(op, 0, "is a %v, not a mask: a tensor of bools with dimensions", t)
	}
	if len(in) != 1 && len(in) != 1+t.NDim() {
		return nil, opError(op, "%d sizes for a %v", len(in)-1, t)
	}
	s, err := sizesOf(op, 1, in)
	if err != nil {
		return nil, err
	}
	for d, n := range s.shape[:s.ndim] {
		if _, err := agree(op, 0, int(n), t.Dim(d)); err != nil {
			return nil, err
		}
	}
	types := make([]fgraph.Type, t.NDim())
	for d := range types {
		types[d] = VectorType(array.Int64)
	}
	return types, nil
}

func (op repeatIndexOp) Infer(in []*fgraph.Variable) ([]fgraph.Type, error) {
	if len(in) != 2 {
		return nil, wrongCount(op, in, 2)
	}
	t := TypeOf(in[0])
	if t.DType() != array.Int64 || t.NDim() != 1 {
		return nil, argError(op, 0, "is a %v, not a vector of integers", t)
	}
	if !isSize(in[1]) {
		return nil, argError(op, 1, "is a %v, not a size", in[1].Type())
	}
	if n, ok := constantInt(in[1]); ok && t.Dim(0) != Unknown && t.Dim(0) != n {
		return nil, argError(op, 0, "has %d counts for %d elements", t.Dim(0), n)
	}
	c := ConstantOf(in[0])
	if c == nil {
		return one(VectorType(array.Int64)), nil
	}
	total := 0
	for i := range c.Len() {
		// A negative count is an error when the op runs. Large ones are cut so that the sum can't overflow.
		total += int(min(max(c.Int(i), 0), maxOffset))
	}
	return one(NewType(array.Int64, total)), nil
}

func (op nonzeroOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		for d, size := range in[1:] {
			if n := size.Int(0); n != int64(in[0].Dim(d)) {
				return fmt.Errorf("%w: %v: a mask of size %d for size %d in dimension %d", ErrShape, op, in[0].Dim(d), n, d)
			}
		}
		return ws.NonzeroTo(out, in[0])
	}, nil
}

func (op repeatIndexOp) Compile(*fgraph.Apply) (Kernel, error) {
	return func(ws *array.Workspace, in, out []*array.Array) error {
		if n := in[1].Int(0); n != int64(in[0].Len()) {
			return fmt.Errorf("%w: %v: %d counts for %d elements", ErrShape, op, in[0].Len(), n)
		}
		return shapeFault(ws.RepeatTo(out[0], in[0]))
	}, nil
}

// InferShape says that all outputs are as long as the first one.
func (op nonzeroOp) InferShape(a *fgraph.Apply, s *Shapes) [][]*fgraph.Variable {
	shapes := make([][]*fgraph.Variable, len(a.Outputs()))
	length := ShapeI(a.Outputs()[0], 0)
	for d := range shapes {
		shapes[d] = []*fgraph.Variable{length}
	}
	return shapes
}
