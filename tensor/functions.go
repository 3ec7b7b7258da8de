package tensor

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A call is a function of the expression language with its arguments.
type call struct {
	name  string
	args  []value
	named map[string]value
	used  int // how many of named were asked for
}

// arg returns argument i, by place or by name, and whether it is there.
func (c *call) arg(i int, name string) (value, bool) {
	if i >= 0 && i < len(c.args) {
		return c.args[i], true
	}
	x, ok := c.named[name]
	if ok {
		c.used++
	}
	return x, ok
}

// tensor returns argument i as a tensor.
func (c *call) tensor(i int, name string) *fgraph.Variable {
	x, ok := c.arg(i, name)
	if !ok {
		fail(c.name, "argument %s is missing", name)
	}
	return x.tensor(c.name)
}

// count complains unless there are between least and most arguments.
func (c *call) count(least, most int) {
	if n := len(c.args); n > most || n+len(c.named) < least {
		fail(c.name, "%d arguments", n+len(c.named))
	}
}

// axes returns the argument axis.
func (c *call) axes(i int) []int {
	x, ok := c.arg(i, "axis")
	if !ok || x.kind == kindNone {
		return nil
	}
	return x.integers(c.name)
}

// run makes the expression, and reports whether there is such a function.
func (c *call) run() (value, bool) {
	if f := functions[c.name]; f != nil {
		v := f(c)
		if c.used < len(c.named) {
			fail(c.name, "takes no argument of such a name")
		}
		return tensorValue(v), true
	}
	if o, ok := array.OpByName(c.name); ok && o != array.Cast {
		if len(c.named) > 0 {
			fail(c.name, "takes no named arguments")
		}
		return tensorValue(mapValues(o, c.args)), true
	}
	for r := range array.NumReductions {
		if r.String() == c.name {
			return tensorValue(c.reduce(r)), true
		}
	}
	op, ok := NamedOp(c.name)
	if !ok {
		return value{}, false
	}
	in := tensorsFor(op, c.args)
	return tensorValue(Apply(op, in...)), true
}

// tensorsFor returns arguments of an op that was written as it prints. Numbers take the type of the tensors beside them where they are
// combined with them, and as many dimensions; sizes and indexes are as they are written.
func tensorsFor(op Op, args []value) []*fgraph.Variable {
	switch op := op.(type) {
	case Elemwise:
		return pad(tensors(op.String(), args))
	case Dot22ScalarOp, GemmOp, GemvOp, GerOp, UsmmOp:
		return tensors(op.String(), args)
	}
	in := make([]*fgraph.Variable, len(args))
	for i, x := range args {
		if change, ok := op.(*IncSubtensorOp); ok && i == 1 && x.kind == kindNumber {
			in[1] = x.num.in(TypeOf(in[0]).DType())
			in[1] = PadLeft(in[1], TypeOf(in[0]).NDim()-change.dropped())
			continue
		}
		in[i] = x.tensor(op.String())
	}
	return in
}

func (c *call) reduce(r array.Reduction) *fgraph.Variable {
	c.count(1, 2)
	x := c.tensor(0, "x")
	axes := c.axes(1)
	keep, ok := c.arg(-1, "keepdims")
	if c.used < len(c.named) {
		fail(c.name, "takes the arguments axis and keepdims")
	}
	y := reduction(r, x, axes)
	if ok && keep.kind == kindNumber && keep.num.f != 0 {
		y = keepDims(y, OpOf(y).(Reduce).Over(TypeOf(x).NDim()), TypeOf(x).NDim())
	}
	return y
}

// functions are those of the expression language that are not simply ops.
var functions = map[string]func(c *call) *fgraph.Variable{
	"abs_": mapped(array.Abs), "fill": (*call).fill, "second": (*call).fill, "where": mapped(array.Switch), "reciprocal": mapped(array.Inv),
	"sqrt_": mapped(array.Sqrt), "power": mapped(array.Pow), "divide": mapped(array.TrueDiv), "clip": (*call).clip, "sign": mapped(array.Sgn),
	"square": mapped(array.Sqr), "negative": mapped(array.Neg), "and_": mapped(array.And), "or_": mapped(array.Or),
	"identity": mapped(array.Identity), "tensor_copy": mapped(array.Identity),
	"dot": (*call).dot, "outer": func(c *call) *fgraph.Variable {
		c.count(2, 2)
		return Outer(c.tensor(0, "x"), c.tensor(1, "y"))
	},
	"sdot":      func(c *call) *fgraph.Variable { c.count(2, 2); return SparseDot(c.tensor(0, "x"), c.tensor(1, "y")) },
	"transpose": (*call).transpose, "dimshuffle": (*call).dimshuffle, "reshape": (*call).reshape, "flatten": (*call).flatten,
	"ravel": func(c *call) *fgraph.Variable { c.count(1, 1); return Flatten(c.tensor(0, "x"), 1) },
	"relu": func(c *call) *fgraph.Variable {
		c.count(1, 1)
		x := c.tensor(0, "x")
		return Maximum(x, Number(0, x))
	},
	"var": (*call).variance, "std": func(c *call) *fgraph.Variable { return Sqrt(c.variance()) },
	"shape": func(c *call) *fgraph.Variable { c.count(1, 1); return Shape(c.tensor(0, "x")) },
	"alloc": (*call).alloc, "Alloc": (*call).alloc, "zeros": filled(0), "ones": filled(1),
	"zeros_like": func(c *call) *fgraph.Variable { c.count(1, 1); return ZerosLike(c.tensor(0, "x")) },
	"ones_like":  func(c *call) *fgraph.Variable { c.count(1, 1); return OnesLike(c.tensor(0, "x")) },
	"cast":       (*call).cast, "astype": (*call).cast, "mean": (*call).mean, "argmax": (*call).argmax,
	"join": (*call).join, "concatenate": (*call).concatenate, "stack": (*call).stack, "arange": (*call).arange,
	"softmax":     func(c *call) *fgraph.Variable { c.count(1, 1); return Softmax(c.tensor(0, "x")) },
	"log_softmax": func(c *call) *fgraph.Variable { c.count(1, 1); return LogSoftmax(c.tensor(0, "x")) },
	"categorical_crossentropy": func(c *call) *fgraph.Variable {
		c.count(2, 2)
		return CrossentropyCategorical1Hot(c.tensor(0, "p"), c.tensor(1, "y"))
	},
	"inc_subtensor": changed(false), "set_subtensor": changed(true), "specify_shape": (*call).specifyShape, "grad": (*call).grad,
}

