package ir

import (
	"slices"
	"strings"

	"github.com/nnopt/nnopt/onnx"
)

// standardProducts are products of matrices.
var standardProducts = []Operator{
	{Type: "MatMul", MinInputs: 2, MaxInputs: 2, Infer: func(c *Call) { c.matmul(c.elemOf(0, 1), 0, 1) }},
	{Type: "MatMulInteger", MinInputs: 2, MaxInputs: 4, Infer: func(c *Call) { c.matmul(onnx.Int32, 0, 1) }},
	{Type: "QLinearMatMul", MinInputs: 8, MaxInputs: 8, Infer: func(c *Call) { c.matmul(c.Elem(7), 0, 3) }},
	{Type: "Gemm", MinInputs: 2, MaxInputs: 3, Infer: inferGemm},
	{Type: "Einsum", MinInputs: 1, MaxInputs: -1, Infer: inferEinsum},
	{Type: "Det", MinInputs: 1, MaxInputs: 1, Infer: func(c *Call) {
		dims := c.ranked(0, c.Elem(0))
		n := len(dims) - 2
		c.failIf(n < 0, "there is no determinant of %d dimensions", len(dims))
		c.meet(dims[n+1], dims[n])
		c.Set(0, NewType(c.Elem(0), dims[:n]...))
	}},
}

// matmul infers the product of two inputs as NumPy's matmul.
func (c *Call) matmul(elem onnx.DataType, a, b int) {
	if c.In(a).Rank() == 0 || c.In(b).Rank() == 0 {
		c.Fail("there is no matrix product of scalars; a Mul is one of elements")
	}
	x, y := c.ranked(a, elem), c.ranked(b, elem)
	// A vector is a row on the left and a column on the right, without which the result is.
	row, column := len(x) == 1, len(y) == 1
	if row {
		x = []Dim{Known(1), x[0]}
	}
	if column {
		y = []Dim{y[0], Known(1)}
	}
	n, m := len(x), len(y)
	c.failIf(x[n-1].Differs(y[m-2]), "rows of %v elements and columns of %v", x[n-1], y[m-2])
	dims := c.broadcast(x[:n-2], y[:m-2])
	if !row {
		dims = append(dims, x[n-2])
	}
	if !column {
		dims = append(dims, y[m-1])
	}
	c.Set(0, NewType(elem, dims...))
}

func inferGemm(c *Call) {
	elem := c.elemOf(0, 1)
	x, y := c.sizesOf(0, 2), c.sizesOf(1, 2)
	if c.Op.Int("transA", 0) != 0 {
		slices.Reverse(x)
	}
	if c.Op.Int("transB", 0) != 0 {
		slices.Reverse(y)
	}
	rows, k, l, columns := x[0], x[1], y[0], y[1]
	c.failIf(k.Differs(l), "rows of %v elements and columns of %v; see transA and transB", k, l)
	if z, ranked := c.shape(2); ranked {
		c.failIf(len(z) > 2, "input 2 has %d dimensions", len(z))
		for i, d := range z { // it is broadcast to the product, not the other way round
			if out := []Dim{rows, columns}[2-len(z)+i]; d.Differs(Known(1)) && d.Differs(out) {
				c.Fail("size %v of input 2 does not broadcast to %v", d, out)
			}
		}
	}
	c.Set(0, NewType(elem, rows, columns))
}

// inferEinsum infers a sum of products over letters that are no dimension of the result.
func inferEinsum(c *Call) {
	elem := c.elemOf(c.all()...)
	equation := c.Op.Text("equation", "")
	terms, right := Equation(equation)
	if len(terms) != c.numInputs() {
		c.Fail("equation %.100q is one of %d inputs, not of %d", equation, len(terms), c.numInputs())
	}
	sizes := make(map[rune]Dim)
	var others []Dim // those of an ellipsis
	known := true
	for k, text := range terms {
		dims, ranked := c.shape(k)
		before, after, dots := strings.Cut(text, "...")
		letters := len(before) + len(after)
		switch {
		case strings.Contains(after, "."):
			c.Fail("equation %.100q", equation)
		case ranked && (len(dims) < letters || !dots && len(dims) > letters):
			c.Fail("input %d has %d dimensions, not %d as in %.100q", k, len(dims), letters, text)
		case !ranked && dots:
			known = false
		}
		if !ranked {
			dims = unknowns(letters)
		}
		for i, r := range before {
			c.letter(sizes, r, dims[i])
		}
		rest := dims[len(before) : len(dims)-len(after)]
		for i, r := range after {
			c.letter(sizes, r, dims[len(before)+len(rest)+i])
		}
		// What ellipses stand for need not be of one rank: it is aligned at the end and broadcast.
		others = c.broadcast(others, rest)
	}
	before, after, dots := strings.Cut(right, "...")
	if dots && !known {
		c.anyShape(elem)
	}
	var dims []Dim
	add := func(text string) {
		for _, r := range text {
			d, ok := sizes[r]
			c.failIf(!ok, "no input has the %q of equation %.100q", r, equation)
			dims = append(dims, d)
		}
	}
	add(before)
	if dots {
		dims = append(dims, others...)
	}
	add(after)
	c.Set(0, NewType(elem, dims...))
}

