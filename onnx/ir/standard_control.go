package ir

import "slices"

// standardControl are operators of graphs. Those of loops are bodies.
var standardControl = []Operator{
	// The inputs are a condition and the results of both branches.
	{Type: "If", MinInputs: 1, MaxInputs: -1, Infer: inferIf},
	{Type: "Loop", MinInputs: 0, MaxInputs: -1, Infer: inferLoop},
	{Type: "Scan", MinInputs: 1, MaxInputs: -1, Infer: inferScan},
	{Type: "SequenceMap", MinInputs: 1, MaxInputs: -1, Infer: func(c *Call) {
		for k := range c.Op.Outputs {
			c.Set(k, sequenceOf(c.made("body", k)))
		}
	}},
}

func inferIf(c *Call) {
	n := c.Op.Outputs
	if c.numInputs() != 2*n+1 {
		return
	}
	condition, known := c.one(0).Number()
	for k := range n {
		then, otherwise := c.In(1+k), c.In(1+n+k)
		// Where the condition is known, the branch that is not taken may have any type.
		switch {
		case known && condition != 0:
			c.Set(k, then)
		case known:
			c.Set(k, otherwise)
		default:
			c.Set(k, then.Join(otherwise))
		}
	}
}

// made returns the type of a result of a body. Symbols are left out, because in each round they may be
// other numbers.
func (c *Call) made(body string, k int) Type {
	b := c.Op.Body(body)
	if b == nil || k < 0 || k >= len(b.Graph.Outputs()) {
		return Type{}
	}
	t := TypeOf(b.Graph.Outputs()[k]).withoutData().numbersOnly()
	if k < len(b.types) {
		if both, ok := t.Meet(b.types[k]); ok {
			t = both
		}
	}
	return t
}

// numbersOnly returns the type without symbols.
func (t Type) numbersOnly() Type {
	if open, inner, ok := t.unwrap(); ok {
		return inner.numbersOnly().wrap(open)
	}
	dims, ranked := t.Shape()
	if !ranked {
		return t
	}
	for i, d := range dims {
		if _, ok := d.Number(); !ok {
			dims[i] = UnknownDim
		}
	}
	return NewType(t.elem, dims...)
}

// carried returns the type of a value that a loop carries: it is the first one, or what a round made.
func (c *Call) carried(first, round Type) Type {
	first = first.withoutData()
	if round.IsUnknown() && first.IsTensor() { // rounds can't change the type of elements
		return AnyShape(first.elem)
	}
	return first.Join(round)
}

// inferLoop: the inputs are a number of rounds, a condition, and the values that are carried. The graph
// returns the condition, those values, and elements of further results.
func inferLoop(c *Call) {
	carried := max(c.numInputs()-2, 0)
	for k := range c.Op.Outputs {
		round := c.made("body", k+1)
		switch dims, ranked := round.Shape(); {
		case k < carried:
			c.Set(k, c.carried(c.In(k+2), round))
		case !round.IsTensor():
		default:
			// The condition may end the loop in any round, so the number of elements is data.
			c.Set(k, tensor(round.elem, slices.Insert(dims, 0, UnknownDim), ranked))
		}
	}
}

// inferScan: the last inputs are scanned along an axis, and the others are carried, with a shape that
// does not change. In opset 8, there were lengths in front, and all dimensions came behind a batch.
func inferScan(c *Call) {
	scanned := int(min(max(c.Op.Int("num_scan_inputs", 0), 0), int64(c.numInputs())))
	first := 0
	batch := c.Legacy != 0 && c.Legacy < 9
	if batch {
		first = 1
	}
	carried := c.numInputs() - scanned - first
	c.failIf(carried < 0, "%d inputs, of which %d are scanned", c.numInputs(), scanned)
	rounds, size := UnknownDim, UnknownDim
	axes := c.Op.Ints("scan_input_axes")
	for i := range scanned {
		dims, ranked := c.shape(first + carried + i)
		if !ranked {
			continue
		}
		axis := int64(0)
		if i < len(axes) {
			axis = axes[i]
		}
		// Opset 8 had no scan_input_axes: the axis behind the batch was scanned.
		if batch {
			c.failIf(len(dims) < 2, "a scan of %d dimensions", len(dims))
			size, axis = c.meet(size, dims[0]), 1
		}
		rounds = c.meet(rounds, dims[c.axis(axis, len(dims))])
	}
	axes = c.Op.Ints("scan_output_axes")
	for k := range c.Op.Outputs {
		// Rounds must not change the shape of what is carried, but they do change its elements.
		if k < carried {
			c.Set(k, c.In(first+k).withoutData())
			continue
		}
		round := c.made("body", k)
		dims, ranked := round.Shape()
		if !ranked || batch {
			if ranked {
				dims = append([]Dim{size, rounds}, dims...)
			}
			c.Set(k, tensor(round.elem, dims, ranked))
			continue
		}
		axis := 0
		if i := k - carried; i < len(axes) {
			axis = c.axis(axes[i], len(dims)+1)
		}
		c.Set(k, NewType(round.elem, slices.Insert(dims, axis, rounds)...))
	}
}
