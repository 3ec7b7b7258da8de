package lower

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A call is a node that is being lowered. Its methods panic with an errCall for what can't be, as the
// functions of package tensor do for types that don't fit.
type call struct {
	*lowering
	op       *ir.Op
	in       []*value // nil where an input is left out
	captured []*value // by bodies, in their order
	opset    int64    // the version in which the operator has its meaning
	// Where the apply is, nil for a node alone.
	apply  *fgraph.Apply
	region *ir.Region
	scope  *scope
}

var errCall = errors.New("lower")

// fail ends the lowering of the node.
func (c *call) fail(format string, args ...any) {
	panic(fmt.Errorf("%w: %w", errCall, fmt.Errorf(format, args...)))
}

// failIf ends the lowering of the node if a condition holds. What it prints is computed in any case.
func (c *call) failIf(wrong bool, format string, args ...any) {
	if wrong {
		c.fail(format, args...)
	}
}

// has reports whether there is an input.
func (c *call) has(k int) bool { return k < len(c.in) && c.in[k] != nil }

// x returns an input, which has to be there, as the operator computes with it: half floats are float32s,
// so that an operator rounds once, unless it only moves elements.
func (c *call) x(k int) *fgraph.Variable {
	v := c.stored(k)
	// A call without an op stands for a list of values, which are only moved.
	if tensor.TypeOf(v).DType().IsHalf() && c.op != nil && !moves[c.op.Name()] {
		return tensor.Cast(v, array.Float32)
	}
	return v
}

// xs returns all inputs.
func (c *call) xs() []variable { return lists.Map(lists.Range[int](len(c.in)), c.x) }

// stored returns an input, which has to be there, with its own elements.
func (c *call) stored(k int) *fgraph.Variable {
	c.failIf(!c.has(k), "input %d is missing", k)
	c.failIf(c.in[k].v == nil || c.in[k].keys != nil, "input %d is no tensor", k)
	return c.in[k].v
}

// moves has the operators whose results are elements of their inputs.
var moves = func() map[string]bool {
	m := make(map[string]bool)
	for _, name := range strings.Fields(`Cast CastLike Reshape Flatten Squeeze Unsqueeze Transpose Concat Split Slice Expand Tile DepthToSpace
		SpaceToDepth Pad Gather GatherElements GatherND Compress Trilu ReverseSequence Where TopK OneHot
		SequenceAt SplitToSequence ConcatFromSequence`) {
		m[name] = true
	}
	return m
}()

// elem returns the type of elements of an input.
func (c *call) elem(k int) onnx.DataType {
	c.stored(k)
	return c.in[k].elem
}

// ints returns the value of an input of integers. The graph depends on it.
func (c *call) ints(k int) []int {
	a := c.array(k)
	list := make([]int, a.Len())
	for i := range list {
		list[i] = int(a.Int(i))
	}
	return list
}

// intsOr returns the value of an input of integers, or others if it is left out.
func (c *call) intsOr(k int, otherwise []int) []int {
	if !c.has(k) {
		return otherwise
	}
	return c.ints(k)
}

// array returns the value of an input. The graph depends on it.
func (c *call) array(k int) *array.Array {
	a, err := c.valueOf(c.x(k))
	c.failIf(err != nil, "the value of input %d: %w", k, err)
	return a
}

// one returns the value of an input of one number.
func (c *call) one(k int) float64 {
	a := c.array(k)
	c.failIf(a.Len() != 1, "input %d has %d elements, not one", k, a.Len())
	return a.Float(0)
}

func (c *call) attribute(name string) *onnx.Attribute { return c.op.Attribute(name) }

func (c *call) int(name string, otherwise int) int { return int(c.op.Int(name, int64(otherwise))) }

func (c *call) bool(name string, otherwise bool) bool {
	if a := c.attribute(name); a != nil {
		return a.Int != 0
	}
	return otherwise
}

func (c *call) float(name string, otherwise float64) float64 {
	if a := c.attribute(name); a != nil {
		return float64(a.Float)
	}
	return otherwise
}

func (c *call) text(name, otherwise string) string { return c.op.Text(name, otherwise) }

