package expr

import (
	"strconv"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
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
		// Two colons in a row are one sign.
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

// index returns x[indexes]. An integer or a slice selects of the results of a function that returns
// several.
func index(x value, indexes []value) value {
	const what = "index"
	if x.several && len(indexes) == 1 {
		if y, ok := pick(x.list, indexes[0]); ok {
			return y
		}
	}
	v := x.tensor(what)
	if len(indexes) == 1 && indexes[0].tuple { // X[(0, 1)] is X[0, 1]
		indexes = indexes[0].list
	}
	selectors := make([]tensor.Selector, len(indexes))
	ellipses := 0
	for i, ix := range indexes {
		switch ix.kind {
		case kindEllipsis:
			if ellipses++; ellipses > 1 {
				fail(what, "a second ...")
			}
			selectors[i] = tensor.Ellipsis()
		case kindNone:
			selectors[i] = tensor.NewDim()
		case kindSlice:
			selectors[i] = tensor.ByIndex(sliceIndex(what, ix.ix))
		default:
			selectors[i] = tensor.ByTensor(ix.indexTensor(what))
		}
	}
	part := tensor.NewPart(what, v, selectors...)
	return value{v: part.Get(), part: part}
}

// indexTensor is tensor for an index: an empty list has integers.
func (x value) indexTensor(what string) *fgraph.Variable {
	if x.kind == kindNumber && x.num.dtype == array.Int64 {
		return x.size(what)
	}
	v := x.tensor(what)
	if a := tensor.ConstantOf(v); a != nil && x.kind == kindList && a.Len() == 0 {
		return tensor.Constant(a.Cast(array.Int64))
	}
	return v
}

// pick returns what an integer or a slice selects of a list, and reports whether the index is one
// of these.
func pick(list []value, ix value) (value, bool) {
	const what = "index"
	switch ix.kind {
	case kindNumber:
		i, err := array.Position(int64(ix.integer(what)), len(list))
		if err != nil {
			fail(what, "%v of %d results", ix.num.i, len(list))
		}
		return list[i], true
	case kindSlice:
		bound := func(x *value) *int {
			if x == nil || x.kind == kindNone {
				return nil
			}
			n := x.integer(what)
			return &n
		}
		step := 1
		if n := bound(ix.ix.step); n != nil {
			step = *n
		}
		if step == 0 {
			fail(what, "a slice with step 0")
		}
		r := array.SliceRange(len(list), bound(ix.ix.start), bound(ix.ix.stop), step)
		part := value{kind: kindList, several: true, list: []value{}}
		for i := range r.Count {
			part.list = append(part.list, list[r.Start+i*r.Step])
		}
		return part, true
	}
	return value{}, false
}

// after returns the selectors that apply last to one dimension, and select everything of those before
// it.
func after(axis int, last tensor.Selector) []tensor.Selector {
	list := make([]tensor.Selector, axis, axis+1)
	for d := range list {
		list[d] = tensor.ByIndex(tensor.Everything())
	}
	return append(list, last)
}

// dims returns the dimensions [from, to).
func dims(from, to int) []int {
	list := make([]int, to-from)
	for i := range list {
		list[i] = from + i
	}
	return list
}

func sliceIndex(what string, s sliceValue) tensor.Index {
	part := func(x *value) *fgraph.Variable {
		if x == nil || x.kind == kindNone {
			return nil
		}
		return x.size(what)
	}
	return tensor.SliceBy(part(s.start), part(s.stop), part(s.step))
}

// postfix reads what follows an expression: an attribute, a method, an index, or the number of an
// output.
func (p *parser) postfix(x value) value {
	for {
		t := p.peek()
		switch {
		case p.sign("."):
			name := p.take()
			if name.kind != tokenName {
				p.next--
				p.fail("a name is expected after the dot")
			}
			p.at = name.pos
			if p.sign("(") {
				if full, ok := methods[name.text]; ok {
					name.text = full
				}
				x = p.call(name, []value{x})
				continue
			}
			x = p.mark(attribute(name.text, x.tensor(name.text)))
		case p.sign("["):
			indexes := p.indexes()
			p.at = t.pos
			x = p.mark(index(x, indexes))
		// Only if there are several outputs: in an index, x[a::2] goes on like this as well.
		case t.text == "::" && x.kind == kindTensor && x.v.Owner() != nil && len(x.v.Owner().Outputs()) > 1:
			p.next++
			n := p.take()
			k, err := strconv.Atoi(n.text)
			if err != nil || k < 0 || k >= len(x.v.Owner().Outputs()) {
				p.fail("there is no output %s", n)
			}
			x = tensorValue(x.v.Owner().Outputs()[k])
		default:
			return x
		}
	}
}

// methods are the names of functions that are shorter as methods: x[1:3].set(y).
var methods = map[string]string{"set": "set_subtensor", "inc": "inc_subtensor"}

// attribute returns what x.name means.
func attribute(name string, x *fgraph.Variable) value {
	switch name {
	case "T":
		return tensorValue(tensor.Transpose(x))
	case "mT":
		return tensorValue(matrixTranspose(x))
	case "shape":
		return tensorValue(tensor.Shape(x))
	case "ndim":
		return value{kind: kindNumber, num: intNumber(int64(tensor.TypeOf(x).NDim()))}
	case "size":
		return tensorValue(tensor.ReduceOver(array.Prod, tensor.Shape(x)))
	case "dtype":
		return value{kind: kindName, text: tensor.TypeOf(x).DType().String()}
	}
	fail(name, "a tensor has no such attribute; there are T, mT, shape, ndim, size and dtype%s", spell.Hint(name, []string{"shape", "ndim", "size", "dtype"}))
	return value{}
}

// elements holds the functions that select and change elements as the operators of ONNX of these
// names do.
var elements = map[string]function{
	"gather_elements": func(c *call) *fgraph.Variable {
		c.count(3)
		return tensor.GatherElements(c.tensor(0, "x"), c.tensor(1, "indices"), c.integer(2, "axis", 0))
	},
	"gather_nd": func(c *call) *fgraph.Variable {
		c.count(2)
		return tensor.GatherND(c.tensor(0, "x"), c.tensor(1, "indices"))
	},
	"scatter_elements": func(c *call) *fgraph.Variable {
		c.count(4)
		x, index, y := c.scatter()
		return tensor.ScatterElements(x, index, y, c.integer(3, "axis", 0), c.adds())
	},
	"scatter_nd": func(c *call) *fgraph.Variable {
		c.count(3)
		x, index, y := c.scatter()
		return tensor.ScatterND(x, index, y, c.adds())
	},
}

func (c *call) scatter() (x, index, y *fgraph.Variable) {
	return c.tensor(0, "x"), c.tensor(1, "indices"), c.tensor(2, "updates")
}

// adds returns whether values are added, and not set.
func (c *call) adds() bool {
	switch reduction := c.text(-1, "reduction", "none"); reduction {
	case "add":
		return true
	case "none":
	default:
		fail(c.name, "there is no reduction %q; there are none and add", reduction)
	}
	return false
}

// topK returns values and positions.
func topK(c *call) value {
	c.count(3)
	values, places := tensor.TopK(c.tensor(0, "x"), c.need(1, "k").size(c.name), c.axis(2, -1), c.flag(-1, "largest", true))
	return results([]*fgraph.Variable{values, places})
}
