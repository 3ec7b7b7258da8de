package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
)

// indexes reads what stands in the brackets of an index.
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

// index reads an expression or a slice.
func (p *parser) index() value {
	var parts [3]*value
	colons := 0
	for {
		t := p.peek()
		switch {
		case p.sign(":"):
			if colons++; colons > 2 {
				p.fail("a slice has three parts")
			}
		case p.sign("::"):
			if colons += 2; colons > 2 {
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

// index applies the indexes of an index expression.
func index(x value, indexes []value) *fgraph.Variable {
	const what = "index"
	v := x.tensor(what)
	if len(indexes) == 1 && indexes[0].tuple { // X[(0, 1)] is X[0, 1]
		indexes = indexes[0].list
	}
	indexes = expandEllipsis(indexes, TypeOf(v).NDim())
	var basic []Index
	var advanced []*fgraph.Variable
	order := []int{} // of the dimensions that remain
	kept := 0
	first := 0 // the dimension that remains of the first advanced index
	for _, ix := range indexes {
		switch ix.kind {
		case kindNone:
			order = append(order, NewAxis)
			continue
		case kindSlice:
			basic = append(basic, sliceIndex(what, ix.ix))
			order = append(order, kept)
			kept++
			continue
		}
		t := ix.tensor(what)
		if TypeOf(t).NDim() == 0 {
			basic = append(basic, At(t))
		} else {
			if len(advanced) == 0 {
				first = kept
			}
			basic = append(basic, Everything())
			advanced = append(advanced, t)
			kept++
		}
	}
	if len(advanced) > 0 {
		if slices.Contains(order, NewAxis) || separated(indexes) {
			fail(what, "integer tensors have to stand side by side, without None")
		}
		return takeAt(Subtensor(v, basic...), first, advanced)
	}
	if len(basic) > 0 {
		v = RawSubtensor(v, basic...)
	}
	for ; kept < TypeOf(v).NDim(); kept++ {
		order = append(order, kept)
	}
	return DimShuffle(v, order...)
}

// separated reports whether a slice stands between integers, or tensors of them. NumPy puts the dimensions of these in front then.
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

// takeAt takes what integer tensors select of the dimensions from first on. Their dimensions stand in the place of these.
func takeAt(x *fgraph.Variable, first int, indexes []*fgraph.Variable) *fgraph.Variable {
	if first == 0 {
		return Take(x, indexes...)
	}
	ndim, taken := TypeOf(x).NDim(), TypeOf(indexes[0]).NDim()
	if first+len(indexes) > ndim {
		fail("index", "%d indexes for a %v", first+len(indexes), x.Type())
	}
	var order []int
	for d := range len(indexes) {
		order = append(order, first+d)
	}
	for d := range ndim {
		if d < first || d >= first+len(indexes) {
			order = append(order, d)
		}
	}
	y := Take(DimShuffle(x, order...), indexes...)
	back := []int{}
	for d := range first {
		back = append(back, taken+d)
	}
	for d := range taken {
		back = append(back, d)
	}
	for d := taken + first; d < TypeOf(y).NDim(); d++ {
		back = append(back, d)
	}
	return DimShuffle(y, back...)
}

// expandEllipsis puts as many ":" in the place of "..." as are missing.
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

func sliceIndex(what string, s sliceValue) Index {
	part := func(x *value) *fgraph.Variable {
		if x == nil || x.kind == kindNone {
			return nil
		}
		return asSize(what, x.tensor(what))
	}
	step := 1
	if s.step != nil && s.step.kind != kindNone {
		step = s.step.integer(what)
	}
	return SliceOf(part(s.start), part(s.stop), step)
}