func mapped(op array.Op) func(*call) *fgraph.Variable {
	return func(c *call) *fgraph.Variable { return mapValues(op, c.args) }
}

// fill broadcasts a value, which keeps its type; a number takes that of the model.
func (c *call) fill() *fgraph.Variable {
	c.count(2, 2)
	in := tensors(c.name, c.args)
	return Second(in[0], in[1])
}

func (c *call) clip() *fgraph.Variable {
	c.count(3, 3)
	in := tensors(c.name, c.args)
	return Minimum(Maximum(in[0], in[1]), in[2])
}

func (c *call) dot() *fgraph.Variable {
	c.count(2, 2)
	in := tensors(c.name, c.args)
	return Dot(in[0], in[1])
}

func (c *call) transpose() *fgraph.Variable {
	x := c.tensor(0, "x")
	axes := c.axes(1)
	if len(c.args) > 2 {
		axes = value{kind: kindList, list: c.args[1:]}.integers(c.name)
	}
	if axes == nil {
		return Transpose(x)
	}
	return DimShuffle(x, normalAxes(nameOf(c.name), x, axes)...)
}

// dimshuffle takes an order of numbers and 'x', as Theano's method does.
func (c *call) dimshuffle() *fgraph.Variable {
	x := c.tensor(0, "x")
	list := c.args[1:]
	if len(list) == 1 && list[0].kind == kindList {
		list = list[0].list
	}
	order := make([]int, len(list))
	for i, d := range list {
		if d.kind == kindName && d.text == "x" || d.kind == kindNone {
			order[i] = NewAxis
			continue
		}
		if order[i] = d.integer(c.name); order[i] < 0 || order[i] >= TypeOf(x).NDim() {
			fail(c.name, "dimension %d of a %v", order[i], x.Type())
		}
	}
	return DimShuffle(x, order...)
}

func (c *call) reshape() *fgraph.Variable {
	x := c.tensor(0, "x")
	rest := c.args[1:]
	if s, ok := c.arg(-1, "shape"); ok {
		rest = []value{s}
	}
	if len(rest) == 1 && rest[0].kind == kindTensor && TypeOf(rest[0].v).NDim() == 1 {
		if n := TypeOf(rest[0].v).Dim(0); n != Unknown {
			return ReshapeTo(x, rest[0].v, n)
		}
	}
	return Reshape(x, sizes(c.name, rest)...)
}

func (c *call) flatten() *fgraph.Variable {
	c.count(1, 2)
	n := 1
	if x, ok := c.arg(1, "ndim"); ok {
		n = x.integer(c.name)
	}
	return Flatten(c.tensor(0, "x"), n)
}

func (c *call) alloc() *fgraph.Variable {
	return Alloc(c.tensor(0, "value"), sizes(c.name, c.args[min(1, len(c.args)):])...)
}

// filled makes zeros or ones of the sizes that are the arguments.
func filled(v float64) func(*call) *fgraph.Variable {
	return func(c *call) *fgraph.Variable {
		dtype := Float64
		if x, ok := c.arg(-1, "dtype"); ok {
			dtype = x.dtype(c.name)
		}
		return Alloc(Constant(array.Full(dtype, v)), sizes(c.name, c.args)...)
	}
}

func (c *call) cast() *fgraph.Variable {
	c.count(2, 2)
	x, ok := c.arg(1, "dtype")
	if !ok {
		fail(c.name, "argument dtype is missing")
	}
	return Cast(c.tensor(0, "x"), x.dtype(c.name))
}

