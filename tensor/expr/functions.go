package expr

import (
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A function returns the result of a call.
type function func(c *call) *fgraph.Variable

// tables hold the functions that are not simply ops.
var tables = []map[string]function{functions, structure, shuffles, mathematics, activations, windows, elements}

// listFunctions are the functions that may return several tensors.
var listFunctions = map[string]func(c *call) value{
	"grad": (*call).grad, "split": split, "array_split": arraySplit, "vsplit": splitAlong(0), "hsplit": splitAlong(1), "dsplit": splitAlong(2),
	"meshgrid": meshgrid, "nonzero": nonzero, "where": where, "atleast_1d": atLeast(1), "atleast_2d": atLeast(2), "atleast_3d": atLeast(3), "slogdet": slogdet, "broadcast_arrays": broadcastArrays, "ix_": openMesh, "topk": topK, "ifelse": ifElse,
}

// functions are those of Theano and NumPy that are most common.
var functions = map[string]function{
	"fill": fill, "second": fill, "dot": dot, "clip": clip,
	"sdot":                     binaryOf(tensor.SparseDot, "x", "y"),
	"categorical_crossentropy": binaryOf(tensor.CrossentropyCategorical1Hot, "p", "y"),
	"relu":                     unaryOf(func(x *fgraph.Variable) *fgraph.Variable { return tensor.Maximum(x, tensor.Number(0, x)) }),
	"ravel":                    unaryOf(func(x *fgraph.Variable) *fgraph.Variable { return tensor.Flatten(x, 1) }),
	"shape":                    unaryOf(tensor.Shape),
	"mean":                     folding(tensor.Mean),
	"softmax":                  overAxis(tensor.Softmax), "log_softmax": overAxis(tensor.LogSoftmax),
	"transpose": transpose, "dimshuffle": dimshuffle, "reshape": reshape, "flatten": flatten, "specify_shape": specifyShape,
	"join": join, "concatenate": concatenate, "stack": stack, "cast": cast, "astype": cast,
	"alloc": alloc, "Alloc": alloc, "arange": arange,
	"inc_subtensor": changed((*tensor.Part).Inc), "set_subtensor": changed((*tensor.Part).Set),
}

// mapped returns the function that applies an element-wise operation.
func mapped(op array.Opcode) function {
	return func(c *call) *fgraph.Variable { c.checkNames(); return mapValues(op, c.args) }
}

// mapValues applies an element-wise operation. Numbers take the type of the other arguments.
func mapValues(op array.Opcode, args []value) *fgraph.Variable {
	if n := op.NumArgs(); n >= 0 && n != len(args) {
		fail(op.String(), "%d arguments, it takes %d", len(args), n)
	}
	if op == array.Switch {
		// Without the condition: numbers take the type of the values, and not that of a bool.
		rest := tensors(op.String(), args[1:])
		return tensor.Switch(args[0].tensor(op.String()), rest[0], rest[1])
	}
	if op == array.Pow && args[1].kind == kindNumber && args[1].num.i < 0 && args[1].num.dtype == array.Int64 {
		args = []value{args[0], args[1].float()} // a negative power is a fraction
	}
	return tensor.Map(op, tensors(op.String(), args)...)
}

// unaryOf returns the function that applies f to its only argument.
func unaryOf(f func(x *fgraph.Variable) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable { c.count(1); return f(c.tensor(0, "x")) }
}

// binaryOf returns the function that applies f to its two arguments.
func binaryOf(f func(x, y *fgraph.Variable) *fgraph.Variable, x, y string) function {
	return func(c *call) *fgraph.Variable { c.count(2); return f(c.tensor(0, x), c.tensor(1, y)) }
}

// fill broadcasts a value, which keeps its type. A number takes the type of the model.
func fill(c *call) *fgraph.Variable {
	in := c.tensors("model", "value")
	return tensor.Second(in[0], in[1])
}

func dot(c *call) *fgraph.Variable {
	in := c.tensors("x", "y")
	return tensor.Dot(in[0], in[1])
}

// ifElse takes a tensor or a list of them for either case.
func ifElse(c *call) value {
	c.count(3)
	condition := c.tensor(0, "condition")
	sides := [2]value{c.need(1, "then_branch"), c.need(2, "else_branch")}
	c.checkNames()
	lists := [2][]value{{sides[0]}, {sides[1]}}
	// A list on one side alone is a tensor, such as [1, 2].
	if sides[0].kind == kindList && sides[1].kind == kindList {
		lists = [2][]value{sides[0].list, sides[1].list}
	}
	if len(lists[0]) != len(lists[1]) || len(lists[0]) == 0 {
		fail(c.name, "lists of %d and %d tensors", len(lists[0]), len(lists[1]))
	}
	var in [2][]*fgraph.Variable
	for i := range lists[0] {
		both := tensors(c.name, []value{lists[0][i], lists[1][i]}) // numbers take the type of the other one
		for k, v := range both {
			in[k] = append(in[k], v)
		}
	}
	out := tensor.IfElse(condition, in[0], in[1])
	if sides[0].kind == kindList && sides[1].kind == kindList {
		return results(out)
	}
	return tensorValue(out[0])
}

// clip takes None for a bound that is missing.
func clip(c *call) *fgraph.Variable {
	c.count(3)
	list := []value{c.need(0, "x")}
	for i, name := range []string{"min", "max"} {
		x, ok := c.arg(i+1, name)
		// NumPy calls the bounds a_min and a_max.
		if y, again := c.arg(-1, "a_"+name); again {
			x, ok = y, true
		}
		if !ok {
			fail(c.name, "argument %s is missing", name)
		}
		list = append(list, x)
	}
	c.checkNames()
	bounds := []array.Opcode{array.Identity, array.Maximum, array.Minimum}
	// From behind, because entries are deleted.
	for i := len(list) - 1; i > 0; i-- {
		if list[i].kind == kindNone {
			list, bounds = slices.Delete(list, i, i+1), slices.Delete(bounds, i, i+1)
		}
	}
	in := tensors(c.name, list)
	x := in[0]
	for i, bound := range in[1:] {
		x = tensor.Map(bounds[i+1], x, bound)
	}
	return x
}

// reduce applies a reduction.
func (c *call) reduce(r array.Reduction) *fgraph.Variable {
	c.count(2)
	x, axes := c.tensor(0, "x"), c.axes(1)
	if d, ok := c.arg(-1, "dtype"); ok && d.kind != kindNone {
		x = tensor.Cast(x, d.dtype(c.name))
	}
	keep := c.keepDims()
	c.checkNames()
	// An empty list names no dimension, which ReduceOver would take for all of them.
	if axes != nil && len(axes) == 0 {
		return tensor.MustApply(tensor.Reduce{Op: r}, x)
	}
	y := tensor.ReduceOver(r, x, axes...)
	if keep {
		y = tensor.KeepDims(y, x, axes...)
	}
	return y
}

// folding returns the function that applies f, which folds dimensions. With keepdims they
// remain, with size 1.
func folding(f func(x *fgraph.Variable, axes ...int) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x, axes := c.tensor(0, "x"), c.axes(1)
		keep := c.keepDims()
		if axes != nil && len(axes) == 0 {
			fail(c.name, "an axis is expected")
		}
		y := f(x, axes...)
		if keep {
			y = tensor.KeepDims(y, x, axes...)
		}
		return y
	}
}