// Equation returns the terms of an equation of Einsum, and that of the result. If it is not written, it has what is not
// named, and then the letters that are there once, in the order of the alphabet.
func Equation(text string) (terms []string, out string) {
	left, out, explicit := strings.Cut(strings.ReplaceAll(text, " ", ""), "->")
	if !explicit {
		if strings.Contains(left, "...") {
			out = "..."
		}
		for r := 'A'; r <= 'z'; r++ {
			if strings.Count(left, string(r)) == 1 {
				out += string(r)
			}
		}
	}
	return strings.Split(left, ","), out
}

// letter notes the size of a letter of an equation, to which those of 1 are broadcast.
func (c *Call) letter(sizes map[rune]Dim, r rune, d Dim) {
	c.failIf(!(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'), "%q is no letter", r)
	if e, ok := sizes[r]; ok {
		d = c.broadcastDim(e, d)
	}
	sizes[r] = d
}

// standardReductions are operators that reduce dimensions. The axes are an input.
var standardReductions = slices.Concat(
	named(Operator{MinInputs: 1, MaxInputs: 2, Infer: inferReduction(nil)}, "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceSumSquare"),
	[]Operator{
		{Type: "ReduceMax", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.max)},
		{Type: "ReduceMin", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.min)},
		{Type: "ReduceProd", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.Times)},
		{Type: "ReduceSum", MinInputs: 1, MaxInputs: 2, Infer: inferReduction(Dim.Plus)},
	},
	named(Operator{MinInputs: 1, MaxInputs: 1, Infer: inferArgument}, "ArgMax", "ArgMin"),
)

// inferReduction returns the inference of a reduction. fold computes the result of elements that are
// integers, if there is one.
func inferReduction(fold func(d, e Dim) Dim) func(*Call) {
	return func(c *Call) {
		keep := c.Op.Int("keepdims", 1) != 0
		axes, known := c.numbers(1)
		if known = known || !c.has(1); known && len(axes) == 0 && c.Op.Int("noop_with_empty_axes", 0) != 0 {
			c.like(0, 0)
			return
		}
		elem := c.Elem(0)
		// Over all dimensions none is left, however many there were.
		if !keep && known && len(axes) == 0 && c.In(0).Rank() < 0 {
			c.Set(0, NewType(elem))
			return
		}
		dims := c.ranked(0, elem)
		if !known {
			// Any dimension may be reduced, but how many are may be known.
			n := c.count(1)
			switch {
			case keep:
				c.Set(0, NewType(elem, reducible(dims)...))
			case n > 0 && n <= len(dims):
				c.Set(0, NewType(elem, unknowns(len(dims)-n)...))
			default:
				c.anyShape(elem)
			}
			return
		}
		t := NewType(elem, c.reduced(dims, axes, keep)...)
		if list, ok := c.data(0); ok && fold != nil && len(list) > 0 { // which the type does not hold unless it is of all
			t = t.with([]Dim{folded(fold)(list)})
		}
		c.Set(0, t)
	}
}

// reducible returns sizes that may become 1.
func reducible(dims []Dim) []Dim {
	list := unknowns(len(dims))
	for i, d := range dims {
		if d.Is(1) {
			list[i] = d
		}
	}
	return list
}

// reduced returns sizes without those of axes, or with 1 in their place. No axes are all.
func (c *Call) reduced(dims []Dim, axes []int64, keep bool) []Dim {
	reduce := make([]bool, len(dims))
	for _, a := range axes {
		reduce[c.axis(a, len(dims))] = true
	}
	var out []Dim
	for i, d := range dims {
		switch {
		case !reduce[i] && len(axes) > 0:
			out = append(out, d)
		case keep:
			out = append(out, Known(1))
		}
	}
	return out
}

func inferArgument(c *Call) {
	dims := c.ranked(0, onnx.Int64)
	c.Set(0, NewType(onnx.Int64, c.reduced(dims, []int64{c.Op.Int("axis", 0)}, c.Op.Int("keepdims", 1) != 0)...))
}