func (c *call) mean() *fgraph.Variable { c.count(1, 2); return Mean(c.tensor(0, "x"), c.axes(1)...) }

// variance is the mean of the squares of the distances from the mean.
func (c *call) variance() *fgraph.Variable {
	c.count(1, 2)
	x, axes := c.tensor(0, "x"), c.axes(1)
	order, kept := make([]int, TypeOf(x).NDim()), 0
	for d := range order {
		if order[d] = NewAxis; len(axes) > 0 && !slices.Contains(axes, d) && !slices.Contains(axes, d-len(order)) {
			order[d] = kept
			kept++
		}
	}
	return Mean(Sqr(Sub(x, DimShuffle(Mean(x, axes...), order...))), axes...)
}

func (c *call) argmax() *fgraph.Variable {
	c.count(1, 2)
	return Argmax(c.tensor(0, "x"), c.axes(1)...)
}

// join takes the axis first and then the tensors, as Theano does.
func (c *call) join() *fgraph.Variable {
	c.count(2, 1<<20)
	return Join(c.args[0].integer(c.name), tensors(c.name, c.args[1:])...)
}

// concatenate takes a list and the axis, as NumPy does.
func (c *call) concatenate() *fgraph.Variable {
	c.count(1, 2)
	axis := 0
	if x, ok := c.arg(1, "axis"); ok {
		axis = x.integer(c.name)
	}
	if c.args[0].kind != kindList {
		fail(c.name, "a list of tensors is expected")
	}
	return Join(axis, tensors(c.name, c.args[0].list)...)
}

func (c *call) stack() *fgraph.Variable {
	c.count(1, 1<<20)
	list := c.args
	if len(list) == 1 && list[0].kind == kindList {
		list = list[0].list
	}
	return Stack(tensors(c.name, list)...)
}

func (c *call) arange() *fgraph.Variable {
	c.count(1, 3)
	in := tensors(c.name, c.args)
	switch len(in) {
	case 1:
		return ARange(Int(0), in[0], Int(1))
	case 2:
		return ARange(in[0], in[1], Int(1))
	}
	return ARange(in[0], in[1], in[2])
}

// changed is inc_subtensor(x[1:3], y) or set_subtensor(x[1:3], y).
func changed(set bool) func(*call) *fgraph.Variable {
	return func(c *call) *fgraph.Variable {
		c.count(2, 2)
		part := c.tensor(0, "x")
		y := tensors(c.name, []value{tensorValue(part), c.args[1]})[1]
		switch op := OpOf(part).(type) {
		case *SubtensorOp:
			x := part.Owner().Inputs()[0]
			return changeSubtensor(c.name, set, x, y, op.Indexes(part.Owner()))
		case AdvancedSubtensorOp:
			in := part.Owner().Inputs()
			y = Second(part, y)
			if set {
				return SetTake(in[0], y, in[1:]...)
			}
			return IncTake(in[0], y, in[1:]...)
		}
		fail(c.name, "the first argument has to be an index expression such as x[1:3]")
		return nil
	}
}

func (c *call) specifyShape() *fgraph.Variable {
	c.count(2, 1+MaxDims)
	x := c.tensor(0, "x")
	list := c.args[1:]
	if len(list) == 1 && list[0].kind == kindList {
		list = list[0].list
	}
	shape := make([]int, len(list))
	for i, n := range list {
		if shape[i] = Unknown; n.kind != kindNone {
			shape[i] = n.integer(c.name)
		}
	}
	return SpecifyShape(x, shape...)
}

func (c *call) grad() *fgraph.Variable {
	c.count(2, 2)
	g, err := GradOptions{Zeros: true}.Grad(c.tensor(0, "cost"), c.tensor(1, "wrt"))
	if err != nil {
		fail(c.name, "%v", err)
	}
	return g[0]
}

// index applies the indexes of an index expression.
func index(x value, indexes []value) *fgraph.Variable {
	const what = "index"
	v := x.tensor(what)
	indexes = expandEllipsis(indexes, TypeOf(v).NDim())
	var basic []Index
	var advanced []*fgraph.Variable
	order := []int{} // of the dimensions that remain
	kept := 0
	for i, ix := range indexes {
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
		if TypeOf(t).NDim() > 0 {
			if len(advanced) < i || len(basic) > 0 && slices.ContainsFunc(basic, func(b Index) bool { return !b.IsEverything() }) {
				fail(what, "integer tensors have to stand in the first dimensions, all others whole")
			}
			advanced = append(advanced, t)
			continue
		}
		basic = append(basic, At(t))
	}
	if len(advanced) > 0 {
		for _, ix := range indexes[len(advanced):] {
			if ix.kind != kindSlice || !sliceIndex(what, ix.ix).IsEverything() {
				fail(what, "integer tensors have to stand in the first dimensions, all others whole")
			}
		}
		return Take(v, advanced...)
	}
	if len(basic) == 0 {
		basic = nil
	} else {
		v = RawSubtensor(v, basic...)
	}
	for ; kept < TypeOf(v).NDim(); kept++ {
		order = append(order, kept)
	}
	return DimShuffle(v, order...)
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
