package ir

import "github.com/nnopt/nnopt/onnx"

// standard are ONNX's own operators.
var standard = []Operator{
	{Type: "Identity", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) { c.Set(0, c.In(0)) }},
	{Type: "Add", MinInputs: 2, MaxInputs: 2, Commutes: true, Infer: arithmetic(Dim.Plus)},
	{Type: "Shape", MinInputs: 1, MaxInputs: 1, Infer: inferShape},
}

// arithmetic infers the types of an element-wise operator of two inputs that computes sizes, too.
func arithmetic(compute func(d, e Dim) Dim) func(*Call) {
	return func(c *Call) {
		if c.Elem(0) != c.Elem(1) && c.Elem(0) != onnx.Undefined && c.Elem(1) != onnx.Undefined {
			c.Fail("elements of types %v and %v", c.Elem(0), c.Elem(1))
		}
		x, ranked := c.Shape(0)
		y, too := c.Shape(1)
		if !ranked || !too {
			c.Set(0, AnyShape(c.Elem(0)))
			return
		}
		t := NewType(c.Elem(0), c.Broadcast(x, y)...)
		p, known := c.Data(0)
		q, both := c.Data(1)
		if known && both && (len(p) == len(q) || len(p) == 1 || len(q) == 1) {
			data := make([]Dim, max(len(p), len(q)))
			for i := range data {
				data[i] = compute(p[i%len(p)], q[i%len(q)])
			}
			t = t.WithData(data)
		}
		c.Set(0, t)
	}
}

func inferShape(c *Call) {
	dims, ranked := c.Shape(0)
	if !ranked {
		c.Set(0, NewType(onnx.Int64, UnknownDim))
		return
	}
	clamp := func(k int64) int64 {
		if n := int64(len(dims)); k < 0 {
			return max(k+n, 0)
		} else {
			return min(k, n)
		}
	}
	start, end := clamp(c.Op.Int("start", 0)), clamp(c.Op.Int("end", int64(len(dims))))
	dims = dims[start:max(start, end)]
	c.Set(0, NewType(onnx.Int64, Known(int64(len(dims)))).WithData(dims))
}
