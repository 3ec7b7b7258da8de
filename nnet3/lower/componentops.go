package lower

import (
	"strings"

	"github.com/nnopt/nnopt/fgraph"
	"github.com/nnopt/nnopt/nnet3/component"
	"github.com/nnopt/nnopt/nnet3/computation"
)

// Component is the component of an op, with its number in the network, or -1 if an optimization
// derived it, and a name for messages.
type Component struct {
	C      component.Component
	Number int32
	Name   string
}

// Params lists the component's name, its type and what it tells of itself, as names and values.
func (c Component) Params() [][2]string {
	list := [][2]string{{"component", c.Name}}
	if c.C == nil {
		return list
	}
	for i, part := range strings.Split(component.Info(c.C), ", ") {
		key, value, ok := strings.Cut(part, "=")
		switch {
		case i == 0:
			list = append(list, [2]string{"type", part})
		case ok:
			list = append(list, [2]string{key, value})
		default: // the rest of a list
			list[len(list)-1][1] += ", " + part
		}
	}
	return list
}

// Sample returns at most so many parameters, evenly spaced, and how many there are.
func (c Component) Sample(_ any, most int) (numbers []float64, of int) {
	u, ok := c.C.(component.UpdatableComponent)
	if !ok {
		return nil, 0
	}
	params := u.Params()
	for _, p := range params {
		of += p.Values.Rows * p.Values.Cols
	}
	// Where there are too many, each step-th is taken, through all matrices.
	step := (of + most - 1) / max(most, 1)
	next := 0
	for _, p := range params {
		n := p.Values.Rows * p.Values.Cols
		for ; next < n; next += step {
			numbers = append(numbers, float64(p.Values.Data[next/p.Values.Cols*p.Values.Stride+next%p.Values.Cols]))
		}
		next -= n
	}
	return numbers, of
}

// hash tells components apart, also derived ones, which have no number but a name.
func (c Component) hash() hash {
	h := hashOf(c.Number)
	for _, b := range []byte(c.Name) {
		h = h.add(int32(b))
	}
	return h
}

func (c Component) has(p component.Properties) bool { return c.C.Properties()&p != 0 }

// run returns the text of an op that runs the component.
func (c Component) run(op string, inPlace bool) string {
	if inPlace {
		return op + "{" + c.Name + ",inplace}"
	}
	return op + "{" + c.Name + "}"
}

// Propagate runs a component forward. Its inputs are the matrix x if the component has an input,
// the matrix that it adds to if it accumulates, and the state if it stores statistics. Its outputs
// are the matrix y, the memo if any, and the new state if any. A component that adds to its output
// gives what it adds, unless it accumulates.
type Propagate struct {
	Component
	Precomputed *computation.PrecomputedIndexesInfo // nil for a simple component
	StoreStats  bool
	UsesMemo    bool
	// Accumulate makes y the sum with another input. The component must be one that adds.
	Accumulate bool
	// InPlace permits the op to overwrite the matrix that it adds to or, without one, x.
	InPlace bool
	// instance tells apart runs with a random result or an effect. It is 0 in others.
	instance int32
}

// String returns the op with the name of its component.
func (o Propagate) String() string { return o.run("Propagate", o.InPlace) }

// EqualOp reports whether the other op is the same. Components are compared as pointers.
func (o Propagate) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp. Few fields suffice: most applies of different ops differ in inputs.
func (o Propagate) HashOp() uint64 { return uint64(o.hash().add(o.instance)) }

// InputAdded returns the number of the input that an accumulating op adds to, -1 for another op.
func (o Propagate) InputAdded() int {
	switch {
	case !o.Accumulate:
		return -1
	case o.C.Properties()&component.Simple == 0 && o.C.InputDim() == 0:
		return 0
	}
	return 1
}

// DestroyMap returns the input that an in-place op destroys.
func (o Propagate) DestroyMap() []fgraph.Alias {
	if o.InPlace {
		return []fgraph.Alias{{Output: 0, Input: max(o.InputAdded(), 0)}}
	}
	return nil
}

// Backprop runs a component backward. Its inputs are the input value x and the output value y if
// the component needs them, the derivative dy, and, if any, the memo, the matrix that it adds to
// and the state. Its outputs are the derivative dx if it is wanted, and the new state if any.
type Backprop struct {
	Component
	Precomputed        *computation.PrecomputedIndexesInfo
	hasX, HasY, HasDX  bool
	UsesMemo, HasState bool
	ModelUpdate        bool
	// Accumulate makes dx the sum with another input. The component must be one that adds.
	Accumulate bool
	// InPlace permits the op to overwrite the matrix that it adds to or, without one, dy.
	InPlace  bool
	Instance int32
}

// String returns the op with the name of its component.
func (o Backprop) String() string { return o.run("Backprop", o.InPlace) }

// EqualOp reports whether the other op is the same. Components are compared as pointers.
func (o Backprop) EqualOp(other fgraph.Op) bool { return other == fgraph.Op(o) }

// HashOp agrees with EqualOp. Few fields suffice: most applies of different ops differ in inputs.
func (o Backprop) HashOp() uint64 { return uint64(o.hash().add(o.Instance)) }

// InputDeriv returns the number of the input that holds dy.
func (o Backprop) InputDeriv() int {
	n := 0
	if o.hasX {
		n++
	}
	if o.HasY {
		n++
	}
	return n
}

// InputAdded returns the number of the input that an accumulating op adds to, -1 for another op.
func (o Backprop) InputAdded() int {
	switch {
	case !o.Accumulate:
		return -1
	case o.UsesMemo:
		return o.InputDeriv() + 2
	}
	return o.InputDeriv() + 1
}

// DestroyMap returns the input that an in-place op destroys.
func (o Backprop) DestroyMap() []fgraph.Alias {
	switch {
	case !o.InPlace:
		return nil
	case o.Accumulate:
		return []fgraph.Alias{{Output: 0, Input: o.InputAdded()}}
	}
	return []fgraph.Alias{{Output: 0, Input: o.InputDeriv()}}
}

// Operations counts the floating-point operations of a component that multiplies matrices.
func (o Propagate) Operations(a *fgraph.Apply) int64 {
	if c, ok := o.C.(component.OperationCounter); ok {
		return c.Operations(dataOf(o.Precomputed), rowCount(a.Inputs(), 0), rowCount(a.Outputs(), 0)).Forward
	}
	return 0
}

// Operations counts the floating-point operations of a component that multiplies matrices.
func (o Backprop) Operations(a *fgraph.Apply) int64 {
	c, ok := o.C.(component.OperationCounter)
	if !ok {
		return 0
	}
	in := 0
	if o.hasX {
		in = rowCount(a.Inputs(), 0)
	}
	if o.HasDX {
		in = max(in, rowCount(a.Outputs(), 0))
	}
	ops, sum := c.Operations(dataOf(o.Precomputed), in, rowCount(a.Inputs(), o.InputDeriv())), int64(0)
	if o.HasDX {
		sum += ops.InputDeriv
	}
	if o.ModelUpdate && o.C.Properties().Has(component.Updatable) {
		sum += ops.Update
	}
	return sum
}

// rowCount returns the rows of the i'th of some matrices, 0 if there are fewer.
func rowCount(list []*fgraph.Variable, i int) int {
	if i >= len(list) {
		return 0
	}
	return int(TypeOf(list[i]).Rows)
}

// dataOf returns what a component has prepared for its rows.
func dataOf(p *computation.PrecomputedIndexesInfo) component.Precomputed {
	if p == nil {
		return nil
	}
	return p.Data
}
