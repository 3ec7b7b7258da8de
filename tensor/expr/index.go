package expr

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// indexes reads the indexes of x[…], after the opening bracket.
func (p *parser) indexes() []value {
	var list []value
	for {
		list = append(list, p.index())
		if !p.sign(",") {
			p.expect("]")
			return list
		}
		if p.sign("]") {
			return list
		}
	}
}

// index reads one index: an expression or a slice.
func (p *parser) index() value {
	var parts [3]*value
	colons := 0
	for {
		t := p.peek()
		switch {
		case p.sign(":"), p.sign("::"):
			if colons += len(t.text); colons > 2 {
				p.fail("a slice has three parts")
			}
		case t.kind == tokenSign && (t.text == "]" || t.text == ","):
			if colons == 0 {
				if parts[0] == nil {
					p.fail("an index is expected, not %s", t)
				}
				return *parts[0]
			}
			return value{kind: kindSlice, ix: sliceValue{parts[0], parts[1], parts[2]}}
		default:
			if parts[colons] != nil {
				p.fail("%q or %q expected, not %s", "]", ",", t)
			}
			x := p.expression(0)
			parts[colons] = &x
		}
	}
}

// index returns x[indexes].
func index(x value, indexes []value) *fgraph.Variable {
	const what = "index"
	v := x.tensor(what)
	if len(indexes) == 1 && indexes[0].tuple { // X[(0, 1)] is X[0, 1]
		indexes = indexes[0].list
	}
	indexes = expandEllipsis(indexes, tensor.TypeOf(v).NDim())
	var basic []tensor.Index
	var advanced []*fgraph.Variable
	order := []int{} // of the remaining dimensions
	kept := 0
	first := 0 // the remaining dimension of the first advanced index
	for _, ix := range indexes {
		switch ix.kind {
		case kindNone:
			order = append(order, array.NewAxis)
			continue
		case kindSlice:
			basic = append(basic, sliceIndex(what, ix.ix))
			order = append(order, kept)
			kept++
			continue
		}
		t := ix.tensor(what)
		if tensor.TypeOf(t).NDim() == 0 {
			basic = append(basic, tensor.At(t))
		} else {
			if len(advanced) == 0 {
				first = kept
			}
			basic = append(basic, tensor.Everything())
			advanced = append(advanced, t)
			kept++
		}
	}
	if len(advanced) > 0 {
		if slices.Contains(order, array.NewAxis) || separated(indexes) {
			fail(what, "integer tensors have to be adjacent, without None")
		}
		return takeAt(tensor.Subtensor(v, basic...), first, advanced)
	}
	if len(basic) > 0 {
		v = tensor.RawSubtensor(v, basic...)
	}
	for ; kept < tensor.TypeOf(v).NDim(); kept++ {
		order = append(order, kept)
	}
	return tensor.DimShuffle(v, order...)
}

// separated reports whether a slice separates integers or tensors of them. NumPy then puts their
// dimensions in front.
func separated(indexes []value) bool {
	groups, within := 0, false
	for _, ix := range indexes {
		if now := ix.kind != kindSlice; now != within {
			if within = now; now {
				groups++
			}
		}
	}
	return groups > 1
}

// takeAt indexes the dimensions from first on with integer tensors, whose dimensions replace them.
func takeAt(x *fgraph.Variable, first int, indexes []*fgraph.Variable) *fgraph.Variable {
	if first == 0 {
		return tensor.Take(x, indexes...)
	}
	ndim, taken := tensor.TypeOf(x).NDim(), tensor.TypeOf(indexes[0]).NDim()
	if first+len(indexes) > ndim {
		fail("index", "%d indexes for a %v", first+len(indexes), x.Type())
	}
	after := first + len(indexes)
	order := slices.Concat(dims(first, after), dims(0, first), dims(after, ndim))
	y := tensor.Take(tensor.DimShuffle(x, order...), indexes...)
	order = slices.Concat(dims(taken, taken+first), dims(0, taken), dims(taken+first, tensor.TypeOf(y).NDim()))
	return tensor.DimShuffle(y, order...)
}

// dims returns the dimensions [from, to).
func dims(from, to int) []int {
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}

// expandEllipsis replaces "..." with as many ":" as are missing.
func expandEllipsis(indexes []value, ndim int) []value {
	at := slices.IndexFunc(indexes, func(x value) bool { return x.kind == kindEllipsis })
	if at < 0 {
		return indexes
	}
	used := 0
	for _, x := range indexes {
		if x.kind != kindNone && x.kind != kindEllipsis {
			used++
		}
	}
	out := slices.Clone(indexes[:at])
	for range max(0, ndim-used) {
		out = append(out, value{kind: kindSlice})
	}
	return append(out, indexes[at+1:]...)
}

func sliceIndex(what string, s sliceValue) tensor.Index {
	part := func(x *value) *fgraph.Variable {
		if x == nil || x.kind == kindNone {
			return nil
		}
		return tensor.AsSize(what, x.tensor(what))
	}
	step := 1
	if s.step != nil && s.step.kind != kindNone {
		step = s.step.integer(what)
	}
	return tensor.SliceOf(part(s.start), part(s.stop), step)
}
