package expr

import (
	"errors"
	"maps"
	"slices"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/internal/fileio/spell"
	"github.com/nnopt/nnopt/tensor"
	"github.com/nnopt/nnopt/tensor/array"
)

// A call is a function with its arguments.
type call struct {
	lang  *Language
	name  string
	args  []value
	named map[string]value
	known []string // the names that were asked for
}

// run returns the result, and reports whether there is such a function.
func (c *call) run() (value, bool) {
	if f := listFunctions[c.name]; f != nil {
		x := f(c)
		// Functions ask for their arguments one by one. Only behind them is it known which names mean nothing.
		c.checkNames()
		return x, true
	}
	// Before ops: a function may have the name of one, and arguments that the op does not have, such as an
	// axis.
	for _, table := range tables {
		if f := table[c.name]; f != nil {
			v := f(c)
			c.checkNames()
			return tensorValue(v), true
		}
	}
	if f := c.lang.added[c.name]; f != nil {
		c.checkNames()
		return tensorValue(c.made(f(tensors(c.name, c.args)...))), true
	}
	op, ok := c.lang.Op(c.name)
	if !ok {
		return value{}, false
	}
	// What has no parameters may be written by people, with numbers and lists. With parameters it was printed.
	if e, ok := op.(tensor.Elemwise); ok && e == tensor.OpFor(e.Op) {
		return tensorValue(mapped(e.Op)(c)), true
	}
	if r, ok := op.(tensor.Reduce); ok && r.All {
		return tensorValue(c.reduce(r.Op)), true
	}
	c.checkNames()
	if e, ok := op.(tensor.Elemwise); ok {
		return tensorValue(tensor.MapOp(e, tensors(c.name, c.args)...)), true
	}
	if a, ok := op.(tensor.AssertOp); ok && len(c.args) > 0 { // its conditions may be numbers
		return tensorValue(tensor.Assert(c.args[0].tensor(c.name), a.Message, tensors(c.name, c.args[1:])...)), true
	}
	a, err := tensor.Make(op, operands(op, c.args)...)
	if err != nil {
		return tensorValue(c.made(nil, err)), true
	}
	return tensorValue(a.Out()), true
}

// made returns a result, or fails with the error of the op or function that was called.
func (c *call) made(v *fgraph.Variable, err error) *fgraph.Variable {
	var own *tensor.Error
	switch {
	case errors.As(err, &own):
		// It names the op that failed. To fail again would name only the call.
		panic(own)
	case err != nil:
		fail(c.name, "%v", err)
	case v == nil:
		fail(c.name, "it returned nothing")
	}
	return v
}

// operands returns the operands of an op. Numbers that the op combines with tensors take their
// type; sizes and indexes keep theirs.
func operands(op tensor.Op, args []value) []*fgraph.Variable {
	switch op.(type) {
	case tensor.Dot22ScalarOp, tensor.GemmOp, tensor.GemvOp, tensor.GerOp, tensor.UsmmOp:
		return tensors(op.String(), args)
	}
	in := make([]*fgraph.Variable, len(args))
	for i, x := range args {
		if inc, ok := op.(*tensor.IncSubtensorOp); ok && i == 1 && x.kind == kindNumber {
			// A value of one element prints as a number. Here it gets the dimensions of the part back.
			ndim := tensor.TypeOf(in[0]).NDim()
			for d := range inc.NumIndexes() {
				if !inc.IsSlice(d) {
					ndim--
				}
			}
			in[1] = tensor.PadLeft(x.num.in(tensor.TypeOf(in[0]).DType()), ndim)
			continue
		}
		switch {
		case !takesVector(op, i):
			in[i] = x.tensor(op.String())
		case x.kind == kindNumber:
			in[i] = tensor.PadLeft(x.tensor(op.String()), 1)
		default:
			in[i] = x.indexTensor(op.String())
		}
	}
	return in
}

// takesVector reports whether input i of an op is a vector of integers, which prints as a number if
// it has one element.
func takesVector(op tensor.Op, i int) bool {
	switch op.(type) {
	case tensor.ReshapeOp, tensor.AdvancedSubtensorOp:
		return i >= 1
	case tensor.AdvancedIncSubtensorOp:
		return i >= 2
	}
	return false
}