// overAxis returns the function that applies f, which works along the last dimension, along any
// dimension.
func overAxis(f func(*fgraph.Variable) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.tensor(0, "x")
		axes := tensor.NormalAxes(c.name, x, c.axes(1))
		if len(axes) > 1 {
			fail(c.name, "%d axes, it takes one", len(axes))
		}
		if len(axes) == 0 {
			return f(x)
		}
		return tensor.AlongAxis(f, x, axes[0])
	}
}

func transpose(c *call) *fgraph.Variable {
	x, axes := c.tensor(0, "x"), c.axes(1)
	if list, ok := c.arg(-1, "axes"); ok {
		axes = list.integers(c.name)
	}
	if len(c.args) > 2 {
		axes = value{kind: kindList, list: c.rest(1)}.integers(c.name)
	}
	if axes == nil {
		return tensor.Transpose(x)
	}
	return tensor.DimShuffle(x, tensor.NormalAxes(c.name, x, axes)...)
}

// dimshuffle takes an order of numbers and 'x', like Theano's method.
func dimshuffle(c *call) *fgraph.Variable {
	x, list := c.tensor(0, "x"), c.list(1)
	order := make([]int, len(list))
	for i, d := range list {
		if d.kind == kindName && d.text == "x" || d.kind == kindNone {
			order[i] = array.NewAxis
			continue
		}
		if order[i] = d.integer(c.name); order[i] < 0 || order[i] >= tensor.TypeOf(x).NDim() {
			fail(c.name, "dimension %d of a %v", order[i], x.Type())
		}
	}
	return tensor.DimShuffle(x, order...)
}

func reshape(c *call) *fgraph.Variable {
	x, dims := c.tensor(0, "x"), c.rest(1)
	if s, ok := c.arg(-1, "shape"); ok {
		dims = []value{s}
	}
	if len(dims) == 1 && dims[0].kind == kindTensor && tensor.TypeOf(dims[0].v).NDim() == 1 {
		if n := tensor.TypeOf(dims[0].v).Dim(0); n != tensor.Unknown {
			// Whole: taken apart, the vector would be as many applies as it has elements.
			return tensor.ReshapeTo(x, dims[0].v, n)
		}
	}
	return tensor.Reshape(x, sizes(c.name, dims)...)
}