// oneOf returns an attribute that has to be one of some words.
func (c *call) oneOf(name, otherwise string, words ...string) string {
	text := c.text(name, otherwise)
	c.failIf(!slices.Contains(words, text), "%w: %s %q", ErrUnsupported, name, text)
	return text
}

// list returns an attribute of integers, nil if there is none.
func (c *call) list(name string) []int {
	a := c.attribute(name)
	if a == nil {
		return nil
	}
	return lists.Map(a.Ints, func(v int64) int { return int(v) })
}

// optional returns an input, nil if it is left out.
func (c *call) optional(k int) *fgraph.Variable {
	if !c.has(k) {
		return nil
	}
	return c.x(k)
}

// out returns a result whose elements have a type.
func (c *call) out(v *fgraph.Variable, elem onnx.DataType) []*value {
	return []*value{c.typed(v, elem)}
}

// typed gives a tensor the type of arrays that hold elements of a type.
func (c *call) typed(v *fgraph.Variable, elem onnx.DataType) *value {
	d, err := dtypeOf(elem)
	c.failIf(err != nil, "%w", err)
	if d == array.String {
		d = array.Int64 // their numbers
	}
	if tensor.TypeOf(v).DType() != d {
		v = tensor.Cast(v, d)
	}
	return &value{v: v, elem: elem}
}

// like returns a result with elements of the type of the first input.
func (c *call) like(v *fgraph.Variable) []*value { return c.out(v, c.elem(0)) }

// ndim returns the number of dimensions.
func ndim(v *fgraph.Variable) int { return tensor.TypeOf(v).NDim() }

// shape returns the sizes of a tensor. The graph depends on those that its type does not have.
func (c *call) shape(v *fgraph.Variable) []int {
	shape := tensor.TypeOf(v).Shape()
	if !slices.Contains(shape, tensor.Unknown) {
		return shape
	}
	// A graph for any sizes must not depend on one.
	c.failIf(c.open != nil, "%w: %v", ErrSizes, v.Type())
	a, err := c.valueOf(tensor.Shape(v))
	c.failIf(err != nil, "a shape: %w", err)
	for i := range shape {
		shape[i] = int(a.Int(i))
	}
	return shape
}

// axis returns a dimension, which may count from the end, of n.
func (c *call) axis(axis, n int) int {
	c.failIf(axis < -n || axis >= n, "there is no axis %d of %d", axis, n)
	return (axis + n) % max(n, 1)
}

func (c *call) axes(list []int, n int) []int {
	return lists.Map(list, func(a int) int { return c.axis(a, n) })
}

// axesOr returns the axes of an attribute, or all of n if there is none.
func (c *call) axesOr(name string, n int) []int {
	if c.attribute(name) == nil {
		return span(0, n)
	}
	return c.axes(c.list(name), n)
}

// span returns the numbers from one to the one before another.
func span(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}

// arange returns a vector of the numbers from 0 to the one before n.
func arange(n int) *fgraph.Variable {
	return tensor.ARange(tensor.Int(0), tensor.Int(n), tensor.Int(1))
}

// part takes what an index says of one dimension.
func part(x *fgraph.Variable, axis int, index tensor.Index) *fgraph.Variable {
	indexes := slices.Repeat([]tensor.Index{tensor.Everything()}, axis+1)
	indexes[axis] = index
	return tensor.Subtensor(x, indexes...)
}

// asDim gives a vector n dimensions, of which its own is number d.
func asDim(v *fgraph.Variable, d, n int) *fgraph.Variable {
	order := slices.Repeat([]int{array.NewAxis}, n)
	if d < n {
		order[d] = 0
	}
	return tensor.DimShuffle(v, order...)
}

// sizes makes integer scalars of numbers.
func sizes(list []int) []*fgraph.Variable { return lists.Map(list, tensor.Int) }

// reshape gives a tensor another shape.
func (c *call) reshape(v *fgraph.Variable, shape []int) *fgraph.Variable {
	return c.reshapeTo(v, numbers(shape))
}

// number returns a number of the type of x.
func number(v float64, x *fgraph.Variable) *fgraph.Variable { return tensor.Number(v, x) }

// truth returns a tensor of bools.
func truth(v *fgraph.Variable) *fgraph.Variable {
	if tensor.TypeOf(v).DType() != array.Bool {
		return tensor.Map(array.Neq, v, number(0, v))
	}
	return v
}
