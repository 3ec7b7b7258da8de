package fgraph

import "strconv"

// A Variable is a value in a graph: the output of an [Apply], a constant, or an input. It is
// made by [NewInput], [NewConstant] or [NewApply].
type Variable struct {
	typ     Type
	owner   *Apply
	clients []Client
	leaf    *leaf // nil for most outputs of applies
	id      int32
	index   int32
}

// leaf holds what inputs and constants have instead of an owner, and the name of any variable
// that has one.
type leaf struct {
	name     string
	data     any
	graph    *FunctionGraph
	constant bool
	input    bool // declared as an input of graph
}

// A Client is a use of a variable: input Index of Apply, or output Index of the graph if Apply
// is nil.
type Client struct {
	Apply *Apply
	Index int
}

// NewInput returns a variable whose value is supplied from outside.
func NewInput(t Type, name string) *Variable {
	return newLeaf(t, leaf{name: name})
}

// NewConstant returns a variable with a fixed value. The data must not change afterwards. A
// constant belongs to the graph that uses it. The name may be empty.
func NewConstant(t Type, data any, name string) *Variable {
	return newLeaf(t, leaf{name: name, data: data, constant: true})
}

// newLeaf allocates a variable together with its leaf.
func newLeaf(t Type, l leaf) *Variable {
	both := &struct {
		Variable
		leaf
	}{leaf: l}
	both.Variable = Variable{typ: t, id: outside, leaf: &both.leaf}
	return &both.Variable
}

// ID returns the number of the variable in its graph, which is below
// [FunctionGraph.NumVariableIDs], or -1 outside of a graph. New variables reuse the numbers of
// those that have left.
func (v *Variable) ID() int { return int(v.id) }

// Type returns the type of the values that the variable may take.
func (v *Variable) Type() Type { return v.typ }

// Name returns the name of the variable, which may be empty. The graph does not use it.
func (v *Variable) Name() string {
	if v.leaf == nil {
		return ""
	}
	return v.leaf.name
}

// SetName sets the name.
func (v *Variable) SetName(name string) {
	if v.leaf == nil {
		if name == "" {
			return
		}
		v.leaf = new(leaf)
	}
	v.leaf.name = name
}

// Owner returns the apply that computes the variable, or nil for inputs and constants.
func (v *Variable) Owner() *Apply { return v.owner }

// Index returns which output of its owner the variable is, 0 without an owner.
func (v *Variable) Index() int { return int(v.index) }

// IsConstant reports whether the variable was made by [NewConstant].
func (v *Variable) IsConstant() bool { return v.owner == nil && v.leaf.constant }

// IsInput reports whether the variable was made by [NewInput].
func (v *Variable) IsInput() bool { return v.owner == nil && !v.leaf.constant }

// Data returns the value of a constant, or nil for other variables.
func (v *Variable) Data() any {
	if v.leaf == nil {
		return nil
	}
	return v.leaf.data
}

// Clients returns the uses of the variable within its graph. Do not modify the slice. It is
// valid until the next change of the graph.
func (v *Variable) Clients() []Client { return v.clients }

// Graph returns the graph that the variable belongs to, or nil.
func (v *Variable) Graph() *FunctionGraph {
	if v.owner != nil {
		return v.owner.graph
	}
	return v.leaf.graph
}

// String returns the name of the variable. A constant without a name prints as its data, an
// output as its apply and number, and an input as its type.
func (v *Variable) String() string {
	switch {
	case v.Name() != "":
		return v.leaf.name
	case v.owner == nil:
		return leafString(v)
	}
	return v.owner.String() + v.suffix()
}

// suffix returns "::i" if v is output i of several.
func (v *Variable) suffix() string {
	if v.owner == nil || len(v.owner.outputs) < 2 {
		return ""
	}
	return "::" + strconv.Itoa(int(v.index))
}
