package lower

import (
	"fmt"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/lists"
	"github.com/nnopt/nnopt/onnx/ir"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// ErrSizes is the ErrUnsupported of a graph that is lowered for any sizes: a node can be lowered only if a size is
// known.
var ErrSizes = fmt.Errorf("%w: a size has to be known", ErrUnsupported)

// LeastFree is the least size that Graph leaves open, see Options.AnySizes. Those of 1 are broadcast, and of 0 many
// things are different: a graph is lowered for them.
const LeastFree = 2

// openSizes are the sizes of a graph that is lowered for any of them. Types of ir have them as expressions of symbols. A
// symbol is the size of an input or, where sizes depend on elements, of what a node has computed.
type openSizes struct {
	symbols map[string]variable
	made    map[string]variable // integer scalars, by the text of their expression
	dims    map[variable][]ir.Dim
}

// size returns a dim as an integer scalar: a constant, or computed from sizes of inputs. ok is false if it has a
// symbol that nothing has defined yet.
func (s *openSizes) size(d ir.Dim) (variable, bool) {
	// One expression is one variable, so that passes see which sizes are the same.
	if v := s.made[d.String()]; v != nil {
		return v, true
	}
	sure := func(op array.Opcode) func(x, y variable) (variable, bool) {
		return func(x, y variable) (variable, bool) { return tensor.MapSizes(op, x, y), true }
	}
	extreme := func(op array.Opcode) func(x, y variable) variable {
		return func(x, y variable) variable { return tensor.MapSizes(op, x, y) }
	}
	v, ok := ir.Compute(d, ir.Arithmetic[variable]{
		Number: func(n int64) variable { return tensor.Int(int(n)) },
		Symbol: func(name string) (variable, bool) { v, ok := s.symbols[name]; return v, ok },
		Add:    sure(array.Add), Mul: sure(array.Mul), Div: sure(array.IntDiv),
		Min: extreme(array.Minimum), Max: extreme(array.Maximum),
	})
	if ok && !d.IsUnknown() {
		s.made[d.String()] = v
	}
	return v, ok
}

// note notes the sizes of a tensor. Symbols that are new are defined by it.
func (s *openSizes) note(v variable, t ir.Type) {
	dims, ok := t.Shape()
	if !ok || v == nil || len(dims) != ndim(v) || !unsized(v) {
		return
	}
	for i, d := range dims {
		if name, ok := d.Symbolic(); ok && s.symbols[name] == nil && tensor.TypeOf(v).Dim(i) == tensor.Unknown {
			s.symbols[name] = tensor.ShapeI(v, i)
		}
	}
	s.dims[v] = dims
}

// unsized reports whether the type of a tensor lacks a size.
func unsized(v variable) bool {
	return slices.Contains(tensor.TypeOf(v).Shape(), tensor.Unknown)
}

// free returns the type that an input has in a graph for any sizes: those that are symbols stay open. Where the
// symbol is that of an input before, it has to be the same number.
func (s *openSizes) free(v variable, t ir.Type) variable {
	dims, _ := t.Shape()
	promised := make([]variable, len(dims))
	for i, d := range dims {
		if name, ok := d.Symbolic(); ok && tensor.TypeOf(v).Dim(i) == tensor.Unknown {
			promised[i] = s.symbols[name]
		}
	}
	if slices.ContainsFunc(promised, func(p variable) bool { return p != nil }) {
		v = tensor.SpecifySizes(v, promised...)
	}
	s.note(v, t)
	return v
}

// freeType returns the type of an input of a graph for any sizes: sizes that t does not have as numbers are open.
func freeType(a *array.Array, t ir.Type) tensor.Type {
	shape := slices.Clone(a.Shape())
	if dims, ok := t.Shape(); ok && len(dims) == len(shape) {
		for i, d := range dims {
			if _, number := d.Number(); !number {
				shape[i] = tensor.Unknown
			}
		}
	}
	return tensor.NewType(a.DType(), shape...)
}

// dependsOnSizes reports whether a value can be another one for inputs of other sizes.
func (l *lowering) dependsOnSizes(v variable) bool {
	if l.open == nil {
		return false
	}
	todo, seen := []variable{v}, make(map[variable]bool)
	for len(todo) > 0 {
		v, todo = todo[len(todo)-1], todo[:len(todo)-1]
		a := v.Owner()
		switch {
		case seen[v] || v.IsConstant():
		case a == nil && unsized(v):
			return true
		case a != nil:
			todo = append(todo, a.Inputs()...)
		}
		seen[v] = true
	}
	return false
}

// dims returns the sizes of a tensor: numbers, unless the graph is for any sizes. What ir does not know gets symbols of
// its own.
func (c *call) dims(v variable) []ir.Dim {
	if c.open == nil || !unsized(v) {
		return numbers(c.shape(v))
	}
	dims := c.open.dims[v]
	for w := v; dims == nil; dims = c.open.dims[w] { // what has the sizes of its input
		a := w.Owner()
		if a == nil {
			break
		}
		if _, same := a.Op().(tensor.Elemwise); !same || len(a.Inputs()) != 1 {
			break
		}
		w = a.Inputs()[0]
	}
	list := make([]ir.Dim, ndim(v))
	for i, n := range tensor.TypeOf(v).Shape() {
		switch {
		case n != tensor.Unknown:
			list[i] = ir.Known(int64(n))
		case dims != nil && !dims[i].IsUnknown():
			list[i] = dims[i]
		default:
			name := fmt.Sprintf("?%d", len(c.open.symbols))
			list[i], c.open.symbols[name] = ir.Symbol(name), tensor.ShapeI(v, i)
		}
	}
	c.open.dims[v] = list
	return list
}

// dim returns a size of a tensor, which has to be known.
func (c *call) dim(v variable, i int) int {
	if n := tensor.TypeOf(v).Dim(i); n != tensor.Unknown {
		return n
	}
	return c.shape(v)[i]
}

// number returns a size, which has to be known.
func (c *call) number(d ir.Dim) int {
	n, ok := d.Number()
	c.failIf(!ok, "%w: %v", ErrSizes, d)
	return int(n)
}

// size returns a dim as an integer scalar.
func (c *call) size(d ir.Dim) variable {
	if n, ok := d.Number(); ok {
		return tensor.Int(int(n))
	}
	v, ok := c.open.size(d)
	c.failIf(!ok, "%w: %v", ErrSizes, d)
	return v
}

// scalars returns dims as integer scalars.
func (c *call) scalars(dims []ir.Dim) []variable { return lists.Map(dims, c.size) }

// numbers makes dims of numbers.
func numbers(list []int) []ir.Dim {
	return lists.Map(list, func(n int) ir.Dim { return ir.Known(int64(n)) })
}

// inferred returns the sizes of the result that ir has found. It reports false if the graph is not for any sizes, or
// if they aren't known.
func (c *call) inferred() ([]ir.Dim, bool) {
	if c.open == nil || c.apply == nil {
		return nil, false
	}
	return c.computable(ir.TypeOf(c.apply.Out()))
}

// computable returns the sizes of a type. It reports false unless all are numbers, or can be computed: a type may have a
// symbol that no tensor has defined yet.
func (c *call) computable(t ir.Type) ([]ir.Dim, bool) {
	dims, ok := t.Shape()
	for _, d := range dims {
		if _, number := d.Number(); ok && !number {
			ok = c.open != nil
			if ok {
				_, ok = c.open.size(d)
			}
		}
	}
	return dims, ok
}

// result returns the sizes of the result, see results.
func (c *call) result(values ...int) []ir.Dim {
	if dims, ok := c.inferred(); ok {
		return dims
	}
	dims, _ := c.computable(c.results(values...)[0])
	return dims
}

// results returns the types of the results, as ir infers them, with sizes that are known. Where types say too little of
// these, the graph depends on the values of some inputs.
func (c *call) results(values ...int) []ir.Type {
	inputs := make([]*fgraph.Variable, len(c.in))
	for k, x := range c.in {
		v, err := c.standIn(k, x)
		c.failIf(err != nil, "%w", err)
		if inputs[k] = v; x != nil && slices.Contains(values, k) && !c.says(v) {
			inputs[k] = fgraph.NewInput(ir.TypeOf(v).WithData(numbers(c.ints(k))), "")
		}
	}
	types, err := c.types().Infer(c.op, inputs)
	c.failIf(err != nil, "%w", err)
	for _, t := range types {
		if _, ok := c.computable(t); !ok {
			c.fail("%w: of its result %v is known", ErrSizes, t)
		}
	}
	return types
}

// says reports whether the type of an input of integers has their values: numbers or, if the graph is for any sizes,
// what is computed of sizes.
func (c *call) says(v *fgraph.Variable) bool {
	_, known := ir.NumbersOf(v)
	list, ok := ir.TypeOf(v).Data()
	return known || ok && c.open != nil && !slices.ContainsFunc(list, ir.Dim.IsUnknown)
}

// made is result for a tensor that takes memory of its own, which is not too large.
func (c *call) made(values ...int) []ir.Dim {
	dims := c.result(values...)
	if c.open == nil { // else a call knows
		c.bounded(lists.Map(dims, c.number))
	}
	return dims
}

// madeShape is made for a tensor whose sizes have to be known.
func (c *call) madeShape(values ...int) []int { return lists.Map(c.made(values...), c.number) }

// elements returns the value of an input of integers, as far as it can be known: numbers, on which the graph depends,
// or what is computed of sizes.
func (c *call) elements(k int) []ir.Dim {
	// Types know elements as expressions of sizes, where asking for their values would fix these.
	if c.open != nil && c.apply != nil && c.has(k) {
		if list, ok := ir.TypeOf(c.apply.Inputs()[k]).Data(); ok {
			return list
		}
	}
	return numbers(c.ints(k))
}

// computed returns the result of a node whose elements ir knows as expressions of sizes.
func (c *call) computed() *value {
	if c.open == nil || len(c.apply.Outputs()) != 1 {
		return nil
	}
	t := ir.TypeOf(c.apply.Out())
	elements, ok := t.Data()
	if !ok {
		return nil
	}
	list := make([]variable, len(elements))
	for i, d := range elements {
		if list[i], ok = c.open.size(d); !ok {
			return nil
		}
	}
	d, err := dtypeOf(t.Elem())
	switch {
	case err != nil:
		return nil
	case t.Rank() == 1:
		return &value{v: tensor.Cast(tensor.SizeVector(list...), d), elem: t.Elem()}
	case t.Rank() == 0 && len(list) == 1:
		return &value{v: tensor.Cast(list[0], d), elem: t.Elem()}
	}
	return nil
}

// reshapeTo gives a tensor a shape.
func (c *call) reshapeTo(v *fgraph.Variable, dims []ir.Dim) *fgraph.Variable {
	if !unsized(v) && slices.Equal(dims, c.dims(v)) {
		return v
	}
	c.failIf(len(dims) > array.MaxDims, "%w: %d dimensions", ErrUnsupported, len(dims))
	y := tensor.Reshape(v, c.scalars(dims)...)
	if c.open != nil {
		c.open.dims[y] = dims
	}
	return y
}

// together returns the product of sizes.
func together(dims []ir.Dim) ir.Dim {
	n := ir.Known(1)
	for _, d := range dims {
		n = n.Times(d)
	}
	return n
}