func flatten(c *call) *fgraph.Variable {
	c.count(2)
	n := c.integer(1, "ndim", 1)
	return tensor.Flatten(c.tensor(0, "x"), n)
}

// specifyShape takes sizes, of which some may be None, or a vector of sizes.
func specifyShape(c *call) *fgraph.Variable {
	x, list := c.tensor(0, "x"), c.list(1)
	if s, ok := c.arg(-1, "shape"); ok {
		if list = []value{s}; s.kind == kindList {
			list = s.list
		}
	}
	if len(list) == 1 && list[0].kind == kindTensor && tensor.TypeOf(list[0].v).NDim() == 1 {
		return tensor.SpecifySizes(x, sizes(c.name, list)...)
	}
	shape := make([]*fgraph.Variable, len(list))
	for i, n := range list {
		if n.kind != kindNone {
			shape[i] = n.size(c.name)
		}
	}
	return tensor.SpecifySizes(x, shape...)
}

// join takes the axis before the tensors, like Theano's.
func join(c *call) *fgraph.Variable {
	return tensor.Join(c.need(0, "axis").integer(c.name), tensors(c.name, c.rest(1))...)
}

// concatenate takes a list and the axis, like NumPy's. Without axis, None, the tensors are flat.
func concatenate(c *call) *fgraph.Variable {
	c.count(2)
	list := c.listOf(0, "tensors")
	if x, ok := c.arg(1, "axis"); ok && x.kind == kindNone {
		for i, v := range list {
			list[i] = flat(v)
		}
		return tensor.Join(0, list...)
	}
	return tensor.Join(c.integer(1, "axis", 0), list...)
}

func stack(c *call) *fgraph.Variable {
	list, axis := c.args, -1
	// NumPy takes a list and the axis. In Theano's older form the tensors are the arguments, and the axis has a
	// name.
	if len(list) > 0 && len(list) <= 2 && list[0].kind == kindList {
		list, axis = list[0].list, 1
	}
	return tensor.Stack(c.integer(axis, "axis", 0), tensors(c.name, list)...)
}

func cast(c *call) *fgraph.Variable {
	c.count(2)
	return tensor.Cast(c.tensor(0, "x"), c.need(1, "dtype").dtype(c.name))
}

func alloc(c *call) *fgraph.Variable {
	return tensor.Alloc(c.tensor(0, "value"), sizes(c.name, c.rest(1))...)
}

func arange(c *call) *fgraph.Variable {
	c.count(3)
	integer := func(i int64) value { return value{kind: kindNumber, num: intNumber(i)} }
	if _, named := c.named["stop"]; !named && len(c.args) == 1 {
		// A single argument is the stop, though it stands in the place of the start.
		c.args = []value{integer(0), c.args[0]}
	}
	args := [3]value{integer(0), c.need(1, "stop"), integer(1)}
	if x, ok := c.arg(0, "start"); ok {
		args[0] = x
	}
	if x, ok := c.arg(2, "step"); ok {
		args[2] = x
	}
	// The op counts in integers. A range of floats can only be a constant.
	if a := floatRange(args); a != nil {
		return tensor.Constant(a)
	}
	in := tensors(c.name, args[:])
	return tensor.ARange(in[0], in[1], in[2])
}

// changed returns inc_subtensor(x[1:3], y) or set_subtensor(x[1:3], y). What is written gets the element
// type of x, as in NumPy.
func changed(change func(p *tensor.Part, y *fgraph.Variable) *fgraph.Variable) function {
	return func(c *call) *fgraph.Variable {
		c.count(2)
		x := c.need(0, "x")
		v := x.tensor(c.name)
		y := tensors(c.name, []value{tensorValue(v), c.need(1, "y")})[1]
		// An index in this text has its part. Of a variable that was indexed elsewhere there is only the op.
		part, ok := x.part, x.part != nil
		if !ok {
			part, ok = tensor.PartOf(v)
		}
		if !ok {
			fail(c.name, "the first argument has to be an index expression such as x[1:3]")
		}
		return change(part, tensor.Cast(y, tensor.TypeOf(v).DType()))
	}
}

// grad returns the gradient with respect to a tensor, or the list of gradients with respect to a
// list of tensors.
func (c *call) grad() value {
	c.count(2)
	cost, wrt := c.tensor(0, "cost"), c.need(1, "wrt")
	list := []value{wrt}
	if wrt.kind == kindList {
		list = wrt.list
	}
	g, err := tensor.GradOptions{Zeros: true}.Grad(cost, tensors(c.name, list)...)
	if err != nil {
		fail(c.name, "%v", err)
	}
	if wrt.kind != kindList {
		return tensorValue(g[0])
	}
	return results(g)
}