// arg returns argument i, which may be given by name instead, and reports whether it is there.
func (c *call) arg(i int, name string) (value, bool) {
	x, ok := c.named[name]
	// Also of arguments that are not given: they are what a wrong name is compared with.
	c.known = append(c.known, name)
	if i >= 0 && i < len(c.args) {
		if ok {
			fail(c.name, "argument %s is given twice", name)
		}
		return c.args[i], true
	}
	return x, ok
}

// need is arg for a required argument.
func (c *call) need(i int, name string) value {
	x, ok := c.arg(i, name)
	if !ok {
		fail(c.name, "argument %s is missing", name)
	}
	return x
}

// tensor returns required argument i as a tensor.
func (c *call) tensor(i int, name string) *fgraph.Variable { return c.need(i, name).tensor(c.name) }

// rest returns the positional arguments from i on.
func (c *call) rest(i int) []value { return c.args[min(i, len(c.args)):] }

// list is rest, in which a single list means its elements.
func (c *call) list(i int) []value {
	rest := c.rest(i)
	if len(rest) == 1 && rest[0].kind == kindList {
		return rest[0].list
	}
	return rest
}

// tensors returns all arguments, which have these names, as tensors. Numbers take the type of the
// others.
func (c *call) tensors(names ...string) []*fgraph.Variable {
	c.count(len(names))
	args := make([]value, len(names))
	for i, name := range names {
		args[i] = c.need(i, name)
	}
	c.checkNames()
	return tensors(c.name, args)
}

// checkNames fails if there is a named argument that was not asked for.
func (c *call) checkNames() {
	for _, name := range slices.Sorted(maps.Keys(c.named)) {
		if !slices.Contains(c.known, name) {
			fail(c.name, "takes no argument %s%s", name, spell.Hint(name, c.known))
		}
	}
}

// count fails if there are more than most positional arguments.
func (c *call) count(most int) {
	if n := len(c.args); n > most {
		fail(c.name, "%d arguments, it takes %d", n, most)
	}
}

// axes returns the argument axis: nil, which means all dimensions, if it is missing or None. An
// empty list means none.
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

// axis returns the argument axis as a single dimension, or missing if it is missing or None.
func (c *call) axis(i, missing int) int {
	x, ok := c.arg(i, "axis")
	if !ok || x.kind == kindNone {
		return missing
	}
	return x.integer(c.name)
}

// integer returns an optional integer argument.
func (c *call) integer(i int, name string, missing int) int {
	if x, ok := c.arg(i, name); ok {
		return x.integer(c.name)
	}
	return missing
}

// keepDims returns the argument keepdims.
func (c *call) keepDims() bool {
	keep, ok := c.arg(-1, "keepdims")
	return ok && keep.kind == kindNumber && keep.num.f != 0
}

// flag returns an optional argument that is true or false.
func (c *call) flag(i int, name string, missing bool) bool {
	x, ok := c.arg(i, name)
	if !ok {
		return missing
	}
	if x.kind != kindNumber {
		fail(c.name, "argument %s is True or False", name)
	}
	return x.num.f != 0
}

// text returns an optional string argument.
func (c *call) text(i int, name, missing string) string {
	x, ok := c.arg(i, name)
	if !ok {
		return missing
	}
	if x.kind != kindName {
		fail(c.name, "argument %s is a string", name)
	}
	return x.text
}

// dtype returns an optional argument that names an element type.
func (c *call) dtype(i int, missing array.DType) array.DType {
	x, ok := c.arg(i, "dtype")
	if !ok || x.kind == kindNone {
		return missing
	}
	return x.dtype(c.name)
}

// size returns an optional integer argument, which may be a tensor.
func (c *call) size(i int, name string, missing *fgraph.Variable) *fgraph.Variable {
	x, ok := c.arg(i, name)
	if !ok || x.kind == kindNone {
		return missing
	}
	return x.size(c.name)
}

// listOf returns an argument that is a list of tensors.
func (c *call) listOf(i int, name string) []*fgraph.Variable {
	x := c.need(i, name)
	if x.kind != kindList {
		fail(c.name, "a list of tensors is expected")
	}
	return tensors(c.name, x.list)
}
