package lower

import (
	"slices"

	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/tensor"
)

// A sequence is a list of values of a model. Its length is known, since places in it are.
type sequence struct {
	items []*value
	elem  onnx.DataType // Undefined if nothing says
}

// The operators of sequences, and of optional values: these are values, or that there is none.
var sequences = map[string]func(c *call) []*value{
	"SequenceConstruct": func(c *call) []*value {
		c.failIf(len(c.xs()) == 0, "there are no inputs")
		return c.sequenceOf(slices.Clone(c.in), c.elem(0))
	},
	"SequenceEmpty": func(c *call) []*value {
		return c.sequenceOf(nil, onnx.DataType(c.int("dtype", int(onnx.Float))))
	},
	"SequenceInsert": func(c *call) []*value {
		s := c.sequence(0)
		if e := c.elem(1); s.elem != onnx.Undefined && s.elem != e {
			c.fail("a tensor of %v for a sequence of %v", e, s.elem)
		}
		return c.sequenceOf(slices.Insert(slices.Clone(s.items), c.place(2, len(s.items), len(s.items)+1), c.in[1]), c.elem(1))
	},
	"SequenceErase": func(c *call) []*value {
		s := c.sequence(0)
		i := c.place(1, len(s.items)-1, len(s.items))
		return c.sequenceOf(slices.Delete(slices.Clone(s.items), i, i+1), s.elem)
	},
	"SequenceAt": func(c *call) []*value {
		s := c.sequence(0)
		return []*value{s.items[c.place(1, -1, len(s.items))]}
	},
	"SequenceLength": func(c *call) []*value {
		return c.out(tensor.Int(len(c.sequence(0).items)), onnx.Int64)
	},
	"SplitToSequence":    (*call).splitToSequence,
	"ConcatFromSequence": (*call).concatFromSequence,
	"Optional": func(c *call) []*value {
		if c.has(0) {
			return []*value{c.in[0]}
		}
		return []*value{{none: true}}
	},
	"OptionalHasElement": func(c *call) []*value {
		has := 0
		if c.has(0) && !c.in[0].none {
			has = 1
		}
		return c.out(truth(tensor.Int(has)), onnx.Bool)
	},
	"OptionalGetElement": func(c *call) []*value {
		c.failIf(!c.has(0) || c.in[0].none, "there is no value")
		return []*value{c.in[0]}
	},
}

// sequence returns an input that is a sequence.
func (c *call) sequence(k int) *sequence {
	c.failIf(!c.has(k), "input %d is missing", k)
	s := c.in[k].list
	c.failIf(s == nil, "input %d is no sequence", k)
	return s
}

func (c *call) sequenceOf(items []*value, elem onnx.DataType) []*value {
	c.failIf(len(items) > maxSteps, "%w: a sequence of %d", ErrUnsupported, len(items))
	for _, v := range items {
		c.failIf(v.elem != elem, "a sequence of %v and %v", elem, v.elem)
	}
	return []*value{{list: &sequence{items, elem}}}
}

// place returns a place of n, which may count from the end: the last item is one before the end, also
// where there is a place behind it.
func (c *call) place(k, otherwise, n int) int {
	i := otherwise
	if c.has(k) {
		if i = int(c.array(k).Int(0)); i < 0 && c.op.Type == "SequenceInsert" {
			i--
		}
		if i < 0 {
			i += n
		}
	}
	c.failIf(i < 0 || i >= n, "there is no place %d in a sequence", i)
	return i
}

// splitToSequence makes pieces of a size, of several sizes, or single elements.
func (c *call) splitToSequence() []*value {
	x := c.x(0)
	axis := c.axis(c.int("axis", 0), ndim(x))
	n := c.shape(x)[axis]
	var parts []int
	switch {
	case c.has(1) && ndim(c.x(1)) > 0:
		parts = c.ints(1)
	default:
		size := 1
		if c.has(1) {
			size = int(c.one(1))
		}
		c.failIf(size < 1 || n/size > maxSteps, "pieces of %d of %d", size, n)
		for left := n; left > 0; left -= size {
			parts = append(parts, min(size, left))
		}
	}
	sum := 0
	for _, p := range parts {
		c.failIf(p < 0 || p > n, "pieces of %v of %d", parts, n)
		sum += p
	}
	c.failIf(sum != n || len(parts) > maxSteps, "%d pieces with %d of %d elements", len(parts), sum, n)
	var items []*value
	from := 0
	for _, p := range parts {
		index := tensor.SliceOf(tensor.Int(from), tensor.Int(from+p), 1)
		if !c.has(1) && !c.bool("keepdims", true) {
			index = tensor.At(tensor.Int(from))
		}
		items = append(items, c.typed(part(x, axis, index), c.elem(0)))
		from += p
	}
	return c.sequenceOf(items, c.elem(0))
}

// concatFromSequence joins the items along a dimension, which may be a new one.
func (c *call) concatFromSequence() []*value {
	s := c.sequence(0)
	c.failIf(len(s.items) == 0, "%w: an empty sequence", ErrUnsupported)
	list := (&call{lowering: c.lowering, in: s.items}).xs()
	n, axis := ndim(list[0]), c.int("axis", 0)
	if c.bool("new_axis", false) {
		return c.out(tensor.Stack(c.axis(axis, n+1), list...), s.elem)
	}
	return c.out(tensor.Join(c.axis(axis, n), list...), s.elem)
}

// sequenceMap runs a body for the items of sequences. Tensors are the same for all.
func (c *call) sequenceMap() []*value {
	b := c.body("body")
	n := len(c.sequence(0).items)
	lists := make([][]*value, len(b.Graph.Outputs()))
	for i := range n {
		args := slices.Clone(c.in)
		for k, v := range args {
			if v == nil || v.list == nil {
				continue
			}
			c.failIf(len(v.list.items) != n, "sequences of %d and %d", n, len(v.list.items))
			args[k] = v.list.items[i]
		}
		for k, v := range b.run(args...) {
			lists[k] = append(lists[k], v)
		}
	}
	var out []*value
	for _, list := range lists {
		elem := onnx.Undefined
		if len(list) > 0 {
			elem = list[0].elem
		}
		out = append(out, c.sequenceOf(list, elem)...)
	}
	return out
}
