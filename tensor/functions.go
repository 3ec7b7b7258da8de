package tensor

import (
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor/array"
)

// A call is a function of the expression language with its arguments.
type call struct {
	name  string
	args  []value
	named map[string]value
	known []string // the names that were asked for
}

// arg returns argument i, by place or by name, and whether it is there.
func (c *call) arg(i int, name string) (value, bool) {
	x, ok := c.named[name]
	c.known = append(c.known, name)
	if i >= 0 && i < len(c.args) {
		if ok {
			fail(c.name, "argument %s is there twice", name)
		}
		return c.args[i], true
	}
	return x, ok
}

// need is arg for what has to be there.
func (c *call) need(i int, name string) value {
	x, ok := c.arg(i, name)
	if !ok {
		fail(c.name, "argument %s is missing", name)
	}
	return x
}

// rest returns the arguments from i on that have no names.
func (c *call) rest(i int) []value { return c.args[min(i, len(c.args)):] }

// tensors returns all arguments, of which these are the names, as tensors. Numbers take the type of the others.
func (c *call) tensors(names ...string) []*fgraph.Variable {
	c.count(len(names))
	args := make([]value, len(names))
	for i, name := range names {
		args[i] = c.need(i, name)
	}
	c.checkNames()
	return tensors(c.name, args)
}

// checkNames complains about an argument whose name nobody asked for.
func (c *call) checkNames() {
	names := slices.Sorted(maps.Keys(c.named))
	for _, name := range names {
		if !slices.Contains(c.known, name) {
			fail(c.name, "takes no argument %s", name)
		}
	}
}

// tensor returns argument i as a tensor.
func (c *call) tensor(i int, name string) *fgraph.Variable { return c.need(i, name).tensor(c.name) }

// count complains where there are more than most arguments without a name.
func (c *call) count(most int) {
	if n := len(c.args); n > most {
		fail(c.name, "%d arguments, it takes %d", n, most)
	}
}

// axes returns the argument axis: nil if it is missing or None, which stands for all dimensions, while an empty list stands for none.
func (c *call) axes(i int) []int {
	x, ok := c.arg(i, "axis")
	if !ok || x.kind == kindNone {
		return nil
	}
	axes := x.integers(c.name)
	for k, d := range axes {
		if slices.Contains(axes[:k], d) {
			fail(c.name, "axis %d is named twice", d)
		}
	}
	return axes
}

