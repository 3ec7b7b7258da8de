package fgraph

// A Variable is a value in a graph: the output of an [Apply], a constant, or an
// input. It is made by [NewInput], [NewConstant] or [NewApply].
type Variable struct {
	typ     Type
	owner   *Apply
	clients []Client
	root    *root // what an output of an apply does without
	id      int32
	index   int32
}

// root holds what is rare: the name of a variable, and what inputs and
// constants have in place of an owner.
type root struct {
	name     string
	data     any
	graph    *FunctionGraph
	constant bool
	input    bool // declared as an input of graph
}

// A Client is a use of a variable: input Index of Apply or, where Apply is nil,
// output Index of the graph.
type Client struct {
	Apply *Apply
	Index int
}

// NewInput returns a variable that gets its value from outside.
func NewInput(t Type, name string) *Variable {
	return newRoot(t, root{name: name})
}

// NewConstant returns a variable with a fixed value. The data belongs to the
// variable from now on and must not change. A constant that is used in a graph
// belongs to that graph; the name may be empty.
func NewConstant(t Type, data any, name string) *Variable {
	return newRoot(t, root{name: name, data: data, constant: true})
}

// newRoot allocates a variable and its root as one.
func newRoot(t Type, r root) *Variable {
	both := &struct {
		Variable
		root
	}{root: r}
	both.Variable = Variable{typ: t, id: outside, root: &both.root}
	return &both.Variable
}

// ID returns the number of the variable in its graph, at most
// [FunctionGraph.NumVariableIDs]-1, or -1 outside of one. Numbers of variables
// that left the graph are given to new ones.
func (v *Variable) ID() int { return int(v.id) }

// Type returns what values the variable may take.
func (v *Variable) Type() Type { return v.typ }

// Name returns the name of the variable, which may be empty. It has no meaning
// to the graph.
func (v *Variable) Name() string {
	if v.root == nil {
		return ""
	}
	return v.root.name
}

// SetName changes the name.
func (v *Variable) SetName(name string) {
	if v.root == nil {
		if name == "" {
			return
		}
		v.root = new(root)
	}
	v.root.name = name
}

// Owner returns the apply that computes the variable, nil for inputs and
// constants.
func (v *Variable) Owner() *Apply { return v.owner }

// Index says which output of its owner the variable is. It is 0 without owner.
func (v *Variable) Index() int { return int(v.index) }

// IsConstant reports whether the variable was made by [NewConstant].
func (v *Variable) IsConstant() bool { return v.owner == nil && v.root.constant }

// IsInput reports whether the variable was made by [NewInput].
func (v *Variable) IsInput() bool { return v.owner == nil && !v.root.constant }

// Data returns the value of a constant, nil for any other variable.
func (v *Variable) Data() any {
	if v.root == nil {
		return nil
	}
	return v.root.data
}

// Clients returns the uses of the variable within its graph. The slice belongs
// to the variable: it may be read until the graph changes next.
func (v *Variable) Clients() []Client { return v.clients }

// Graph returns the graph that the variable is in, or nil.
func (v *Variable) Graph() *FunctionGraph {
	if v.owner != nil {
		return v.owner.graph
	}
	return v.root.graph
}

// String returns the name of the variable or, without one, a text that shows
// what it is: the data of a constant, the apply and the number of an output,
// the type of an input.
func (v *Variable) String() string {
	switch {
	case v.Name() != "":
		return v.root.name
	case v.owner == nil:
		return leaf(v)
	case len(v.owner.outputs) > 1:
		return v.owner.String() + "::" + itoa(v.index)
	}
	return v.owner.String()
}
