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
