package ir

import "github.com/nnopt/nnopt/onnx"

// standardLogic are operators whose results are true or false, or that select by them. As elements of a
// type, true is 1 and false 0.
var standardLogic = []Operator{
	{Type: "And", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return decided(x, 0) })},
	{Type: "Or", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(func(x []Dim) Dim { return decided(x, 1) })},
	{Type: "Xor", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferElements(differs)},
	{Type: "Not", MinInputs: 1, MaxInputs: 1, Infer: inferElements(func(x []Dim) Dim { return Known(1).Minus(x[0]) })},
	{Type: "Equal", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(differs(x)) })},
	{Type: "Greater", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(atMost(x[0], x[1])) })},
	{Type: "GreaterOrEqual", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return atMost(x[1], x[0]) })},
	{Type: "Less", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return Known(1).Minus(atMost(x[1], x[0])) })},
	{Type: "LessOrEqual", MinInputs: 2, MaxInputs: 2, Infer: inferComparison(func(x []Dim) Dim { return atMost(x[0], x[1]) })},
	{Type: "IsNaN", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.shaped(0, onnx.Bool, 0) }},
	{Type: "IsInf", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.shaped(0, onnx.Bool, 0) }},
	{Type: "Where", MinInputs: 3, MaxInputs: 3, Infer: inferWhere},
}

// inferComparison returns the inference of an operator of two inputs that compares their elements.
func inferComparison(compare func(x []Dim) Dim) func(*Call) {
	return func(c *Call) {
		c.elemOf(0, 1)
		dims, ranked := c.broadcastInputs(0, 1)
		t := tensor(onnx.Bool, dims, ranked)
		if list, ok := c.eachElement(compare); ok {
			t = t.with(list)
		}
		c.Set(0, t)
	}
}

// decided returns the result of an operator that one input of this value decides, as 1 decides Or: it is
// the value, or the other one if both inputs are, or not known.
func decided(x []Dim, value int64) Dim {
	switch {
	case x[0].Is(value) || x[1].Is(value):
		return Known(value)
	case x[0].Is(1-value) && x[1].Is(1-value):
		return Known(1 - value)
	}
	return UnknownDim
}

// differs returns 1 if two numbers are known to differ, 0 if they are known to be the same.
func differs(x []Dim) Dim {
	switch {
	case x[0].Same(x[1]):
		return Known(0)
	case x[0].Differs(x[1]):
		return Known(1)
	}
	return UnknownDim
}

// atMost returns 1 if d is known to be at most e, and 0 if it is known not to be.
func atMost(d, e Dim) Dim {
	switch {
	case d.atMost(e):
		return Known(1)
	case e.Plus(Known(1)).atMost(d):
		return Known(0)
	}
	return UnknownDim
}

func inferWhere(c *Call) {
	elem := c.elemOf(1, 2)
	dims, ranked := c.broadcastInputs(0, 1, 2)
	t := tensor(elem, dims, ranked)
	list, ok := c.eachElement(func(x []Dim) Dim {
		switch {
		case x[0].Is(1) || x[1].Same(x[2]):
			return x[1]
		case x[0].Is(0):
			return x[2]
		}
		return UnknownDim
	})
	if ok && isInteger(elem) {
		t = t.with(list)
	}
	c.Set(0, t)
}