// run makes the expression, and reports whether there is such a function.
func (c *call) run() (value, bool) {
	if f := functions[c.name]; f != nil {
		v := f(c)
		c.checkNames()
		return tensorValue(v), true
	}
	if f := composed[c.name]; f != nil {
		v := f(c)
		c.checkNames()
		return v, true
	}
	if o, ok := array.OpByName(c.name); ok && o != array.Cast {
		c.checkNames()
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
	c.checkNames()
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
	c.count(2)
	x := c.tensor(0, "x")
	axes := c.axes(1)
	if d, ok := c.arg(-1, "dtype"); ok && d.kind != kindNone {
		x = Cast(x, d.dtype(c.name))
	}
	keep := c.keepDims()
	c.checkNames()
	if axes != nil && len(axes) == 0 {
		return Apply(Reduce{Op: r}, x)
	}
	y := reduction(r, x, axes)
	if keep {
		y = keepDims(y, OpOf(y).(Reduce).Over(TypeOf(x).NDim()), TypeOf(x).NDim())
	}
	return y
}

// keepDims returns the argument keepdims.
func (c *call) keepDims() bool {
	keep, ok := c.arg(-1, "keepdims")
	return ok && keep.kind == kindNumber && keep.num.f != 0
}

// kept applies a function of x that folds dimensions, and puts dimensions of size 1 in their places if keepdims says so.
func (c *call) kept(fold func(x *fgraph.Variable, axes ...int) *fgraph.Variable) *fgraph.Variable {
	c.count(2)
	x, axes := c.tensor(0, "x"), c.axes(1)
	keep := c.keepDims()
	if axes != nil && len(axes) == 0 {
		fail(c.name, "no axis is named")
	}
	y := fold(x, axes...)
	if keep {
		y = keepDims(y, overAxes(nameOf(c.name), x, axes), TypeOf(x).NDim())
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
		c.count(2)
		return Outer(c.tensor(0, "x"), c.tensor(1, "y"))
	},
	"sdot":      func(c *call) *fgraph.Variable { c.count(2); return SparseDot(c.tensor(0, "x"), c.tensor(1, "y")) },
	"transpose": (*call).transpose, "dimshuffle": (*call).dimshuffle, "reshape": (*call).reshape, "flatten": (*call).flatten,
	"ravel": func(c *call) *fgraph.Variable { c.count(1); return Flatten(c.tensor(0, "x"), 1) },
	"relu": func(c *call) *fgraph.Variable {
		c.count(1)
		x := c.tensor(0, "x")
		return Maximum(x, Number(0, x))
	},
	"var": func(c *call) *fgraph.Variable { return c.kept(variance) },
	"std": func(c *call) *fgraph.Variable {
		return c.kept(func(x *fgraph.Variable, axes ...int) *fgraph.Variable { return Sqrt(variance(x, axes...)) })
	},
	"shape": func(c *call) *fgraph.Variable { c.count(1); return Shape(c.tensor(0, "x")) },
	"alloc": (*call).alloc, "Alloc": (*call).alloc, "zeros": filled(0), "ones": filled(1),
	"zeros_like": func(c *call) *fgraph.Variable { c.count(1); return ZerosLike(c.tensor(0, "x")) },
	"ones_like":  func(c *call) *fgraph.Variable { c.count(1); return OnesLike(c.tensor(0, "x")) },
	"cast":       (*call).cast, "astype": (*call).cast, "mean": func(c *call) *fgraph.Variable { return c.kept(Mean) }, "argmax": (*call).argmax,
	"join": (*call).join, "concatenate": (*call).concatenate, "stack": (*call).stack, "arange": (*call).arange,
	"softmax": func(c *call) *fgraph.Variable { return c.softmax(Softmax) }, "log_softmax": func(c *call) *fgraph.Variable { return c.softmax(LogSoftmax) },
	"categorical_crossentropy": func(c *call) *fgraph.Variable {
		c.count(2)
		return CrossentropyCategorical1Hot(c.tensor(0, "p"), c.tensor(1, "y"))
	},
	"inc_subtensor": changed(false), "set_subtensor": changed(true), "specify_shape": (*call).specifyShape,
}

// composed are functions that may return several tensors.
var composed = map[string]func(c *call) value{"grad": (*call).grad}

func mapped(op array.Op) func(*call) *fgraph.Variable {
	return func(c *call) *fgraph.Variable { c.checkNames(); return mapValues(op, c.args) }
}

// fill broadcasts a value, which keeps its type; a number takes that of the model.
func (c *call) fill() *fgraph.Variable {
	in := c.tensors("model", "value")
	return Second(in[0], in[1])
}

func (c *call) clip() *fgraph.Variable {
	in := c.tensors("x", "min", "max")
	return Minimum(Maximum(in[0], in[1]), in[2])
}

func (c *call) dot() *fgraph.Variable {
	in := c.tensors("x", "y")
	return Dot(in[0], in[1])
}

func (c *call) transpose() *fgraph.Variable {
	x := c.tensor(0, "x")
	axes := c.axes(1)
	if len(c.args) > 2 {
		axes = value{kind: kindList, list: c.rest(1)}.integers(c.name)
	}
	if axes == nil {
		return Transpose(x)
	}
	return DimShuffle(x, normalAxes(nameOf(c.name), x, axes)...)
}

// dimshuffle takes an order of numbers and 'x', as Theano's method does.
func (c *call) dimshuffle() *fgraph.Variable {
	x := c.tensor(0, "x")
	list := c.rest(1)
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
	rest := c.rest(1)
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
	c.count(2)
	n := 1
	if x, ok := c.arg(1, "ndim"); ok {
		n = x.integer(c.name)
	}
	return Flatten(c.tensor(0, "x"), n)
}

func (c *call) alloc() *fgraph.Variable {
	return Alloc(c.tensor(0, "value"), sizes(c.name, c.rest(1))...)
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
	c.count(2)
	return Cast(c.tensor(0, "x"), c.need(1, "dtype").dtype(c.name))
}

// variance is the mean of the squares of the distances from the mean.
func variance(x *fgraph.Variable, axes ...int) *fgraph.Variable {
	mean := keepDims(Mean(x, axes...), overAxes(nameOf("var"), x, axes), TypeOf(x).NDim())
	return Mean(Sqr(Sub(x, mean)), axes...)
}

// softmax applies a function over the last dimension to that dimension, or to another one.
func (c *call) softmax(f func(*fgraph.Variable) *fgraph.Variable) *fgraph.Variable {
	c.count(2)
	x := c.tensor(0, "x")
	axes := normalAxes(nameOf(c.name), x, c.axes(1))
	last := TypeOf(x).NDim() - 1
	if len(axes) > 1 {
		fail(c.name, "%d axes, it takes one", len(axes))
	}
	if len(axes) == 0 || axes[0] == last {
		return f(x)
	}
	order := make([]int, last+1)
	for d := range order {
		order[d] = d
	}
	order[axes[0]], order[last] = last, axes[0]
	return DimShuffle(f(DimShuffle(x, order...)), order...)
}

func (c *call) argmax() *fgraph.Variable {
	c.count(2)
	return Argmax(c.tensor(0, "x"), c.axes(1)...)
}

// join takes the axis first and then the tensors, as Theano does.
func (c *call) join() *fgraph.Variable {
	return Join(c.need(0, "axis").integer(c.name), tensors(c.name, c.rest(1))...)
}

// concatenate takes a list and the axis, as NumPy does.
func (c *call) concatenate() *fgraph.Variable {
	c.count(2)
	axis := 0
	if x, ok := c.arg(1, "axis"); ok {
		axis = x.integer(c.name)
	}
	list := c.need(0, "tensors")
	if list.kind != kindList {
		fail(c.name, "a list of tensors is expected")
	}
	return Join(axis, tensors(c.name, list.list)...)
}

func (c *call) stack() *fgraph.Variable {
	list, axis := c.args, -1
	if len(list) > 0 && len(list) <= 2 && list[0].kind == kindList {
		list, axis = list[0].list, 1
	}
	at := 0
	if x, ok := c.arg(axis, "axis"); ok {
		at = x.integer(c.name)
	}
	return StackAt(at, tensors(c.name, list)...)
}

func (c *call) arange() *fgraph.Variable {
	c.count(3)
	integer := func(i int64) value { return value{kind: kindNumber, num: intNumber(i)} }
	if _, named := c.named["stop"]; !named && len(c.args) == 1 {
		c.args = []value{integer(0), c.args[0]}
	}
	args := [3]value{integer(0), c.need(1, "stop"), integer(1)}
	if x, ok := c.arg(0, "start"); ok {
		args[0] = x
	}
	if x, ok := c.arg(2, "step"); ok {
		args[2] = x
	}
	if a := floatRange(args); a != nil {
		return Constant(a)
	}
	in := tensors(c.name, args[:])
	return ARange(in[0], in[1], in[2])
}

// changed is inc_subtensor(x[1:3], y) or set_subtensor(x[1:3], y).
func changed(set bool) func(*call) *fgraph.Variable {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		part := c.tensor(0, "x")
		y := tensors(c.name, []value{tensorValue(part), c.need(1, "y")})[1]
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
	x := c.tensor(0, "x")
	list := c.rest(1)
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

// grad returns the gradient with respect to a tensor, or a list of them with respect to each of a list.
func (c *call) grad() value {
	c.count(2)
	cost := c.tensor(0, "cost")
	wrt := c.need(1, "wrt")
	list := []value{wrt}
	if wrt.kind == kindList {
		list = wrt.list
	}
	g, err := GradOptions{Zeros: true}.Grad(cost, tensors(c.name, list)...)
	if err != nil {
		fail(c.name, "%v", err)
	}
	if wrt.kind != kindList {
		return tensorValue(g[0])
	}
	grads := value{kind: kindList}
	for _, v := range g {
		grads.list = append(grads.list, tensorValue(v))
	}
	return grads
}
